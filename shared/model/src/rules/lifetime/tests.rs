use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::{Lifetime, Profile},
    testing::{apply, apply_with, fields, pod},
};

fn owned(mut pod: Value, kind: &str) -> Value {
    let owner = json!({ "apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": true });
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}

#[test]
fn a_bare_pod_gets_a_deadline_and_is_not_restarted_silently() {
    // As the API server sends it.
    let spec = json!({ "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "containers": [] });
    let applied = apply(&RULE, &pod(spec)).unwrap();
    assert_eq!(applied.spec("/activeDeadlineSeconds"), &json!(3600));
    assert_eq!(applied.spec("/terminationGracePeriodSeconds"), &json!(30));
    assert_eq!(applied.spec("/restartPolicy"), &json!("Never"));
    assert!(applied.warnings.is_empty());
}

#[test]
fn what_was_asked_for_and_is_more_is_lowered_with_a_warning() {
    let spec = json!({
        "activeDeadlineSeconds": 86_400, "terminationGracePeriodSeconds": 600, "restartPolicy": "OnFailure",
        "containers": [],
    });
    let applied = apply(&RULE, &pod(spec)).unwrap();
    assert_eq!(
        applied.warnings,
        [
            "spec.activeDeadlineSeconds: 86400, now 3600 (lifetime)",
            "spec.terminationGracePeriodSeconds: 600, now 30 (lifetime)",
            "spec.restartPolicy: OnFailure, now Never (lifetime)",
        ]
    );
}

#[test]
fn less_than_the_ceiling_stays() {
    let spec = json!({
        "activeDeadlineSeconds": 60, "terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [],
    });
    assert!(apply(&RULE, &pod(spec)).unwrap().changes.is_empty());
}

#[test]
fn a_ceiling_below_the_servers_own_grace_applies_silently_to_who_asked_for_nothing() {
    let lifetime = Lifetime { deadline_seconds: 60, grace_seconds: 5 };
    let profile = Profile { lifetime, ..Profile::default() };
    for (grace, warnings) in [(json!(null), 0), (json!(30), 0), (json!(29), 1)] {
        let spec = json!({ "terminationGracePeriodSeconds": grace, "containers": [] });
        let applied = apply_with(&RULE, &pod(spec), &profile).unwrap();
        assert_eq!(applied.spec("/terminationGracePeriodSeconds"), &json!(5));
        assert_eq!(applied.warnings.len(), warnings);
    }
}

#[test]
fn a_probe_gives_no_container_more_grace_than_the_pod_may_have() {
    let probe = |seconds| json!({ "exec": { "command": ["false"] }, "terminationGracePeriodSeconds": seconds });
    let containers = json!([
        { "name": "a", "livenessProbe": probe(3600), "startupProbe": probe(i64::MAX), "readinessProbe": probe(31) },
        { "name": "b", "livenessProbe": probe(30), "startupProbe": { "exec": {} } },
    ]);
    let spec = json!({ "containers": containers, "initContainers": [{ "name": "s", "livenessProbe": probe(31) }] });
    for pod in [pod(spec.clone()), owned(pod(spec), "ReplicaSet")] {
        let applied = apply(&RULE, &pod).unwrap();
        assert_eq!(applied.spec("/containers/0/livenessProbe"), &probe(30));
        assert_eq!(applied.spec("/containers/1"), &containers[1]);
        assert_eq!(
            applied.warnings,
            [
                "spec.containers[0].livenessProbe.terminationGracePeriodSeconds: 3600, now 30 (lifetime)",
                "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: 31, now 30 (lifetime)",
                "spec.containers[0].startupProbe.terminationGracePeriodSeconds: 9223372036854775807, now 30 (lifetime)",
                "spec.initContainers[0].livenessProbe.terminationGracePeriodSeconds: 31, now 30 (lifetime)",
            ]
        );
    }
}

#[test]
fn a_hook_that_sleeps_for_as_long_as_the_pod_had_grace_sleeps_for_what_is_left_of_it() {
    // As the API server refuses it: a sleep of more seconds than the pod's grace.
    let sleep = |seconds| json!({ "sleep": { "seconds": seconds } });
    let spec = json!({
        "terminationGracePeriodSeconds": 120,
        "containers": [{ "name": "a", "lifecycle": { "preStop": sleep(60), "postStart": sleep(31) } }],
        "initContainers": [{ "name": "s", "restartPolicy": "Always", "lifecycle": { "preStop": sleep(30) } }],
    });
    for pod in [pod(spec.clone()), owned(pod(spec), "ReplicaSet")] {
        let applied = apply(&RULE, &pod).unwrap();
        assert_eq!(applied.spec("/terminationGracePeriodSeconds"), &json!(30));
        assert_eq!(applied.spec("/containers/0/lifecycle"), &json!({ "preStop": sleep(30), "postStart": sleep(30) }));
        assert_eq!(
            applied.warnings,
            [
                "spec.terminationGracePeriodSeconds: 120, now 30 (lifetime)",
                "spec.containers[0].lifecycle.postStart.sleep.seconds: 31, now 30 (lifetime)",
                "spec.containers[0].lifecycle.preStop.sleep.seconds: 60, now 30 (lifetime)",
            ]
        );
    }
}

#[test]
fn a_pod_that_is_never_restarted_is_not_resized_by_a_restart() {
    let resize = |policy: &str| json!([{ "resourceName": "memory", "restartPolicy": policy }]);
    let spec = json!({
        "restartPolicy": "Always",
        "containers": [
            { "name": "a", "resizePolicy": resize("RestartContainer") },
            { "name": "b", "resizePolicy": resize("NotRequired") },
        ],
        "initContainers": [{ "name": "s", "restartPolicy": "Always", "resizePolicy": resize("RestartContainer") }],
    });
    let applied = apply(&RULE, &pod(spec.clone())).unwrap();
    for container in ["/containers/0", "/containers/1", "/initContainers/0"] {
        assert_eq!(applied.spec(&format!("{container}/resizePolicy")), &resize("NotRequired"), "{container}");
    }
    assert_eq!(
        applied.warnings,
        [
            "spec.containers[0].resizePolicy[0].restartPolicy: RestartContainer, now NotRequired (lifetime)",
            "spec.initContainers[0].resizePolicy[0].restartPolicy: RestartContainer, now NotRequired (lifetime)",
        ]
    );
    let kept = apply(&RULE, &owned(pod(spec.clone()), "ReplicaSet")).unwrap();
    assert_eq!(kept.spec("/containers/0"), &spec["containers"][0]);
}

#[test]
fn a_controllers_pod_keeps_its_restart_policy_and_still_gets_a_deadline() {
    for (kind, policy) in
        [("ReplicaSet", "Always"), ("StatefulSet", "Always"), ("DaemonSet", "Always"), ("Job", "OnFailure")]
    {
        let spec = json!({ "restartPolicy": policy, "containers": [{ "name": "a", "restartPolicy": "Always" }] });
        let applied = apply(&RULE, &owned(pod(spec), kind)).unwrap();
        assert_eq!(applied.spec("/restartPolicy"), &json!(policy), "{kind}");
        assert_eq!(applied.spec("/containers/0/restartPolicy"), &json!("Always"), "{kind}");
        assert_eq!(applied.spec("/activeDeadlineSeconds"), &json!(3600), "{kind}");
    }
    let mut noncontroller = owned(pod(json!({ "restartPolicy": "Always", "containers": [] })), "ConfigMap");
    noncontroller["metadata"]["ownerReferences"][0]["controller"] = json!(false);
    assert_eq!(apply(&RULE, &noncontroller).unwrap().spec("/restartPolicy"), &json!("Never"));
}

#[test]
fn an_owner_that_makes_no_pods_is_no_controller_whoever_names_it() {
    let owned_by = |version: &str, kind: &str| {
        let mut pod = owned(pod(json!({ "restartPolicy": "Always", "containers": [] })), kind);
        pod["metadata"]["ownerReferences"][0]["apiVersion"] = json!(version);
        apply(&RULE, &pod).unwrap().spec("/restartPolicy").clone()
    };
    for (version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Pod"),
        ("", "ReplicaSet"),
        ("coordination.k8s.io/v1", "Lease"),
        ("policy/v1", "PodDisruptionBudget"),
    ] {
        assert_eq!(owned_by(version, kind), "Never", "{version} {kind}");
    }
    for (version, kind) in [
        ("v1", "ReplicationController"),
        ("batch/v1", "Job"),
        ("agents.x-k8s.io/v1alpha1", "Sandbox"),
        ("argoproj.io/v1alpha1", "Workflow"),
    ] {
        assert_eq!(owned_by(version, kind), "Always", "{version} {kind}");
    }
}

#[test]
fn b12_a_native_sidecar_keeps_its_restart_policy_and_its_probe() {
    let sidecar = json!({
        "name": "proxy", "image": "p", "restartPolicy": "Always", "startupProbe": { "tcpSocket": { "port": 9 } },
    });
    let applied = apply(&RULE, &pod(json!({ "containers": [], "initContainers": [sidecar] }))).unwrap();
    assert_eq!(applied.spec("/initContainers/0"), &sidecar);
}

#[test]
fn a_containers_own_restart_rules_do_not_outrank_the_pods_policy() {
    let rules = json!([{ "action": "Restart", "exitCodes": { "operator": "In", "values": [42] } }]);
    let spec = json!({
        "restartPolicy": "Never",
        "containers": [
            { "name": "a", "restartPolicy": "Always" },
            { "name": "b", "restartPolicy": "Never", "restartPolicyRules": rules },
        ],
        "initContainers": [{ "name": "i", "restartPolicy": "OnFailure" }],
    });
    let applied = apply(&RULE, &pod(spec)).unwrap();
    assert_eq!(applied.spec("/containers"), &json!([{ "name": "a" }, { "name": "b", "restartPolicy": "Never" }]));
    assert_eq!(applied.spec("/initContainers"), &json!([{ "name": "i" }]));
    assert_eq!(
        applied.warnings,
        [
            "spec.containers[0].restartPolicy: Always, removed (lifetime)",
            "spec.containers[1].restartPolicyRules: removed (lifetime)",
            "spec.initContainers[0].restartPolicy: OnFailure, removed (lifetime)",
        ]
    );
}

#[test]
fn a_deadline_that_is_no_whole_number_is_refused() {
    for bad in [json!("60"), json!(1.5), json!([60])] {
        let refusal = apply(&RULE, &pod(json!({ "activeDeadlineSeconds": bad, "containers": [] }))).err().unwrap();
        assert_eq!(fields(&refusal), ["spec.activeDeadlineSeconds"]);
    }
}
