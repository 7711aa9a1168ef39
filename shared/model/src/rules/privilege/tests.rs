use serde_json::{Value, json};

use super::RULE;
use crate::testing::{apply, fields, pod};

fn locked() -> Value {
    json!({ "privileged": false, "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } })
}

#[test]
fn a_container_that_says_nothing_is_locked_silently() {
    let applied = apply(&RULE, &pod(json!({ "containers": [{ "name": "a" }] }))).unwrap();
    assert_eq!(applied.spec("/containers/0/securityContext"), &locked());
    assert!(applied.warnings.is_empty());
}

#[test]
fn b46_a_privileged_container_becomes_fully_unprivileged_in_one_go() {
    let security = json!({
        "privileged": true, "allowPrivilegeEscalation": true, "capabilities": { "add": ["SYS_ADMIN", "CAP_NET_RAW"] },
    });
    let applied = apply(&RULE, &pod(json!({ "containers": [{ "name": "a", "securityContext": security }] }))).unwrap();
    assert_eq!(applied.spec("/containers/0/securityContext"), &locked());
    assert_eq!(
        applied.warnings,
        [
            "spec.containers[0].securityContext.privileged: true, now false (privilege)",
            "spec.containers[0].securityContext.allowPrivilegeEscalation: true, now false (privilege)",
            "spec.containers[0].securityContext.capabilities.add: [SYS_ADMIN, CAP_NET_RAW], removed (privilege)",
        ]
    );
}

#[test]
fn b38_init_and_ephemeral_containers_are_locked_like_the_others() {
    let open = json!({ "privileged": true, "allowPrivilegeEscalation": true });
    let applied = apply(
        &RULE,
        &pod(json!({
            "containers": [{ "name": "a", "securityContext": { "privileged": false } }],
            "initContainers": [{ "name": "i", "securityContext": open }],
            "ephemeralContainers": [{ "name": "e", "securityContext": open }],
        })),
    )
    .unwrap();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        assert_eq!(applied.spec(&format!("/{list}/0/securityContext")), &locked(), "{list}");
    }
    assert_eq!(applied.warnings.len(), 4);
}

#[test]
fn b40_drop_carries_exactly_all_however_it_was_spelled() {
    for (drop, warnings) in [
        (json!(["ALL"]), &[][..]),
        (json!(["all"]), &[]),
        (json!(["CAP_ALL"]), &[]),
        (json!(["cap_all", "NET_RAW"]), &[]),
        (json!(["ALL", "NET_RAW"]), &[]),
        (json!([]), &[]),
        (
            json!(["NET_RAW"]),
            &["spec.containers[0].securityContext.capabilities.drop: [NET_RAW], now [ALL] (privilege)"],
        ),
    ] {
        let security = json!({ "capabilities": { "drop": drop } });
        let applied =
            apply(&RULE, &pod(json!({ "containers": [{ "name": "a", "securityContext": security }] }))).unwrap();
        assert_eq!(applied.spec("/containers/0/securityContext/capabilities"), &json!({ "drop": ["ALL"] }));
        assert_eq!(applied.warnings, warnings, "{drop}");
    }
}

#[test]
fn nothing_is_added_even_what_podsecurity_would_admit() {
    let security = json!({ "capabilities": { "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] } });
    let applied = apply(&RULE, &pod(json!({ "containers": [{ "name": "a", "securityContext": security }] }))).unwrap();
    assert_eq!(applied.spec("/containers/0/securityContext/capabilities"), &json!({ "drop": ["ALL"] }));
    assert_eq!(applied.warnings.len(), 1);
}

#[test]
fn what_is_no_capability_is_removed_untold() {
    let security = json!({ "capabilities": { "add": ["hunter2-xyz"] } });
    let applied = apply(&RULE, &pod(json!({ "containers": [{ "name": "a", "securityContext": security }] }))).unwrap();
    assert_eq!(applied.warnings, ["spec.containers[0].securityContext.capabilities.add: removed (privilege)"]);
}

#[test]
fn a_wrong_type_is_refused_by_its_path() {
    for (security, field) in [
        (json!({ "privileged": "true" }), "privileged"),
        (json!({ "allowPrivilegeEscalation": 1 }), "allowPrivilegeEscalation"),
        (json!({ "capabilities": [] }), "capabilities"),
        (json!({ "capabilities": { "add": "ALL" } }), "capabilities.add"),
        (json!({ "capabilities": { "drop": [true] } }), "capabilities.drop[0]"),
    ] {
        let spec = json!({ "containers": [{ "name": "a", "securityContext": security }] });
        let refusal = apply(&RULE, &pod(spec)).err().unwrap();
        assert_eq!(fields(&refusal), [format!("spec.containers[0].securityContext.{field}")]);
    }
    let refusal = apply(&RULE, &pod(json!({ "containers": [{ "securityContext": "none" }] }))).err().unwrap();
    assert_eq!(fields(&refusal), ["spec.containers[0].securityContext"]);
}
