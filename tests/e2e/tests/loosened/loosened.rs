//! The table of ways to loosen a hardened pod, read from the file beside.

use serde_json::{Value, json};

pub(crate) use self::edits::set;

mod edits;

/// One way to loosen the pod.
#[derive(Clone, Debug)]
pub(crate) struct Loosened {
    /// The rule that has something against it; empty where none has.
    pub(crate) rule: String,
    /// Each a JSON pointer and what is to stand there; null for nothing.
    pub(crate) edits: Vec<(String, Value)>,
}

impl Loosened {
    /// The pod, loosened.
    pub(crate) fn applied_to(&self, pod: &Value) -> Value {
        let mut pod = pod.clone();
        for (pointer, value) in &self.edits {
            set(&mut pod, pointer, value.clone());
        }
        pod
    }
}

/// The pod that is hardened and then loosened: every list of containers that a creation may have, and something of what
/// people put there.
pub(crate) fn spec() -> Value {
    let digest = "0".repeat(64);
    json!({
        "initContainers": [
            {"name": "proxy", "image": "cofferdam.test/none:1", "restartPolicy": "Always",
             "startupProbe": {"tcpSocket": {"port": 9000}}},
            {"name": "prepare", "image": "cofferdam.test/none:1", "args": ["a", "b"]},
        ],
        "containers": [
            {"name": "one", "image": format!("registry.example.com:5000/team/app@sha256:{digest}"),
             "ports": [{"containerPort": 8080}], "env": [{"name": "A", "value": "b"}],
             "livenessProbe": {"httpGet": {"port": 8080, "path": "/"}},
             "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
             "volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "a"},
                              {"name": "config", "mountPath": "/etc/app"}]},
            {"name": "two", "image": "python", "readinessProbe": {"exec": {"command": ["true"]}}},
        ],
        "volumes": [
            {"name": "data", "emptyDir": {}},
            {"name": "config", "projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]}},
        ],
    })
}

/// Where the containers of [`spec`] stand; all but the last may have probes and handlers.
const CONTAINERS: [&str; 4] =
    ["/spec/containers/0", "/spec/containers/1", "/spec/initContainers/0", "/spec/initContainers/1"];

/// Every way that a rule has something against.
pub(crate) fn all() -> Vec<Loosened> {
    let mut all = rows("pod", "");
    all.extend(CONTAINERS.iter().flat_map(|container| rows("containers", container)));
    all.extend(CONTAINERS[..3].iter().flat_map(|container| rows("with_handlers", container)));
    all
}

/// Ways that no rule minds.
pub(crate) fn harmless() -> Vec<Loosened> {
    rows("harmless", "")
}

/// The same by the tests' own profile `strict`: what it has something against, and what it does not mind.
pub(crate) fn strict() -> [Vec<Loosened>; 2] {
    [rows("strict", ""), rows("strict_harmless", "")]
}

/// So many pods as people write them: the pod of [`spec`], not hardened, with some of these ways at once. They are the
/// same every time.
pub(crate) fn mixed(count: usize) -> Vec<Value> {
    let ways: Vec<Loosened> = all().into_iter().chain(harmless()).collect();
    let mut dice = 0x2545_f491_4f6c_dd1d_u64;
    let mut roll = |sides: usize| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(dice >> 33).unwrap() % sides
    };
    (0..count)
        .map(|index| {
            let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("mixed-{index}")}});
            pod["spec"] = spec();
            for _ in 0..roll(5) {
                pod = ways[roll(ways.len())].applied_to(&pod);
            }
            pod
        })
        .collect()
}

fn rows(section: &str, container: &str) -> Vec<Loosened> {
    let table: Value = serde_saphyr::from_str(include_str!("loosened.yaml")).unwrap();
    // What begins with `pod:` stands outside the container.
    let place = |at: &str| at.strip_prefix("pod:").map_or_else(|| format!("{container}{at}"), str::to_owned);
    let mut loosened = Vec::new();
    for row in table[section].as_array().unwrap() {
        let with = row["with"].as_object().into_iter().flatten();
        let with: Vec<(String, Value)> = with.map(|(at, value)| (place(at), value.clone())).collect();
        for value in row["values"].as_array().unwrap() {
            let mut edits = vec![(place(row["at"].as_str().unwrap()), value.clone())];
            edits.extend(with.clone());
            loosened.push(Loosened { rule: row["rule"].as_str().unwrap_or_default().to_owned(), edits });
        }
    }
    loosened
}
