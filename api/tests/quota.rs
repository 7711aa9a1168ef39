//! The quota in `manifests/` is what the policy that ships asks for, and hardened pods fit into it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::{env, fs};

use cofferdam_api::quota;
use cofferdam_model::policy::Policy;
use cofferdam_model::quantity::Quantity;
use cofferdam_model::{Operation, Request, Scope, User, Verdict, harden, keys};
use serde_json::{Value, json};

/// Sessions that the API has room for by default.
const SESSIONS: u32 = 32;

/// What the quota counts.
const COUNTED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// `COFFERDAM_UPDATE=1` writes it anew.
#[test]
fn d01_the_quota_that_ships_is_that_of_the_policy_that_ships() {
    let made = quota::render(&Policy::built_in(), SESSIONS);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../manifests/components/quota/quota.yaml");
    if env::var_os("COFFERDAM_UPDATE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let is = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(is, made, "{}: run it again with COFFERDAM_UPDATE=1", path.display());
}

/// The quota asks for a limit on every container, and the predecessor's own init container had none.
#[test]
fn b74_the_largest_pods_of_every_profile_fit_with_their_init_containers() {
    let policy = Policy::built_in();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&quota::render(&policy, SESSIONS)).unwrap();
    let (hard, most) = (&objects[0]["spec"]["hard"], &objects[1]["spec"]["limits"][0]["max"]);
    let mut largest = [Quantity::ZERO; COUNTED.len()];
    for profile in policy.profile_names() {
        let count = policy.profile(profile).unwrap().pod.containers;
        for sidecars in [0, 1, count - 1] {
            let pod = hardened(&policy, profile, count - sidecars, sidecars);
            for (index, resource) in COUNTED.into_iter().enumerate() {
                let used = counted(&pod, resource);
                assert!(used <= amount(&most[resource]), "{profile} {sidecars} {resource}: {used}");
                assert!(used.times(SESSIONS) <= amount(&hard[format!("limits.{resource}")]), "{profile} {resource}");
                largest[index] = largest[index].max(used);
            }
        }
    }
    assert_eq!(largest, COUNTED.map(|resource| amount(&most[resource])), "there is room, and none too much");
}

/// A pod that asks for more than it may have, with a body and an init container of its own.
fn hardened(policy: &Policy, profile: &str, containers: u32, sidecars: u32) -> Value {
    let container =
        |name: String| json!({"name": name, "image": "i", "resources": {"limits": {"cpu": "99", "memory": "9Ti"}}});
    let named = |kind: &str, count: u32| (0..count).map(|n| container(format!("{kind}-{n}"))).collect::<Vec<_>>();
    let mut init = named("sidecar", sidecars);
    for sidecar in &mut init {
        sidecar["restartPolicy"] = json!("Always");
    }
    init.extend(named("init", 1));
    let annotations = json!({keys::BODY_URL: "https://example.com/b.tar.gz", keys::BODY_SHA256: "0".repeat(64)});
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {keys::PROFILE: profile}, "annotations": annotations},
        "spec": {"initContainers": init, "containers": named("main", containers)},
    });
    let request = Request {
        uid: Some("705ab4f5-6393-11e8-b7cc-42010a800002"),
        namespace: "cofferdam-sessions",
        scope: Scope::Enforced,
        user: User { name: "jane", groups: &[] },
        operation: Operation::Create,
        pod: &pod,
    };
    let Verdict::Hardened(hardened) = harden(&request, policy) else { panic!("{pod} is not hardened") };
    hardened.pod
}

/// What a quota counts of a pod (Kubernetes: Init Containers, "Resource sharing within containers"): all that run
/// together, or more where an init container needs it beside the sidecars that are there by then.
fn counted(pod: &Value, resource: &str) -> Quantity {
    let limit = |container: &Value| {
        let limit = &container["resources"]["limits"][resource];
        assert!(!limit.is_null(), "{} has no limit of {resource}", container["name"]);
        amount(limit)
    };
    let (mut sidecars, mut peak) = (Quantity::ZERO, Quantity::ZERO);
    for container in pod["spec"]["initContainers"].as_array().unwrap() {
        if container["restartPolicy"] == "Always" {
            sidecars = sidecars.plus(limit(container));
        } else {
            peak = peak.max(sidecars.plus(limit(container)));
        }
    }
    let containers = pod["spec"]["containers"].as_array().unwrap();
    containers.iter().map(limit).fold(sidecars, Quantity::plus).max(peak)
}

fn amount(value: &Value) -> Quantity {
    Quantity::from_json(value).unwrap()
}
