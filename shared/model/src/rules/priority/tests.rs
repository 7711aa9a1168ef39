use serde_json::json;

use super::RULE;
use crate::{
    policy::Profile,
    testing::{apply, apply_with, fields, pod},
};

#[test]
fn what_a_class_resolved_to_is_judged_and_not_its_name() {
    let mut profile = Profile::default();
    for (most, priority, is_allowed) in [
        (0, json!(null), true),
        (0, json!(0), true),
        (0, json!(-1), true),
        (0, json!(1), false),
        (0, json!(2_000_001_000), false),
        (1000, json!(1000), true),
        (1000, json!(1001), false),
        (-5, json!(0), false),
    ] {
        profile.scheduling.max_priority = most;
        let pod = pod(json!({ "priority": priority, "priorityClassName": "system-node-critical" }));
        match apply_with(&RULE, &pod, &profile) {
            Ok(applied) => assert!(is_allowed && applied.changes.is_empty(), "{most} {priority}"),
            Err(refusal) => {
                assert!(!is_allowed, "{most} {priority}");
                assert_eq!(fields(&refusal), ["spec.priority"]);
            }
        }
    }
    assert_eq!(fields(&apply(&RULE, &pod(json!({ "priority": "high" }))).err().unwrap()), ["spec.priority"]);
}

#[test]
fn a_refusal_says_that_a_clusters_default_may_be_the_reason() {
    let text = apply(&RULE, &pod(json!({ "priority": 7 }))).err().unwrap().to_string();
    assert!(text.contains("spec.priority: is 7, and the profile allows 0; name a priorityClassName"), "{text}");
    assert!(text.contains("default class"), "{text}");
}
