use serde_json::json;

use super::RULE;
use crate::testing::{apply, pod};

#[test]
fn every_container_gets_a_read_only_root_and_who_asked_otherwise_is_told() {
    let applied = apply(
        &RULE,
        &pod(json!({
            "containers": [{ "name": "a" }, { "name": "b", "securityContext": { "readOnlyRootFilesystem": true } }],
            "initContainers": [{ "name": "i", "securityContext": { "readOnlyRootFilesystem": false } }],
            "ephemeralContainers": [{ "name": "e" }],
        })),
    )
    .unwrap();
    for container in ["containers/0", "containers/1", "initContainers/0", "ephemeralContainers/0"] {
        let context = applied.spec(&format!("/{container}/securityContext"));
        assert_eq!(context, &json!({ "readOnlyRootFilesystem": true }), "{container}");
    }
    assert_eq!(
        applied.warnings,
        ["spec.initContainers[0].securityContext.readOnlyRootFilesystem: false, now true (read-only-root)"]
    );
    assert_eq!(applied.injected().len(), 2);
}
