use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::{Policy, Profile},
    rules::body,
    testing::{apply, apply_with, pod},
};

/// What the `ServiceAccount` plugin of a real API server puts in.
fn plugins_volume() -> Value {
    json!({
        "name": "kube-api-access-7xkq2",
        "projected": {
            "defaultMode": 420,
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
                { "configMap": { "items": [{ "key": "ca.crt", "path": "ca.crt" }], "name": "kube-root-ca.crt" } },
                { "downwardAPI": { "items": [{
                    "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" }, "path": "namespace",
                }] } },
            ],
        },
    })
}

fn plugins_mount() -> Value {
    json!({
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "name": "kube-api-access-7xkq2",
        "readOnly": true,
    })
}

#[test]
fn b59_automounting_is_switched_off_in_so_many_words() {
    let applied = apply(&RULE, &pod(json!({ "serviceAccountName": "default", "containers": [] }))).unwrap();
    assert_eq!(applied.spec("/automountServiceAccountToken"), &json!(false));
    assert!(applied.warnings.is_empty());
    let applied = apply(&RULE, &pod(json!({ "automountServiceAccountToken": true, "containers": [] }))).unwrap();
    assert_eq!(applied.warnings, ["spec.automountServiceAccountToken: true, now false (service-account-token)"]);
}

#[test]
fn the_plugins_volume_and_its_mounts_go_silently_and_nothing_else_does() {
    let data = json!({ "name": "data", "mountPath": "/data" });
    let applied = apply(
        &RULE,
        &pod(json!({
            "containers": [{ "name": "a", "volumeMounts": [data, plugins_mount()] }, { "name": "b" }],
            "initContainers": [{ "name": "i", "volumeMounts": [plugins_mount()] }],
            "volumes": [{ "name": "data", "emptyDir": {} }, plugins_volume()],
        })),
    )
    .unwrap();
    assert_eq!(applied.spec("/volumes"), &json!([{ "name": "data", "emptyDir": {} }]));
    assert_eq!(applied.spec("/containers/0/volumeMounts"), &json!([data]));
    assert_eq!(applied.spec("/initContainers/0/volumeMounts"), &json!([]));
    assert!(applied.warnings.is_empty());
}

#[test]
fn credentials_go_from_an_authors_projected_volume_and_the_rest_of_it_stays() {
    let map = json!({ "configMap": { "name": "settings" } });
    let sources = json!([
        { "serviceAccountToken": { "path": "token" } },
        map,
        { "podCertificate": { "signerName": "example.com/s", "keyType": "ED25519" } },
        { "serviceAccountToken": { "path": "t", "audience": "vault" } },
    ]);
    let spec = json!({
        "containers": [{ "name": "a", "volumeMounts": [{ "name": "all", "mountPath": "/all" }] }],
        "volumes": [{ "name": "all", "projected": { "sources": sources } }],
    });
    let applied = apply(&RULE, &pod(spec.clone())).unwrap();
    assert_eq!(applied.spec("/volumes"), &json!([{ "name": "all", "projected": { "sources": [map] } }]));
    assert_eq!(applied.spec("/containers"), &spec["containers"]);
    assert_eq!(
        applied.warnings,
        [
            "spec.volumes[0].projected.sources[0]: removed (service-account-token)",
            "spec.volumes[0].projected.sources[2]: removed (service-account-token)",
            "spec.volumes[0].projected.sources[3]: removed (service-account-token)",
        ]
    );
}

#[test]
fn a_token_for_a_listed_audience_stays() {
    let profile = Profile { token_audiences: vec!["mesh".to_owned()], ..Profile::default() };
    let sources = json!([{ "serviceAccountToken": { "path": "t", "audience": "mesh" } }]);
    let spec = json!({ "containers": [], "volumes": [{ "name": "m", "projected": { "sources": sources } }] });
    let applied = apply_with(&RULE, &pod(spec), &profile).unwrap();
    assert_eq!(applied.spec("/volumes/0/projected/sources"), &sources);
}

#[test]
fn a_volume_that_is_not_to_the_letter_the_plugins_is_the_authors() {
    let spoilt: [fn(&mut Value); 7] = [
        |volume| volume["name"] = json!("kube-api-access-mine"),
        |volume| volume["name"] = json!("kube-api-access-"),
        |volume| volume["projected"]["defaultMode"] = json!(292),
        |volume| volume["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] = json!(86_400),
        |volume| volume["projected"]["sources"][0]["serviceAccountToken"]["path"] = json!("t"),
        |volume| volume["projected"]["sources"][1]["configMap"]["name"] = json!("mine"),
        |volume| volume["projected"]["sources"][2]["downwardAPI"]["items"] = json!([]),
    ];
    for spoil in spoilt {
        let mut volume = plugins_volume();
        spoil(&mut volume);
        let applied = apply(&RULE, &pod(json!({ "containers": [], "volumes": [volume] }))).unwrap();
        assert_eq!(applied.spec("/volumes/0/projected/sources").as_array().unwrap().len(), 2, "{volume}");
        assert_eq!(applied.warnings, ["spec.volumes[0].projected.sources[0]: removed (service-account-token)"]);
    }
}

#[test]
fn only_the_proof_of_identity_of_the_body_stays_and_only_to_the_letter() {
    let identity = body::identity_volume(Policy::built_in().bodies());
    let apply = |volume: &Value| apply(&RULE, &pod(json!({ "containers": [], "volumes": [volume] }))).unwrap();
    assert_eq!(apply(&identity).spec("/volumes/0"), &identity);
    let spoilt: [fn(&mut Value); 3] = [
        |volume| volume["name"] = json!("mine"),
        |volume| volume["projected"]["sources"][0]["serviceAccountToken"]["audience"] = json!("vault"),
        |volume| volume["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] = json!(86_400),
    ];
    for spoil in spoilt {
        let mut volume = identity.clone();
        spoil(&mut volume);
        assert_eq!(apply(&volume).spec("/volumes/0/projected/sources"), &json!([]), "{volume}");
    }
}
