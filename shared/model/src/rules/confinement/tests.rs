use serde_json::json;

use super::RULE;
use crate::{
    policy::{AppArmor, Profile},
    testing::{apply, apply_with, pod},
};

#[test]
fn a_pod_that_says_nothing_stays_as_it_is() {
    let applied = apply(&RULE, &pod(json!({ "containers": [{ "name": "a" }] }))).unwrap();
    assert!(applied.changes.is_empty());
}

#[test]
fn an_unconfined_apparmor_profile_goes_and_a_confining_one_stays() {
    let with = |kind: &str| json!({ "appArmorProfile": { "type": kind } });
    let spec = json!({
        "securityContext": with("Unconfined"),
        "containers": [
            { "name": "a", "securityContext": with("RuntimeDefault") },
            { "name": "b", "securityContext": { "appArmorProfile": { "type": "Localhost", "localhostProfile": "p" } } },
        ],
        "initContainers": [{ "name": "i", "securityContext": with("Unconfined") }],
    });
    let applied = apply(&RULE, &pod(spec.clone())).unwrap();
    assert_eq!(applied.spec("/securityContext"), &json!({}));
    assert_eq!(applied.spec("/containers"), &spec["containers"]);
    assert_eq!(applied.spec("/initContainers/0/securityContext"), &json!({}));
    assert_eq!(
        applied.warnings,
        [
            "spec.securityContext.appArmorProfile: Unconfined, removed (confinement)",
            "spec.initContainers[0].securityContext.appArmorProfile: Unconfined, removed (confinement)",
        ]
    );
}

#[test]
fn apparmor_is_asked_for_where_the_profile_says_so() {
    let profile = Profile { app_armor: AppArmor::Inject, ..Profile::default() };
    for security in [json!({}), json!({ "appArmorProfile": { "type": "Unconfined" } })] {
        let applied = apply_with(&RULE, &pod(json!({ "securityContext": security, "containers": [] })), &profile);
        let expected = json!({ "appArmorProfile": { "type": "RuntimeDefault" } });
        assert_eq!(applied.unwrap().spec("/securityContext"), &expected, "{security}");
    }
}

#[test]
fn b54_apparmor_is_asked_for_by_the_field_and_never_by_an_annotation() {
    let profile = Profile { app_armor: AppArmor::Inject, ..Profile::default() };
    let spec = json!({ "containers": [{ "name": "a" }, { "name": "b" }] });
    let applied = apply_with(&RULE, &pod(spec.clone()), &profile).unwrap();
    assert_eq!(applied.injected(), ["spec.securityContext.appArmorProfile.type"]);
    assert_eq!(applied.pod["metadata"], pod(spec)["metadata"]);
}

#[test]
fn legacy_apparmor_annotations_go_where_they_unconfine() {
    let mut pod = pod(json!({ "containers": [{ "name": "a" }] }));
    pod["metadata"]["annotations"] = json!({
        "container.apparmor.security.beta.kubernetes.io/a": "unconfined",
        "container.apparmor.security.beta.kubernetes.io/b": "runtime/default",
        "container.apparmor.security.beta.kubernetes.io/c": "localhost/p",
    });
    let applied = apply(&RULE, &pod).unwrap();
    assert_eq!(applied.pod["metadata"]["annotations"].as_object().unwrap().len(), 2);
    assert_eq!(
        applied.warnings,
        ["metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]: removed (confinement)"]
    );
}

#[test]
fn selinux_keeps_its_level_and_its_restricted_types_only() {
    let options = json!({ "user": "u", "role": "r", "type": "spc_t", "level": "s0:c1,c2" });
    let applied = apply(
        &RULE,
        &pod(json!({
            "securityContext": { "seLinuxOptions": options },
            "containers": [{ "name": "a", "securityContext": { "seLinuxOptions": { "type": "container_t" } } }],
        })),
    )
    .unwrap();
    assert_eq!(applied.spec("/securityContext/seLinuxOptions"), &json!({ "level": "s0:c1,c2" }));
    assert_eq!(applied.spec("/containers/0/securityContext/seLinuxOptions"), &json!({ "type": "container_t" }));
    assert_eq!(
        applied.warnings,
        [
            "spec.securityContext.seLinuxOptions.user: u, removed (confinement)",
            "spec.securityContext.seLinuxOptions.role: r, removed (confinement)",
            "spec.securityContext.seLinuxOptions.type: spc_t, removed (confinement)",
        ]
    );
}

#[test]
fn an_unmasked_proc_is_masked_again() {
    let with = |mount: &str| json!({ "securityContext": { "procMount": mount } });
    let applied = apply(&RULE, &pod(json!({ "containers": [with("Unmasked"), with("Default")] }))).unwrap();
    assert_eq!(applied.spec("/containers/0"), &with("Default"));
    assert_eq!(applied.warnings, ["spec.containers[0].securityContext.procMount: Unmasked, now Default (confinement)"]);
}
