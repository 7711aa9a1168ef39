use serde_json::json;

use super::RULE;
use crate::testing::{apply, pod};

#[test]
fn what_the_api_server_filled_in_is_changed_silently_and_what_was_asked_for_is_told() {
    let applied = apply(&RULE, &pod(json!({ "enableServiceLinks": true, "containers": [] }))).unwrap();
    assert_eq!(applied.spec("/enableServiceLinks"), &json!(false));
    assert_eq!(applied.spec("/shareProcessNamespace"), &json!(false));
    assert!(applied.warnings.is_empty());

    let applied = apply(&RULE, &pod(json!({ "shareProcessNamespace": true, "containers": [] }))).unwrap();
    assert_eq!(applied.spec("/enableServiceLinks"), &json!(false));
    assert_eq!(applied.warnings, ["spec.shareProcessNamespace: true, now false (sharing)"]);
}
