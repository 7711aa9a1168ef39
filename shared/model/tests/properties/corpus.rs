//! Manifests as people write them, in `tests/corpus`, and those of this repository: what becomes of each stands in
//! `tests/corpus/README.md`, and all that holds for generated pods holds for them.

use std::{fmt::Write as _, fs, path::PathBuf};

use cofferdam_model::{
    Action, Hardened, Operation, Refusal, Request, Scope, Template, Untouched, User, Verdict, audit, harden,
    keys::{BODY_SHA256, BODY_TOKEN_SECRET, BODY_URL, FETCH_CONTAINER},
    policy::Policy,
};
use serde_json::{Value, json};

use super::{hard, pods, verdict};

/// Set to 1, the page is written instead of compared.
const UPDATE: &str = "COFFERDAM_UPDATE";

/// Manifests elsewhere in this repository that hold workloads.
const ELSEWHERE: [&str; 2] = ["tests/cluster/addons/coredns.yaml", "manifests/base/webhook/deployment.yaml"];

/// Lists of containers that a pod is created with.
const LISTS: [&str; 2] = ["initContainers", "containers"];

/// A pod of a manifest.
struct Sample {
    name: String,
    pod: Value,
    /// The template it was made from, and what its controller forbids there.
    template: Option<(Value, Template)>,
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All samples, in order of their names.
fn samples() -> Vec<Sample> {
    let corpus = fs::read_dir(repository().join("shared/model/tests/corpus")).unwrap();
    let mut files: Vec<PathBuf> = corpus.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files.extend(ELSEWHERE.map(|file| repository().join(file)));
    let documents = files.into_iter().flat_map(|file| {
        let name = file.strip_prefix(repository()).unwrap().display().to_string();
        let name = name.trim_start_matches("shared/model/tests/corpus/").to_owned();
        let text = fs::read_to_string(&file).unwrap();
        text.split("\n---\n").map(|text| (name.clone(), serde_saphyr::from_str(text).unwrap())).collect::<Vec<_>>()
    });
    documents.filter_map(|(name, object)| sample(name, &object)).collect()
}

/// The pod of a manifest, as its controller would create it.
fn sample(name: String, object: &Value) -> Option<Sample> {
    let kind = object["kind"].as_str()?;
    let (template, operation) = match kind {
        "Pod" => return Some(Sample { name, pod: object.clone(), template: None }),
        "Deployment" | "StatefulSet" | "DaemonSet" => (&object["spec"]["template"], Template::RunsForever),
        "Job" => (&object["spec"]["template"], Template::RunsToCompletion),
        "CronJob" => (&object["spec"]["jobTemplate"]["spec"]["template"], Template::RunsToCompletion),
        _ => return None,
    };
    let mut pod = template.clone();
    let owner =
        json!({ "apiVersion": object["apiVersion"], "kind": kind, "name": "o", "uid": "u", "controller": true });
    pod["metadata"]["generateName"] = json!("o-");
    pod["metadata"]["ownerReferences"] = json!([owner]);
    Some(Sample { name, pod, template: Some((template.clone(), operation)) })
}

/// The samples that are hardened.
fn hardened() -> Vec<(Sample, Hardened)> {
    let hardened: Vec<_> = samples()
        .into_iter()
        .filter_map(|sample| match verdict("u-1", &sample.pod) {
            Verdict::Hardened(hardened) => Some((sample, hardened)),
            _ => None,
        })
        .collect();
    assert!(hardened.len() >= 10, "{}", hardened.len());
    hardened
}

fn containers<'p>(pod: &'p Value, list: &str) -> impl Iterator<Item = &'p Value> {
    pod["spec"][list].as_array().into_iter().flatten()
}

/// A pod as an API server shows it to a webhook: decoded, with its defaults and what its own plugins put in.
fn as_the_server_sends_it(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let mut fill = |pointer: &str, key: &str, value: Value| {
        if let Some(members) = pod.pointer_mut(pointer).and_then(Value::as_object_mut) {
            members.entry(key).or_insert(value);
        }
    };
    for (key, value) in [
        ("restartPolicy", json!("Always")),
        ("dnsPolicy", json!("ClusterFirst")),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
        ("terminationGracePeriodSeconds", json!(30)),
        ("serviceAccountName", json!("default")),
        ("preemptionPolicy", json!("PreemptLowerPriority")),
        ("priority", json!(0)),
        ("securityContext", json!({})),
        ("volumes", json!([])),
        ("tolerations", json!([])),
    ] {
        fill("/spec", key, value);
    }
    let takes_token = pod["spec"]["automountServiceAccountToken"] != json!(false);
    for list in LISTS {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            for (key, value) in [
                ("imagePullPolicy", json!("IfNotPresent")),
                ("terminationMessagePath", json!("/dev/termination-log")),
                ("terminationMessagePolicy", json!("File")),
                ("resources", json!({})),
                ("volumeMounts", json!([])),
            ] {
                container.as_object_mut().unwrap().entry(key).or_insert(value);
            }
            if let Some(limits) = container["resources"]["limits"].as_object().cloned() {
                for (resource, amount) in limits {
                    let requests = &mut container["resources"]["requests"];
                    if requests[&resource].is_null() {
                        requests[&resource] = amount;
                    }
                }
            }
            if takes_token {
                let path = "/var/run/secrets/kubernetes.io/serviceaccount";
                let mount = json!({ "name": "kube-api-access-x2k9z", "mountPath": path, "readOnly": true });
                container["volumeMounts"].as_array_mut().unwrap().push(mount);
            }
        }
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let default = json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
        pod["spec"]["tolerations"].as_array_mut().unwrap().push(default);
    }
    if takes_token {
        let volumes = pod["spec"]["volumes"].as_array_mut().unwrap();
        volumes.push(pods::plugins_volume("kube-api-access-x2k9z"));
    }
    pod
}

fn outcome(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Hardened(hardened) => {
            let tightened = hardened.changes.iter().filter(|change| change.action == Action::Tighten);
            let fields: Vec<String> = tightened.map(|change| format!("`{}`", change.path)).collect();
            match fields.len() {
                0 => "hardened | no warning".to_owned(),
                1 => format!("hardened | 1 warning: {}", fields[0]),
                more => format!("hardened | {more} warnings: {}", fields.join(", ")),
            }
        }
        Verdict::Refused(Refusal { reasons }) => {
            let fields: Vec<String> = reasons.iter().map(|reason| format!("`{}`", reason.field)).collect();
            format!("refused | {}", fields.join(", "))
        }
        other => format!("{other:?} |"),
    }
}

#[test]
fn what_becomes_of_each_is_what_the_page_says() {
    let mut page = "# Manifests as people write them\n\nWritten by `COFFERDAM_UPDATE=1 cargo test -p cofferdam-model \
                    --test properties`: what the built-in policy makes of each, and the fields that it names.\n\n\
                    | manifest | verdict | fields |\n| --- | --- | --- |\n"
        .to_owned();
    for sample in samples() {
        writeln!(page, "| {} | {} |", sample.name, outcome(&verdict("u-1", &sample.pod))).unwrap();
    }
    let file = repository().join("shared/model/tests/corpus/README.md");
    if std::env::var(UPDATE).is_ok_and(|value| value == "1") {
        fs::write(&file, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), page, "to accept it, set {UPDATE}=1");
}

#[test]
fn each_that_is_hardened_is_hard_and_stays_as_it_is_and_keeps_what_was_its_own() {
    for (Sample { name, pod, .. }, hardened) in hardened() {
        hard::check(&hardened.pod);
        let mut patched = pod.clone();
        json_patch::patch(&mut patched, &hardened.patch).unwrap();
        assert_eq!(patched, hardened.pod, "{name}");
        match verdict("u-2", &hardened.pod) {
            Verdict::Hardened(second) => assert!(second.patch.0.is_empty(), "{name}: {:?}", second.patch),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(audit(&hardened.pod, &Policy::built_in()), [], "{name}");
        let (mut before, mut after) = (Vec::new(), Vec::new());
        pods::unknown(&pod, &mut String::new(), &mut before);
        pods::unknown(&hardened.pod, &mut String::new(), &mut after);
        assert_eq!(before, after, "{name}");
        for pointer in hard::strict_already(&pod) {
            assert_eq!(hardened.pod.pointer(&pointer), pod.pointer(&pointer), "{name} {pointer}");
        }
        for list in LISTS {
            let names = |pod: &Value| containers(pod, list).map(|at| at["name"].clone()).collect::<Vec<_>>();
            assert_eq!(names(&pod), names(&hardened.pod), "{name}");
        }
    }
}

#[test]
fn nobody_is_warned_of_what_the_server_filled_in_or_refused_for_it() {
    for Sample { name, pod, .. } in samples() {
        let (written, sent) = (verdict("u-1", &pod), verdict("u-1", &as_the_server_sends_it(&pod)));
        match (written, sent) {
            (Verdict::Hardened(written), Verdict::Hardened(sent)) => {
                assert_eq!(written.warnings, sent.warnings, "{name}");
                hard::check(&sent.pod);
            }
            (Verdict::Refused(written), Verdict::Refused(sent)) => {
                // A request that the server has made of a limit is refused beside it.
                assert!(written.reasons.iter().all(|reason| sent.reasons.contains(reason)), "{name}: {sent}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn b81_each_takes_a_body_once_after_what_leads_and_keeps_its_order() {
    for (Sample { name, mut pod, .. }, plain) in hardened() {
        for (key, value) in [
            (BODY_URL, "https://example.com/b".to_owned()),
            (BODY_SHA256, "0".repeat(64)),
            (BODY_TOKEN_SECRET, "s-abc".to_owned()),
        ] {
            pod["metadata"]["annotations"][key] = json!(value);
        }
        let Verdict::Hardened(first) = verdict("u-1", &pod) else { panic!("{name}") };
        assert_eq!(first.warnings, plain.warnings, "{name}");
        hard::check(&first.pod);
        let Verdict::Hardened(second) = verdict("u-2", &first.pod) else { panic!("{name}") };
        assert!(second.patch.0.is_empty(), "{name}: {:?}", second.patch);
        assert_eq!(audit(&first.pod, &Policy::built_in()), [], "{name}");
        let names = |pod: &Value| containers(pod, "initContainers").map(|at| at["name"].clone()).collect::<Vec<_>>();
        assert_eq!(names(&hard::without_fetch(&first.pod)), names(&pod), "{name}");
        let leading = containers(&pod, "initContainers").take_while(|at| at["restartPolicy"] == "Always").count();
        assert_eq!(names(&first.pod)[leading], FETCH_CONTAINER, "{name}");
    }
}

#[test]
fn a_template_is_told_what_its_pods_would_be_refused_for_and_gets_nothing_that_its_controller_forbids() {
    for Sample { name, pod, template } in samples() {
        let Some((template, operation)) = template else { continue };
        let user = User { name: "jane", groups: &[] };
        let (namespace, scope, operation) = ("cofferdam-sessions", Scope::Enforced, Operation::Template(operation));
        let request = Request { uid: None, namespace, scope, user, operation, pod: &template };
        match (harden(&request, &Policy::built_in()), verdict("u-1", &pod)) {
            (Verdict::Hardened(of_template), Verdict::Hardened(_)) => {
                let spec = &of_template.pod["spec"];
                assert_eq!(spec["restartPolicy"], template["spec"]["restartPolicy"], "{name}");
                assert_eq!(of_template.pod["metadata"]["annotations"], template["metadata"]["annotations"], "{name}");
            }
            (Verdict::Refused(of_template), Verdict::Refused(of_pod)) => assert_eq!(of_template, of_pod, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn b34_only_a_kubelet_mirrors_a_part_of_the_control_plane() {
    let sample = samples().into_iter().find(|sample| sample.name == "control-plane.yaml").unwrap();
    let groups = ["system:nodes".to_owned()];
    let user = User { name: "system:node:node-1", groups: &groups };
    let (namespace, scope, operation) = ("cofferdam-sessions", Scope::Enforced, Operation::Create);
    let request = Request { uid: Some("u-1"), namespace, scope, user, operation, pod: &sample.pod };
    let verdict = harden(&request, &Policy::built_in());
    assert!(matches!(verdict, Verdict::Untouched(Untouched::MirrorPod)), "{verdict:?}");
}
