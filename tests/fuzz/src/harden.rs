//! Hardening: any JSON is a pod that is hardened once and for all, or refused.

use std::sync::LazyLock;

use cofferdam_model::{
    Hardened, Operation, Request, Scope, Template, Untouched, User, Verdict, audit, harden, keys, policy::Policy,
};
use serde_json::Value;

use crate::hard;

/// Takes the bytes for a pod, and holds what the built-in policy makes of it against what is promised.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    static BUILT_IN: LazyLock<Policy> = LazyLock::new(Policy::built_in);

    let Ok(pod) = serde_json::from_slice(bytes) else { return };
    let hardened = created(&pod, &BUILT_IN);
    if let Some(hardened) = &hardened
        && hardened.profile == keys::DEFAULT_PROFILE
    {
        hard::check(&hardened.pod);
    }
    // One of these for each input, since all of them would take thrice the time.
    match bytes.len() % 3 {
        0 => check_template(&pod, &BUILT_IN),
        1 => check_update(&pod, hardened.as_ref(), &BUILT_IN),
        _ => check_debugging(&pod, hardened.as_ref(), &BUILT_IN),
    }
}

/// Creates a pod by any policy.
///
/// # Panics
/// A promise is broken.
pub fn check_creation(pod: &Value, policy: &Policy) {
    created(pod, policy);
}

fn created(pod: &Value, policy: &Policy) -> Option<Hardened> {
    let hardened = check_twice(Operation::Create, pod, policy)?;
    let found = audit(&hardened.pod, policy);
    assert!(found.is_empty(), "an audit finds something in a hardened pod: {found:?}");
    Some(hardened)
}

fn check_template(pod: &Value, policy: &Policy) {
    for template in [Template::RunsForever, Template::RunsToCompletion] {
        check_twice(Operation::Template(template), pod, policy);
    }
}

fn check_update(pod: &Value, hardened: Option<&Hardened>, policy: &Policy) {
    let verdict = ask("u-1", Operation::Update { old: pod }, pod, policy);
    assert!(matches!(verdict, Verdict::Untouched(Untouched::NothingLoosened)), "nothing is updated: {verdict:?}");
    if let Some(hardened) = hardened {
        let verdict = ask("u-1", Operation::Update { old: pod }, &hardened.pod, policy);
        assert!(matches!(verdict, Verdict::Untouched(_)), "hardening a live pod loosens it: {verdict:?}");
        // The other way round either may come out, but something must.
        ask("u-1", Operation::Update { old: &hardened.pod }, pod, policy);
    }
}

fn check_debugging(pod: &Value, hardened: Option<&Hardened>, policy: &Policy) {
    // What else an author changes, the API server does not take from this request.
    ask("u-1", Operation::AddEphemeralContainers { old: &Value::Null }, pod, policy);
    let Some(hardened) = hardened else { return };
    ask("u-1", Operation::AddEphemeralContainers { old: pod }, &hardened.pod, policy);
    let containers = &pod["spec"]["ephemeralContainers"];
    let mut old = hardened.pod.clone();
    if let Some(spec) = old["spec"].as_object_mut() {
        spec.remove("ephemeralContainers");
    }
    let mut new = old.clone();
    new["spec"]["ephemeralContainers"] = containers.clone();
    check_twice(Operation::AddEphemeralContainers { old: &old }, &new, policy);
}

/// Asks once, and asks again about the answer.
fn check_twice(operation: Operation<'_>, pod: &Value, policy: &Policy) -> Option<Hardened> {
    let first = match ask("u-1", operation, pod, policy) {
        Verdict::Hardened(hardened) => hardened,
        Verdict::Refused(refusal) => {
            assert!(!refusal.reasons.is_empty(), "refused without a reason");
            return None;
        }
        other => panic!("a pod of an enforced namespace is let through: {other:?}"),
    };
    let mut patched = pod.clone();
    json_patch::patch(&mut patched, &first.patch).unwrap_or_else(|error| panic!("the patch does not apply: {error}"));
    assert_eq!(patched, first.pod, "the patch makes another pod: {}", first.patch);
    assert!(first.warnings.iter().all(|warning| warning.len() <= 256), "a warning is too long");
    assert!(first.warnings.iter().map(String::len).sum::<usize>() <= 4096, "the warnings are too long");

    match ask("u-2", operation, &first.pod, policy) {
        Verdict::Hardened(second) => {
            assert!(second.patch.is_empty(), "a second pass has something to do: {}", second.patch);
            assert!(second.changes.is_empty(), "a second pass records changes: {:?}", second.changes);
            assert!(second.warnings.is_empty(), "a second pass warns: {:?}", second.warnings);
            if matches!(operation, Operation::Create) {
                assert_eq!(second.session, first.session, "a second pass names another session");
            }
            assert_eq!(second.profile, first.profile, "a second pass goes by another profile");
        }
        other => panic!("a hardened pod is not hardened again: {other:?}"),
    }
    Some(first)
}

fn ask(uid: &str, operation: Operation<'_>, pod: &Value, policy: &Policy) -> Verdict {
    let user = User { name: "jane", groups: &[] };
    let (namespace, scope) = ("cofferdam-sessions", Scope::Enforced);
    harden(&Request { uid: Some(uid), namespace, scope, user, operation, pod }, policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pods_to_begin_with_get_through_the_rules() {
        // One that is refused is judged no further, and what is grown from it mostly is refused too.
        for pod in [
            include_str!("../corpus/harden/plain.json"),
            include_str!("../corpus/harden/tightened.json"),
            include_str!("../corpus/harden/controlled.json"),
        ] {
            let pod = serde_json::from_str(pod).unwrap();
            assert!(created(&pod, &Policy::built_in()).is_some(), "{pod}");
        }
    }
}
