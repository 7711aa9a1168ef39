//! What holds on other occasions than a pod's creation: debugging, updates, templates of workloads, audits.

use std::collections::BTreeSet;

use cofferdam_model::{
    Action, Hardened, Operation, Request, Scope, Template, Untouched, User, Verdict, audit, harden,
    keys::{CHANGES, HARDENED, SESSION},
    policy::Policy,
    rules::RULES,
};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{hard, hardened, pods};

fn decide(operation: Operation<'_>, pod: &Value) -> Verdict {
    let user = User { name: "jane", groups: &[] };
    let namespace = "cofferdam-sessions";
    let request = Request { uid: Some("u-1"), namespace, scope: Scope::Enforced, user, operation, pod };
    harden(&request, &Policy::built_in())
}

/// The pod as it lives, with another container for debugging, and where that stands.
fn debugged(pod: &Value, container: Value) -> (Value, usize) {
    let mut debugged = pod.clone();
    let list = &mut debugged["spec"]["ephemeralContainers"];
    if !list.is_array() {
        *list = json!([]);
    }
    let items = list.as_array_mut().unwrap();
    items.push(container);
    let place = items.len() - 1;
    (debugged, place)
}

/// A container that no other one is named like.
fn newcomer() -> impl Strategy<Value = Value> {
    pods::container().prop_map(|mut container| {
        container["name"] = json!("debugger-1");
        container
    })
}

/// What is left of a pod when it is made a template again.
fn template(pod: &Value) -> Value {
    let mut metadata = pod["metadata"].clone();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("ownerReferences");
    }
    json!({ "metadata": metadata, "spec": pod["spec"] })
}

fn tightened(hardened: &Hardened) -> Vec<&str> {
    let tightened = hardened.changes.iter().filter(|change| change.action == Action::Tighten);
    tightened.map(|change| change.path.as_str()).collect()
}

/// Rule and field of everything that the rules which audit found. What is ours in a pod that lives is not judged anew,
/// since it may be of an earlier version.
fn audited<'f>(found: impl Iterator<Item = (&'static str, &'f str)>) -> BTreeSet<(&'static str, &'f str)> {
    let audits = |name: &str| name != "reserved-names" && RULES.iter().all(|rule| rule.name != name || rule.audits);
    found.filter(|(rule, _)| audits(rule)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_new_container_for_debugging_is_hard_and_all_else_stays(pod in pods::pod(), container in newcomer()) {
        // Whether the pod was ever hardened or not.
        for old in hardened(&pod).map(|hardened| hardened.pod).into_iter().chain([pod]) {
            let (new, place) = debugged(&old, container.clone());
            match decide(Operation::AddEphemeralContainers { old: &old }, &new) {
                Verdict::Hardened(hardened) => {
                    let here = format!("spec.ephemeralContainers[{place}].");
                    prop_assert!(hardened.changes.iter().all(|change| change.path.starts_with(&here)));
                    hard::check_container(&hardened.pod["spec"]["ephemeralContainers"][place], false, &Value::Null);
                    let mut all_else = hardened.pod.clone();
                    all_else["spec"]["ephemeralContainers"][place] = container.clone();
                    prop_assert_eq!(&all_else, &new);
                    let mut patched = new.clone();
                    json_patch::patch(&mut patched, &hardened.patch).unwrap();
                    prop_assert_eq!(&patched, &hardened.pod);
                    let found = audit(&hardened.pod, &Policy::built_in());
                    prop_assert!(found.iter().all(|reason| !reason.field.starts_with(&here)), "{:?}", found);
                    match decide(Operation::AddEphemeralContainers { old: &old }, &hardened.pod) {
                        Verdict::Hardened(again) => prop_assert!(again.patch.0.is_empty(), "{:?}", again.patch),
                        other => prop_assert!(false, "{:?}", other),
                    }
                }
                Verdict::Refused(refusal) => {
                    let here = format!("spec.ephemeralContainers[{place}]");
                    prop_assert!(refusal.reasons.iter().all(|reason| reason.field.starts_with(&here)), "{}", refusal);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn who_changes_nothing_loosens_nothing(pod in pods::pod()) {
        let verdict = decide(Operation::Update { old: &pod }, &pod);
        prop_assert!(matches!(verdict, Verdict::Untouched(Untouched::NothingLoosened)), "{:?}", verdict);
    }

    #[test]
    fn an_update_to_a_hardened_pod_is_let_through_and_one_of_it_only_without_a_finding(
        pod in pods::pod(), other in pods::pod(),
    ) {
        if let Some(hardened) = hardened(&pod) {
            let verdict = decide(Operation::Update { old: &other }, &hardened.pod);
            prop_assert!(matches!(verdict, Verdict::Untouched(Untouched::NothingLoosened)), "{:?}", verdict);
            let found = audit(&other, &Policy::built_in());
            match decide(Operation::Update { old: &hardened.pod }, &other) {
                Verdict::Refused(refusal) => prop_assert_eq!(refusal.reasons, found),
                Verdict::Untouched(_) => prop_assert!(found.is_empty(), "{:?}", found),
                verdict => prop_assert!(false, "{:?}", verdict),
            }
        }
    }

    #[test]
    fn a_template_gets_nothing_that_its_controller_forbids_and_its_pods_need_no_more_warnings(
        pod in pods::pod(),
        (kind, owner) in select(vec![
            (Template::RunsForever, json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true })),
            (Template::RunsToCompletion, json!({ "apiVersion": "batch/v1", "kind": "Job", "controller": true })),
        ]),
    ) {
        let template = template(&pod);
        if let Verdict::Hardened(hardened) = decide(Operation::Template(kind), &template) {
            let (before, after) = (&template["spec"], &hardened.pod["spec"]);
            prop_assert_eq!(&after["restartPolicy"], &before["restartPolicy"]);
            if kind == Template::RunsForever {
                prop_assert!(!before["activeDeadlineSeconds"].is_null() || after["activeDeadlineSeconds"].is_null());
            }
            for (member, key) in [("labels", SESSION), ("annotations", HARDENED), ("annotations", CHANGES)] {
                prop_assert_eq!(&hardened.pod["metadata"][member][key], &template["metadata"][member][key]);
            }
            match decide(Operation::Template(kind), &hardened.pod) {
                Verdict::Hardened(again) => prop_assert!(again.patch.0.is_empty(), "{:?}", again.patch),
                other => prop_assert!(false, "{:?}", other),
            }
            let mut made = hardened.pod;
            made["metadata"]["ownerReferences"] = json!([owner]);
            match decide(Operation::Create, &made) {
                Verdict::Hardened(made) => prop_assert!(made.warnings.is_empty(), "{:?}", tightened(&made)),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn an_audit_finds_what_hardening_would_change_or_refuse_and_nothing_else(pod in pods::pod()) {
        let mut pod = pod;
        pod["metadata"]["labels"] = json!({ SESSION: "abc-1" });
        for natural in [("metadata", "annotations"), ("spec", "nodeName")] {
            if let Some(members) = pod[natural.0].as_object_mut() {
                members.remove(natural.1);
            }
        }
        let found = audit(&pod, &Policy::built_in());
        let found = audited(found.iter().map(|reason| (reason.rule, reason.field.as_str())));
        match decide(Operation::Create, &pod) {
            Verdict::Hardened(hardened) => {
                let changed = hardened.changes.iter().map(|change| (change.rule, change.path.as_str()));
                prop_assert_eq!(found, audited(changed));
            }
            Verdict::Refused(refusal) => {
                let refused = refusal.reasons.iter().map(|reason| (reason.rule, reason.field.as_str()));
                let unfound: Vec<_> = audited(refused).difference(&found).copied().collect();
                prop_assert!(unfound.is_empty(), "{:?}", unfound);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
