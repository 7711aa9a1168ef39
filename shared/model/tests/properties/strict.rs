//! A policy that uses every word about images, scheduling and users, and an API server whose own plugins run again after
//! the webhook's patch.

use cofferdam_model::{
    Action, Hardened, Operation, Request, Scope, User, Verdict, audit, harden, keys::FETCH_CONTAINER, policy::Policy,
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Value, json};

use crate::{hard, pods};

const POLICY: &str = "
profiles:
  default:
    images: {allowed: [docker.io/library/python, registry.example.com/**], pullPolicy: Always}
    scheduling:
      runtimeClasses:
        - name: gvisor
          nodeSelector: {sandbox: gvisor}
          tolerations: [{key: sandbox, operator: Exists}, {key: pool, operator: Exists}]
        - name: kata
      runtimeClass: inject
      nodeSelector: {pool: sessions}
      tolerations: [{key: pool, operator: Equal, value: sessions, effect: NoSchedule}]
      allowedTolerations: [{key: spot, operator: Exists}]
      imagePullSecrets: [registry]
    hostUsers: never
    supplementalGroupsPolicy: Strict
    hostAliases: refuse
";

fn decide(uid: &str, pod: &Value) -> Verdict {
    let policy = Policy::parse("policy.yaml", POLICY).unwrap();
    let user = User { name: "jane", groups: &[] };
    let (namespace, scope, operation) = ("cofferdam-sessions", Scope::Enforced, Operation::Create);
    harden(&Request { uid: Some(uid), namespace, scope, user, operation, pod }, &policy)
}

fn hardened(pod: &Value) -> Option<Hardened> {
    match decide("u-1", pod) {
        Verdict::Hardened(hardened) => Some(hardened),
        _ => None,
    }
}

/// What the plugin `RuntimeClass` makes of a pod of the class gVisor.
fn plugin(pod: &Value) -> Value {
    let mut pod = pod.clone();
    if pod["spec"]["runtimeClassName"] == json!("gvisor") {
        pod["spec"]["nodeSelector"]["sandbox"] = json!("gvisor");
        let of_class =
            [json!({ "key": "sandbox", "operator": "Exists" }), json!({ "key": "pool", "operator": "Exists" })];
        let all: Vec<Value> = items(&pod["spec"]["tolerations"]).cloned().chain(of_class).collect();
        let mut merged: Vec<Value> = Vec::new();
        for (place, toleration) in all.iter().enumerate() {
            let is_redundant = merged.iter().any(|other| is_superset(other, toleration))
                || all[place + 1..].iter().any(|other| other != toleration && is_superset(other, toleration));
            if !is_redundant {
                merged.push(toleration.clone());
            }
        }
        pod["spec"]["tolerations"] = json!(merged);
    }
    pod
}

/// Whether the first tolerates all that the second does, as the API server has it.
fn is_superset(first: &Value, second: &Value) -> bool {
    let text = |toleration: &Value, field: &str| toleration[field].as_str().unwrap_or_default().to_owned();
    let is_exists = text(first, "operator") == "Exists";
    let has_key = text(first, "key") == text(second, "key") || (text(first, "key").is_empty() && is_exists);
    let has_effect = text(first, "effect").is_empty() || text(first, "effect") == text(second, "effect");
    let (most, seconds) = (first["tolerationSeconds"].as_i64(), second["tolerationSeconds"].as_i64());
    let lasts = text(first, "effect") != "NoExecute" || most.is_none_or(|most| seconds.is_some_and(|s| s <= most));
    let is_equal = text(second, "operator") != "Exists" && text(first, "value") == text(second, "value");
    first == second || (has_key && has_effect && lasts && (is_exists || is_equal))
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Panics if the pod breaks one of the policy's promises.
fn check(pod: &Value) {
    let spec = &pod["spec"];
    assert!(matches!(spec["runtimeClassName"].as_str(), Some("gvisor" | "kata")));
    assert_eq!(spec["nodeSelector"]["pool"], json!("sessions"));
    assert_eq!(spec["hostUsers"], json!(false));
    assert_eq!(spec["securityContext"]["supplementalGroupsPolicy"], json!("Strict"));
    assert_eq!(items(&spec["hostAliases"]).count(), 0);
    assert_eq!(items(&spec["imagePullSecrets"]).filter(|secret| secret["name"] == json!("registry")).count(), 1);
    let wanted = json!({ "key": "pool", "operator": "Equal", "value": "sessions", "effect": "NoSchedule" });
    assert_eq!(items(&spec["tolerations"]).filter(|toleration| is_superset(toleration, &wanted)).count(), 1);
    assert!(items(&spec["tolerations"]).all(|toleration| !toleration["key"].is_null()));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items(&spec[list]).filter(|container| container["name"] != json!(FETCH_CONTAINER)) {
            assert_eq!(container["imagePullPolicy"], json!("Always"), "{container}");
            assert!(matches!(container["image"].as_str(), None | Some("python" | "registry.example.com/app:1")));
        }
    }
    for image in items(&spec["volumes"]).map(|volume| &volume["image"]).filter(|image| !image.is_null()) {
        assert_eq!(image["pullPolicy"], json!("Always"));
    }
}

/// Pods for such a cluster: as any, and some that know it.
fn pod() -> impl Strategy<Value = Value> {
    let class = prop::sample::select(vec![json!(null), json!("gvisor"), json!("kata"), json!("runc")]);
    let toleration = prop::sample::select(vec![
        json!({ "key": "spot", "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "key": "pool", "value": "sessions", "effect": "NoSchedule" }),
        json!({ "key": "pool", "operator": "Exists" }),
        json!({ "key": "sandbox", "operator": "Equal", "value": "gvisor" }),
        json!({ "operator": "Exists" }),
    ]);
    (pods::pod(), class, prop::option::of(toleration)).prop_map(|(mut pod, class, toleration)| {
        pod["spec"]["runtimeClassName"] = class;
        if let Some(toleration) = toleration {
            pod["spec"]["tolerations"] = json!([toleration]);
        }
        plugin(&pod)
    })
}

#[test]
fn many_pods_are_hardened_and_some_are_refused() {
    let mut runner = TestRunner::deterministic();
    let passed = (0..200).filter(|_| hardened(&pod().new_tree(&mut runner).unwrap().current()).is_some()).count();
    assert!(passed > 20 && passed < 190, "{passed}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_strict_policy_holds_and_stays_so_when_plugins_run_again(pod in pod()) {
        if let Some(first) = hardened(&pod) {
            check(&first.pod);
            for container in items(&first.pod["spec"]["ephemeralContainers"]) {
                hard::check_container(container, false, &first.pod["spec"]);
            }
            let mut patched = pod.clone();
            json_patch::patch(&mut patched, &first.patch).unwrap();
            prop_assert_eq!(&patched, &first.pod);
            prop_assert!(audit(&first.pod, &Policy::parse("policy.yaml", POLICY).unwrap()).is_empty());

            let again = plugin(&first.pod);
            match decide("u-2", &again) {
                Verdict::Hardened(second) => {
                    // Where the plugin has put a broader toleration in the place of ours, ours does not come back.
                    prop_assert!(second.changes.is_empty() && second.warnings.is_empty(), "{:?}", second.changes);
                    prop_assert_eq!(&second.pod, &again);
                    check(&second.pod);
                    prop_assert_eq!(plugin(&second.pod), second.pod);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn a_strict_policys_warnings_are_the_tightened_fields(pod in pod()) {
        if let Some(hardened) = hardened(&pod) {
            let tightened = hardened.changes.iter().filter(|change| change.action == Action::Tighten).count();
            let counted = hardened.warnings.last().and_then(|last| last.split_once(" more fields"));
            let shown = hardened.warnings.len() - usize::from(counted.is_some());
            prop_assert_eq!(shown + counted.map_or(0, |(rest, _)| rest.parse().unwrap()), tightened);
        }
    }
}
