//! What is put into pods, under a policy that puts in all it can, and what becomes of a container that another webhook
//! adds between two looks at a pod.

use std::{collections::BTreeSet, sync::LazyLock};

use cofferdam_model::{Hardened, Operation, Request, Scope, User, Verdict, audit, harden, policy::Policy};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{hard, pods};

/// Addresses, a command, and directories that each container has for itself.
const ALL: &str = "
profiles:
  default:
    command: [run, --now, $(ENTRY)]
    resources:
      requests: limits
    scratch:
      - {name: tmp, path: /tmp, size: 64Mi, env: {TMPDIR: ''}}
      - {name: home, path: /home/session, size: 64Mi, env: {HOME: '', CACHE: .cache}, shared: true}
routing:
  baseDomain: sessions.example.com
";

static POLICY: LazyLock<Policy> = LazyLock::new(|| Policy::parse("policy.yaml", ALL).unwrap());

fn hardened(pod: &Value) -> Option<Hardened> {
    let user = User { name: "jane", groups: &[] };
    let (namespace, scope, operation) = ("cofferdam-sessions", Scope::Enforced, Operation::Create);
    match harden(&Request { uid: Some("u-1"), namespace, scope, user, operation, pod }, &POLICY) {
        Verdict::Hardened(hardened) => Some(hardened),
        _ => None,
    }
}

fn items<'v>(value: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> {
    value[list].as_array().into_iter().flatten()
}

/// Panics where something that belongs to each session is missing, or there twice.
fn check(before: &Value, after: &Value) {
    hard::check(after);
    let gates = items(&after["spec"], "readinessGates");
    assert_eq!(gates.filter(|gate| gate["conditionType"] == "cofferdam.dev/RouteReachable").count(), 1);
    let (asked, first) = (&before["spec"]["containers"][0], &after["spec"]["containers"][0]);
    let says_what_to_run = ["command", "args"].iter().any(|key| items(asked, key).next().is_some());
    match before["metadata"]["annotations"]["cofferdam.dev/entry"].as_str() {
        Some(entry) if !says_what_to_run => {
            assert_eq!(first["command"], json!(["run", "--now", format!("/app/{entry}")]));
        }
        _ => assert_eq!(first["command"], asked["command"]),
    }
    let has_body = !before["metadata"]["annotations"]["cofferdam.dev/body-url"].is_null();
    let fetches = items(&after["spec"], "initContainers").filter(|container| container["name"] == "cofferdam-fetch");
    assert_eq!(fetches.count(), usize::from(has_body));
    for list in ["containers", "initContainers"] {
        for container in items(&after["spec"], list) {
            let is_ours = |mount: &&Value| mount["name"].as_str().is_some_and(|name| name.starts_with("cofferdam-"));
            for ours in items(container, "volumeMounts").filter(is_ours) {
                let there = items(container, "volumeMounts").filter(|mount| mount["mountPath"] == ours["mountPath"]);
                assert_eq!(there.count(), 1, "{ours}");
            }
            for mount in items(container, "volumeMounts").filter(|mount| mount["name"] == "cofferdam-tmp") {
                assert_eq!(mount["subPath"], container["name"]);
            }
        }
    }
    let names: Vec<&Value> = items(&after["spec"], "volumes").map(|volume| &volume["name"]).collect();
    let ours = names.iter().filter_map(|name| name.as_str()).filter(|name| name.starts_with("cofferdam-"));
    let ours: Vec<&str> = ours.collect();
    assert_eq!(ours.len(), ours.iter().collect::<BTreeSet<_>>().len(), "{ours:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_that_can_be_put_in_is_there_once_and_stays(pod in pods::pod()) {
        if let Some(first) = hardened(&pod) {
            check(&pod, &first.pod);
            let second = hardened(&first.pod).unwrap();
            prop_assert!(second.patch.0.is_empty(), "{:?}", second.patch);
            prop_assert_eq!(audit(&first.pod, &POLICY), []);
        }
    }

    #[test]
    fn b08_a_newcomer_between_two_looks_is_hardened_and_nobody_else_touched(pod in pods::pod(), is_init in any::<bool>()) {
        if let Some(first) = hardened(&pod) {
            let newcomer = json!({ "name": "newcomer", "securityContext": { "privileged": true } });
            let mut joined = first.pod.clone();
            let (list, place) = if is_init { ("initContainers", 0) } else { ("containers", 1) };
            if joined["spec"][list].is_null() {
                joined["spec"][list] = json!([]);
            }
            joined["spec"][list].as_array_mut().unwrap().insert(place, newcomer);
            // One more may be too many to run together.
            if let Some(second) = hardened(&joined) {
                hard::check(&second.pod);
                prop_assert_eq!(second.warnings.len(), 1, "{:?}", second.warnings);
                let its_own = format!("spec.{list}[{place}].");
                for change in &second.changes {
                    // Its scratch may be the pod's first, and so may a resource that only the pod as a whole has.
                    let is_shared = change.path.starts_with("spec.volumes[") || change.path.starts_with("spec.resources.");
                    prop_assert!(change.path.starts_with(&its_own) || is_shared, "{:?}", change);
                }
                prop_assert!(hardened(&second.pod).unwrap().patch.0.is_empty());
            }
        }
    }
}
