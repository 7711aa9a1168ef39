use serde_json::{Value, json};

use super::RULE;
use crate::testing::{apply, fields, pod};

fn with_volume(volume: &Value) -> Value {
    pod(json!({ "containers": [], "volumes": [volume] }))
}

#[test]
fn every_empty_dir_ends_up_sized_within_its_ceiling() {
    for (before, after, warnings) in [
        (json!({}), json!({ "sizeLimit": "1Gi" }), &[][..]),
        (json!({ "sizeLimit": "0" }), json!({ "sizeLimit": "1Gi" }), &[]),
        (json!({ "sizeLimit": 0 }), json!({ "sizeLimit": "1Gi" }), &[]),
        (json!({ "sizeLimit": "10Mi" }), json!({ "sizeLimit": "10Mi" }), &[]),
        (json!({ "sizeLimit": "1024Mi" }), json!({ "sizeLimit": "1024Mi" }), &[]),
        (json!({ "medium": "" }), json!({ "medium": "", "sizeLimit": "1Gi" }), &[]),
        (
            json!({ "sizeLimit": "64Gi" }),
            json!({ "sizeLimit": "1Gi" }),
            &["spec.volumes[0].emptyDir.sizeLimit: 64Gi, now 1Gi (empty-dir)"],
        ),
        (json!({ "medium": "Memory" }), json!({ "medium": "Memory", "sizeLimit": "512Mi" }), &[]),
        (
            json!({ "medium": "Memory", "sizeLimit": "1Gi" }),
            json!({ "medium": "Memory", "sizeLimit": "512Mi" }),
            &["spec.volumes[0].emptyDir.sizeLimit: 1Gi, now 512Mi (empty-dir)"],
        ),
    ] {
        let applied = apply(&RULE, &with_volume(&json!({ "name": "v", "emptyDir": before }))).unwrap();
        assert_eq!(applied.spec("/volumes/0/emptyDir"), &after, "{before}");
        assert_eq!(applied.warnings, warnings, "{before}");
    }
}

#[test]
fn a_volume_without_a_source_is_the_empty_dir_that_the_server_makes_of_it() {
    let applied = apply(&RULE, &with_volume(&json!({ "name": "v" }))).unwrap();
    assert_eq!(applied.spec("/volumes/0"), &json!({ "name": "v", "emptyDir": { "sizeLimit": "1Gi" } }));
}

#[test]
fn other_volumes_stay_as_they_are() {
    let volume = json!({ "name": "v", "configMap": { "name": "c" } });
    assert!(apply(&RULE, &with_volume(&volume)).unwrap().changes.is_empty());
}

#[test]
fn huge_pages_and_garbage_are_refused() {
    for (empty_dir, field) in [
        (json!({ "medium": "HugePages-2Mi" }), "medium"),
        (json!({ "medium": 5 }), "medium"),
        (json!({ "sizeLimit": "lots" }), "sizeLimit"),
        (json!({ "sizeLimit": "-1Gi" }), "sizeLimit"),
        (json!({ "sizeLimit": true }), "sizeLimit"),
    ] {
        let refusal = apply(&RULE, &with_volume(&json!({ "name": "v", "emptyDir": empty_dir }))).err().unwrap();
        assert_eq!(fields(&refusal), [format!("spec.volumes[0].emptyDir.{field}")], "{empty_dir}");
    }
}
