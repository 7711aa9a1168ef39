use serde_json::{Value, json};

use super::RULE;
use crate::{
    keys,
    policy::Policy,
    session::SessionId,
    testing::{UID, apply, fields, hardened, pod},
};

fn annotation<'p>(pod: &'p Value, key: &str) -> &'p str {
    pod["metadata"]["annotations"][key].as_str().unwrap()
}

#[test]
fn b20_a_pod_without_a_name_gets_its_id_from_the_request() {
    let applied = apply(&RULE, &pod(json!({ "containers": [] }))).unwrap();
    assert_eq!(applied.pod["metadata"]["labels"][keys::SESSION], json!(SessionId::derive(UID).as_str()));
    assert_eq!(applied.pod["metadata"]["generateName"], json!("s-"));
}

#[test]
fn the_mark_names_version_profile_and_policy() {
    let applied = apply(&RULE, &pod(json!({ "containers": [] }))).unwrap();
    let mark: Value = serde_json::from_str(annotation(&applied.pod, keys::HARDENED)).unwrap();
    let digest = Policy::built_in().digest().to_owned();
    assert_eq!(mark, json!({ "version": env!("CARGO_PKG_VERSION"), "profile": "default", "policy": digest }));
}

#[test]
fn the_changes_are_on_the_pod_tightened_ones_first() {
    let security = json!({ "privileged": true });
    let hardened = hardened(&pod(json!({ "containers": [{ "name": "a", "securityContext": security }] })));
    let changes: Vec<Value> = serde_json::from_str(annotation(&hardened.pod, keys::CHANGES)).unwrap();
    assert_eq!(changes.len(), hardened.changes.len());
    assert_eq!(
        changes[0],
        json!({
            "rule": "privilege", "path": "spec.containers[0].securityContext.privileged",
            "action": "tighten", "old": true, "new": false,
        })
    );
    assert!(changes[1..].iter().all(|change| change["action"] == "inject"));
}

#[test]
fn forged_marks_are_replaced_and_those_of_agents_and_api_are_removed() {
    let mut pod = pod(json!({ "containers": [] }));
    pod["metadata"]["annotations"] = json!({
        keys::HARDENED: "true",
        keys::CHANGES: "token=tok-123",
        keys::ENDPOINTS: "{\"v\":1}",
        keys::STOPPED: "2026-01-02T03:04:05Z",
        keys::REFUSED: "{}",
        "team": "blue",
    });
    let applied = apply(&RULE, &pod).unwrap();
    assert!(!applied.pod.to_string().contains("tok-123"));
    assert_eq!(annotation(&applied.pod, "team"), "blue");
    let removed = [keys::ENDPOINTS, keys::STOPPED, keys::REFUSED];
    assert!(removed.iter().all(|key| applied.pod["metadata"]["annotations"].get(key).is_none()), "{}", applied.pod);
    assert_eq!(applied.warnings, removed.map(|key| format!("metadata.annotations[{key}]: removed (marks)")));
    let mark: Value = serde_json::from_str(annotation(&applied.pod, keys::HARDENED)).unwrap();
    assert_eq!(mark["profile"], json!("default"));
}

#[test]
fn annotations_that_are_no_strings_are_refused() {
    let mut pod = pod(json!({ "containers": [] }));
    pod["metadata"]["annotations"] = json!({ keys::CHANGES: {} });
    assert_eq!(fields(&apply(&RULE, &pod).err().unwrap()), ["metadata.annotations[cofferdam.dev/changes]"]);
    pod["metadata"]["annotations"] = json!("{}");
    assert_eq!(fields(&apply(&RULE, &pod).err().unwrap()), ["metadata.annotations"]);
}
