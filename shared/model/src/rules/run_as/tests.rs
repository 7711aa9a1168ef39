use serde_json::json;

use super::RULE;
use crate::{
    policy::{Profile, SupplementalGroups},
    testing::{apply, apply_with, fields, pod},
};

#[test]
fn b44_a_pod_that_names_no_user_gets_numbers_silently() {
    let applied = apply(&RULE, &pod(json!({ "containers": [{ "name": "a" }] }))).unwrap();
    assert_eq!(
        applied.spec("/securityContext"),
        &json!({ "runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000 })
    );
    assert_eq!(applied.spec("/containers/0"), &json!({ "name": "a" }));
    assert!(applied.warnings.is_empty());
}

#[test]
fn b42_a_container_that_overrides_with_root_gets_the_pods_numbers() {
    let spec = json!({
        "securityContext": {
            "runAsNonRoot": false, "runAsUser": 2000, "runAsGroup": 0, "fsGroup": 0, "supplementalGroups": [0, 5, 0],
        },
        "containers": [
            { "name": "a", "securityContext": { "runAsUser": 0, "runAsGroup": 0 } },
            { "name": "b", "securityContext": { "runAsNonRoot": false } },
        ],
        "initContainers": [{ "name": "i", "securityContext": { "runAsUser": 0 } }],
        "ephemeralContainers": [{ "name": "e", "securityContext": { "runAsGroup": 0 } }],
    });
    let applied = apply(&RULE, &pod(spec)).unwrap();
    assert_eq!(
        applied.spec("/securityContext"),
        &json!({
            "runAsNonRoot": true, "runAsUser": 2000, "runAsGroup": 1000, "fsGroup": 1000, "supplementalGroups": [5],
        })
    );
    assert_eq!(applied.spec("/containers/0/securityContext"), &json!({ "runAsUser": 2000, "runAsGroup": 1000 }));
    assert_eq!(applied.spec("/containers/1/securityContext"), &json!({ "runAsNonRoot": true }));
    assert_eq!(applied.spec("/initContainers/0/securityContext"), &json!({ "runAsUser": 2000 }));
    assert_eq!(applied.spec("/ephemeralContainers/0/securityContext"), &json!({ "runAsGroup": 1000 }));
    assert_eq!(
        applied.warnings,
        [
            "spec.securityContext.runAsNonRoot: false, now true (run-as)",
            "spec.securityContext.runAsGroup: 0, now 1000 (run-as)",
            "spec.securityContext.fsGroup: 0, now 1000 (run-as)",
            "spec.securityContext.supplementalGroups[0]: 0, removed (run-as)",
            "spec.securityContext.supplementalGroups[2]: 0, removed (run-as)",
            "spec.containers[0].securityContext.runAsUser: 0, now 2000 (run-as)",
            "spec.containers[0].securityContext.runAsGroup: 0, now 1000 (run-as)",
            "spec.containers[1].securityContext.runAsNonRoot: false, now true (run-as)",
            "spec.initContainers[0].securityContext.runAsUser: 0, now 2000 (run-as)",
            "spec.ephemeralContainers[0].securityContext.runAsGroup: 0, now 1000 (run-as)",
        ]
    );
}

#[test]
fn other_numbers_stay() {
    let context = json!({ "runAsNonRoot": true, "runAsUser": 7, "runAsGroup": 8, "fsGroup": 9 });
    let own = json!({ "runAsNonRoot": true, "runAsUser": 70, "runAsGroup": 80 });
    let spec = json!({ "securityContext": context, "containers": [{ "name": "a", "securityContext": own }] });
    let applied = apply(&RULE, &pod(spec.clone())).unwrap();
    assert_eq!(applied.pod["spec"], spec);
    assert!(applied.changes.is_empty());
}

#[test]
fn a_user_that_is_no_whole_number_is_refused_by_its_path() {
    for bad in [json!("0"), json!(0.5), json!([0]), json!({}), json!(true), json!(1e300)] {
        let spec = json!({ "containers": [{ "name": "a", "securityContext": { "runAsUser": bad } }] });
        let refusal = apply(&RULE, &pod(spec)).err().unwrap();
        assert_eq!(fields(&refusal), ["spec.containers[0].securityContext.runAsUser"]);
    }
    let spec = json!({ "securityContext": { "supplementalGroups": ["0"] }, "containers": [] });
    assert_eq!(fields(&apply(&RULE, &pod(spec)).err().unwrap()), ["spec.securityContext.supplementalGroups[0]"]);
}

#[test]
fn a_profile_may_keep_the_images_own_groups_away() {
    let profile = Profile { supplemental_groups: SupplementalGroups::Strict, ..Profile::default() };
    let policy = "/securityContext/supplementalGroupsPolicy";
    for (before, warnings) in [
        (json!(null), &[][..]),
        (json!("Strict"), &[]),
        (json!("Merge"), &["spec.securityContext.supplementalGroupsPolicy: Merge, now Strict (run-as)"]),
    ] {
        let pod = pod(json!({ "securityContext": { "supplementalGroupsPolicy": before } }));
        let applied = apply_with(&RULE, &pod, &profile).unwrap();
        assert_eq!(applied.spec(policy), "Strict");
        assert_eq!(applied.warnings, warnings);
        assert_eq!(apply(&RULE, &pod).unwrap().spec(policy), &before);
    }
}
