use serde_json::json;

use super::RULE;
use crate::{
    policy::Profile,
    testing::{apply, apply_with, pod},
};

#[test]
fn a_pod_that_says_nothing_gets_the_runtimes_filter_once_for_all() {
    let applied = apply(&RULE, &pod(json!({ "containers": [{ "name": "a" }] }))).unwrap();
    assert_eq!(applied.spec("/securityContext/seccompProfile"), &json!({ "type": "RuntimeDefault" }));
    assert_eq!(applied.spec("/containers/0"), &json!({ "name": "a" }));
    assert!(applied.warnings.is_empty());
}

#[test]
fn b56_no_unconfined_is_left_at_any_level() {
    let unconfined = json!({ "seccompProfile": { "type": "Unconfined" } });
    let applied = apply(
        &RULE,
        &pod(json!({
            "securityContext": unconfined,
            "containers": [{ "name": "a", "securityContext": { "seccompProfile": { "type": "RuntimeDefault" } } }],
            "initContainers": [{ "name": "i", "securityContext": unconfined }],
            "ephemeralContainers": [{ "name": "e", "securityContext": unconfined }],
        })),
    )
    .unwrap();
    assert!(!applied.pod.to_string().contains("Unconfined"));
    assert_eq!(
        applied.warnings,
        [
            "spec.securityContext.seccompProfile.type: Unconfined, now RuntimeDefault (seccomp)",
            "spec.initContainers[0].securityContext.seccompProfile.type: Unconfined, now RuntimeDefault (seccomp)",
            "spec.ephemeralContainers[0].securityContext.seccompProfile.type: Unconfined, now RuntimeDefault (seccomp)",
        ]
    );
}

#[test]
fn a_localhost_profile_stays_only_if_it_is_listed() {
    let local = |file: &str| json!({ "seccompProfile": { "type": "Localhost", "localhostProfile": file } });
    let spec = json!({
        "securityContext": local("audit.json"),
        "containers": [{ "name": "a", "securityContext": local("none.json") }],
    });
    let profile = Profile { seccomp_localhost_profiles: vec!["audit.json".to_owned()], ..Profile::default() };
    let applied = apply_with(&RULE, &pod(spec), &profile).unwrap();
    assert_eq!(applied.spec("/securityContext"), &local("audit.json"));
    assert_eq!(
        applied.spec("/containers/0/securityContext"),
        &json!({ "seccompProfile": { "type": "RuntimeDefault" } })
    );
    assert_eq!(
        applied.warnings,
        [
            "spec.containers[0].securityContext.seccompProfile.type: Localhost, now RuntimeDefault (seccomp)",
            "spec.containers[0].securityContext.seccompProfile.localhostProfile: removed (seccomp)",
        ]
    );
}

#[test]
fn legacy_annotations_that_weaken_go_and_the_others_stay() {
    let mut pod = pod(json!({ "containers": [{ "name": "a" }] }));
    pod["metadata"]["annotations"] = json!({
        "seccomp.security.alpha.kubernetes.io/pod": "unconfined",
        "container.seccomp.security.alpha.kubernetes.io/a": "localhost/secret-name.json",
        "container.seccomp.security.alpha.kubernetes.io/b": "runtime/default",
        "container.seccomp.security.alpha.kubernetes.io/c": "docker/default",
        "team": "unconfined",
    });
    let applied = apply(&RULE, &pod).unwrap();
    assert_eq!(
        applied.pod["metadata"]["annotations"],
        json!({
            "container.seccomp.security.alpha.kubernetes.io/b": "runtime/default",
            "container.seccomp.security.alpha.kubernetes.io/c": "docker/default",
            "team": "unconfined",
        })
    );
    assert_eq!(
        applied.warnings,
        [
            "metadata.annotations[container.seccomp.security.alpha.kubernetes.io/a]: removed (seccomp)",
            "metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: removed (seccomp)",
        ]
    );
}
