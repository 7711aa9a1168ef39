use serde_json::json;

use super::RULE;
use crate::{
    policy::{Policy, Profile},
    rules::Occasion,
    testing::{apply, apply_under, fields, pod},
};

#[test]
fn a_container_or_volume_named_like_ours_is_refused() {
    let spec = json!({
        "containers": [{ "name": "cofferdam-fetch" }, { "name": "cofferdam" }],
        "initContainers": [{ "name": "cofferdam-" }],
        "volumes": [{ "name": "cofferdam-x", "emptyDir": {} }, { "name": "my-cofferdam-x", "emptyDir": {} }],
    });
    let refusal = apply(&RULE, &pod(spec)).err().unwrap();
    assert_eq!(fields(&refusal), ["spec.containers[0].name", "spec.initContainers[0].name", "spec.volumes[0].name"]);
}

#[test]
fn a_scratch_volume_is_ours_by_its_content_and_not_by_its_name() {
    let ours = json!({ "name": "cofferdam-tmp", "emptyDir": { "sizeLimit": "256Mi" } });
    assert!(apply(&RULE, &pod(json!({ "containers": [], "volumes": [ours] }))).is_ok());
    for foreign in [
        json!({ "name": "cofferdam-tmp", "emptyDir": { "sizeLimit": "257Mi" } }),
        json!({ "name": "cofferdam-tmp", "emptyDir": { "sizeLimit": "256Mi", "medium": "Memory" } }),
        json!({ "name": "cofferdam-tmp", "persistentVolumeClaim": { "claimName": "c" } }),
        json!({ "name": "cofferdam-tmp" }),
    ] {
        let refusal = apply(&RULE, &pod(json!({ "containers": [], "volumes": [foreign] }))).err().unwrap();
        assert_eq!(fields(&refusal), ["spec.volumes[0].name"], "{foreign}");
    }
}

#[test]
fn a_live_pods_names_are_no_finding_and_who_mounts_a_credential_is() {
    let live = pod(json!({
        "containers": [{ "name": "a", "volumeMounts": [{ "name": "cofferdam-body-token", "mountPath": "/x" }] }],
        "initContainers": [{
            "name": "cofferdam-fetch", "image": "an-earlier-one",
            "volumeMounts": [{ "name": "cofferdam-body-token", "mountPath": "/t" }],
        }],
        "volumes": [{ "name": "cofferdam-an-earlier-one", "emptyDir": {} }],
    }));
    let refusal = apply_under(&[RULE], &live, &Profile::default(), &Policy::built_in(), Occasion::Audit).err().unwrap();
    assert_eq!(fields(&refusal), ["spec.containers[0].volumeMounts[0].name"]);
}
