use serde_json::{Value, json};

use super::RULE;
use crate::testing::{apply, fields, pod};

fn with(list: &str, mount: &Value) -> Value {
    pod(json!({ list: [{ "name": "a", "volumeMounts": [{ "name": "v", "mountPath": "/v" }, mount] }] }))
}

#[test]
fn later_mounts_pass_in_no_direction_in_any_list() {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for propagation in ["HostToContainer", "Bidirectional"] {
            let applied = apply(&RULE, &with(list, &json!({ "mountPropagation": propagation }))).unwrap();
            assert_eq!(applied.spec(&format!("/{list}/0/volumeMounts/1/mountPropagation")), "None");
            let field = format!("spec.{list}[0].volumeMounts[1].mountPropagation");
            assert_eq!(applied.warnings, [format!("{field}: {propagation}, now None (mounts)")]);
        }
    }
}

#[test]
fn what_passes_no_mounts_on_stays_as_it_is() {
    for propagation in [json!("None"), json!(null)] {
        let pod = with("containers", &json!({ "mountPropagation": propagation, "recursiveReadOnly": "Enabled" }));
        let applied = apply(&RULE, &pod).unwrap();
        assert_eq!(applied.pod, pod);
        assert!(applied.changes.is_empty());
    }
}

#[test]
fn a_path_that_leads_out_of_the_volume_is_refused_in_both_spellings() {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for field in ["subPath", "subPathExpr"] {
            for path in ["/", "/etc", "..", "../etc", "a/../../b", "a/..", "$(POD)/../x"] {
                let refusal = apply(&RULE, &with(list, &json!({ field: path }))).err().unwrap();
                assert_eq!(fields(&refusal), [format!("spec.{list}[0].volumeMounts[1].{field}")], "{path}");
            }
        }
    }
    let refusal = apply(&RULE, &with("containers", &json!({ "subPath": ["a"] }))).err().unwrap();
    assert_eq!(fields(&refusal), ["spec.containers[0].volumeMounts[1].subPath"]);
}

#[test]
fn a_path_within_the_volume_passes() {
    for field in ["subPath", "subPathExpr"] {
        for path in ["", "a", "a/b/", "./a", "..a", "a..", "...", "a/..b/c", "$(POD_NAME)", "logs/$(POD_NAME)"] {
            assert!(apply(&RULE, &with("containers", &json!({ field: path }))).unwrap().changes.is_empty(), "{path}");
        }
    }
}
