//! What holds for every pod, however hostile, and not only for those that somebody thought of.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::LazyLock;

use cofferdam_model::{
    Action, Hardened, Operation, Request, Scope, User, Verdict, audit, harden,
    keys::{CHANGES, RESERVED_NAME},
    policy::Policy,
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use serde_json::{Value, json};

#[path = "properties/corpus.rs"]
mod corpus;
#[path = "properties/hard.rs"]
mod hard;
#[path = "properties/operations.rs"]
mod operations;
#[path = "properties/placed.rs"]
mod placed;
#[path = "properties/pod_level.rs"]
mod pod_level;
#[path = "properties/pods.rs"]
mod pods;
#[path = "properties/sessions.rs"]
mod sessions;

/// Read once: reading it takes longer than hardening a pod.
static POLICY: LazyLock<Policy> = LazyLock::new(Policy::built_in);
#[path = "properties/strict.rs"]
mod strict;

fn verdict(uid: &str, pod: &Value) -> Verdict {
    let user = User { name: "jane", groups: &[] };
    let (namespace, scope, operation) = ("cofferdam-sessions", Scope::Enforced, Operation::Create);
    let request = Request { uid: Some(uid), namespace, scope, user, operation, pod };
    harden(&request, &POLICY)
}

fn hardened(pod: &Value) -> Option<Hardened> {
    match verdict("u-1", pod) {
        Verdict::Hardened(hardened) => Some(hardened),
        _ => None,
    }
}

/// Every pod has all of these, so the properties below are not about nothing.
#[test]
fn the_generator_makes_pods_that_are_hardened_and_pods_that_are_refused() {
    let mut runner = TestRunner::deterministic();
    let sample: Vec<Option<Hardened>> =
        (0..400).map(|_| hardened(&pods::pod().new_tree(&mut runner).unwrap().current())).collect();
    let passed: Vec<&Hardened> = sample.iter().flatten().collect();
    assert!(passed.len() > 100 && passed.len() < 390, "{}", passed.len());
    assert!(passed.iter().any(|hardened| hardened.warnings.len() > 10));
    assert!(passed.iter().any(|hardened| hard::without_fetch(&hardened.pod) != hardened.pod));
    assert!(passed.iter().any(|hardened| hardened.changes.iter().all(|change| change.action == Action::Inject)));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_leaves_is_hard(pod in pods::pod()) {
        if let Some(hardened) = hardened(&pod) {
            hard::check(&hardened.pod);
        }
    }

    #[test]
    fn the_patch_applied_to_the_original_gives_the_hardened_pod(pod in pods::pod()) {
        if let Some(hardened) = hardened(&pod) {
            let mut patched = pod;
            json_patch::patch(&mut patched, &hardened.patch).unwrap();
            prop_assert_eq!(patched, hardened.pod);
        }
    }

    #[test]
    fn hardening_twice_changes_nothing(pod in pods::pod()) {
        if let Some(first) = hardened(&pod) {
            match verdict("u-2", &first.pod) {
                Verdict::Hardened(second) => {
                    prop_assert!(second.patch.0.is_empty(), "{:?}", second.patch);
                    prop_assert!(second.changes.is_empty() && second.warnings.is_empty(), "{:?}", second.changes);
                    prop_assert_eq!(second.session, first.session);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn an_audit_of_a_hardened_pod_finds_nothing(pod in pods::pod()) {
        if let Some(hardened) = hardened(&pod) {
            let found = audit(&hardened.pod, &POLICY);
            prop_assert!(found.is_empty(), "{:?}", found);
        }
    }

    #[test]
    fn members_that_nobody_knows_survive(pod in pods::pod()) {
        if let Some(hardened) = hardened(&pod) {
            let (mut before, mut after) = (Vec::new(), Vec::new());
            pods::unknown(&pod, &mut String::new(), &mut before);
            pods::unknown(&hardened.pod, &mut String::new(), &mut after);
            prop_assert_eq!(before, after);
        }
    }

    #[test]
    fn the_order_of_containers_never_changes(pod in pods::pod()) {
        let names = |pod: &Value, list: &str| -> Vec<Value> {
            pod["spec"][list].as_array().into_iter().flatten().map(|container| container["name"].clone()).collect()
        };
        if let Some(hardened) = hardened(&pod) {
            for list in ["containers", "initContainers", "ephemeralContainers"] {
                prop_assert_eq!(names(&pod, list), names(&hard::without_fetch(&hardened.pod), list));
            }
        }
    }

    #[test]
    fn what_the_author_set_stricter_stays(pod in pods::pod()) {
        if let Some(hardened) = hardened(&pod) {
            let after = hard::without_fetch(&hardened.pod);
            for pointer in hard::strict_already(&pod) {
                prop_assert_eq!(after.pointer(&pointer), pod.pointer(&pointer), "{}", pointer);
            }
        }
    }

    #[test]
    fn warnings_equal_the_tightened_fields_with_the_rest_counted(pod in pods::pod()) {
        if let Some(hardened) = hardened(&pod) {
            let tightened = hardened.changes.iter().filter(|change| change.action == Action::Tighten).count();
            prop_assert!(hardened.warnings.iter().all(|warning| warning.len() <= 256));
            prop_assert!(hardened.warnings.iter().map(String::len).sum::<usize>() <= 4096);
            let counted = hardened.warnings.last().and_then(|last| last.split_once(" more fields"));
            let shown = hardened.warnings.len() - usize::from(counted.is_some());
            let rest = counted.map_or(0, |(rest, _)| rest.parse().unwrap());
            prop_assert_eq!(shown + rest, tightened);
        }
    }

    #[test]
    fn the_recorded_changes_fit_their_annotation(pod in pods::pod()) {
        if let Some(hardened) = hardened(&pod) {
            let text = hardened.pod["metadata"]["annotations"][CHANGES].as_str().unwrap();
            prop_assert!(text.len() <= 4096);
            let items: Vec<Value> = serde_json::from_str(text).unwrap();
            let listed = items.iter().filter(|item| item.get("more").is_none()).count();
            let more = items.last().and_then(|item| item["more"].as_u64()).unwrap_or(0);
            prop_assert_eq!(listed + usize::try_from(more).unwrap(), hardened.changes.len());
        }
    }

    #[test]
    fn any_value_in_any_place_is_hardened_or_refused(
        pod in pods::pod(), place in any::<prop::sample::Index>(), value in pods::junk(),
    ) {
        let mut pointers = Vec::new();
        pods::pointers(&pod, &mut String::new(), &mut pointers);
        let mut pod = pod;
        let pointer = place.get(&pointers);
        *pod.pointer_mut(pointer).unwrap() = value;
        match verdict("u-1", &pod) {
            Verdict::Hardened(hardened) => hard::check(&hardened.pod),
            Verdict::Refused(refusal) => prop_assert!(!refusal.reasons.is_empty()),
            other @ (Verdict::Untouched(_) | Verdict::Advised(_)) => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn any_json_at_all_gets_an_answer(junk in pods::junk()) {
        let _ = verdict("u-1", &junk);
        let _ = verdict("u-1", &json!({ "metadata": junk, "spec": junk }));
    }

    #[test]
    fn any_text_is_a_policy_or_an_error_of_one_line(text in "(?s).*", key in "[a-zA-Z]{1,12}") {
        for text in [text, format!("profiles:\n  default:\n    {key}: {{}}\n")] {
            if let Err(error) = Policy::parse("policy.yaml", &text) {
                let line = error.to_string();
                prop_assert!(line.starts_with("policy.yaml:") && !line.contains(char::is_control), "{:?}", line);
            }
        }
    }

    #[test]
    fn a_name_that_begins_like_ours_is_never_an_authors(pod in pods::pod(), suffix in "[a-z]{1,8}") {
        let mut pod = pod;
        pod["spec"]["containers"][0] = json!({ "name": format!("{RESERVED_NAME}{suffix}") });
        prop_assert!(matches!(verdict("u-1", &pod), Verdict::Refused(_)));
    }
}
