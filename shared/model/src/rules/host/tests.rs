use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::Profile,
    testing::{apply, apply_with, fields, pod},
};

#[test]
fn everything_of_the_node_is_refused_in_one_answer() {
    let spec = json!({
        "hostNetwork": true,
        "hostPID": true,
        "hostIPC": true,
        "nodeName": "node-1",
        "containers": [{
            "name": "a",
            "ports": [{ "containerPort": 1 }, { "containerPort": 8080, "hostPort": 8080 }],
            "volumeDevices": [{ "name": "d", "devicePath": "/dev/d" }],
        }],
        "initContainers": [{ "name": "i", "ports": [{ "containerPort": 9, "hostPort": 9 }] }],
    });
    let refusal = apply(&RULE, &pod(spec)).err().unwrap();
    assert_eq!(
        fields(&refusal),
        [
            "spec.hostNetwork",
            "spec.hostPID",
            "spec.hostIPC",
            "spec.nodeName",
            "spec.containers[0].ports[1].hostPort",
            "spec.containers[0].volumeDevices",
            "spec.initContainers[0].ports[0].hostPort",
        ]
    );
    let text = refusal.to_string();
    assert!(text.contains("spec.hostNetwork: shares the node's network with the session; remove it (host)"), "{text}");
}

#[test]
fn what_says_no_to_the_node_passes() {
    let spec = json!({
        "hostNetwork": false,
        "hostPID": false,
        "nodeName": "",
        "os": { "name": "linux" },
        "nodeSelector": { "kubernetes.io/os": "linux" },
        "containers": [{ "name": "a", "ports": [{ "containerPort": 1, "hostPort": 0 }], "volumeDevices": [] }],
    });
    assert!(apply(&RULE, &pod(spec)).unwrap().changes.is_empty());
}

#[test]
fn b48_windows_is_refused_wherever_it_is_asked_for() {
    for (spec, field) in [
        (json!({ "os": { "name": "windows" } }), "spec.os.name"),
        (json!({ "nodeSelector": { "kubernetes.io/os": "windows" } }), "spec.nodeSelector[kubernetes.io/os]"),
        (
            json!({ "securityContext": { "windowsOptions": { "hostProcess": true } } }),
            "spec.securityContext.windowsOptions.hostProcess",
        ),
        (
            json!({ "containers": [{ "securityContext": { "windowsOptions": { "runAsUserName": "u" } } }] }),
            "spec.containers[0].securityContext.windowsOptions",
        ),
        (
            json!({ "initContainers": [{ "securityContext": { "windowsOptions": {} } }] }),
            "spec.initContainers[0].securityContext.windowsOptions",
        ),
    ] {
        let refusal = apply(&RULE, &pod(spec)).err().unwrap();
        assert_eq!(fields(&refusal), [field]);
    }
}

#[test]
fn b48_no_affinity_leads_to_a_node_with_windows() {
    let of = |expression: &Value| {
        let term = json!({ "matchExpressions": [expression] });
        let required = json!({ "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] } } });
        let preferred = json!({ "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": term }] } });
        [required, preferred].map(|affinity| match apply(&RULE, &pod(json!({ "affinity": affinity }))) {
            Ok(_) => String::new(),
            Err(refusal) => fields(&refusal).join(" "),
        })
    };
    let refused = [
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]",
        "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0]",
    ];
    for (key, operator, values, fields) in [
        ("kubernetes.io/os", "In", json!(["windows"]), refused),
        ("kubernetes.io/os", "In", json!(["linux", "windows"]), refused),
        ("kubernetes.io/os", "NotIn", json!(["linux"]), refused),
        ("kubernetes.io/os", "In", json!(["linux"]), ["", ""]),
        ("kubernetes.io/os", "NotIn", json!(["windows"]), ["", ""]),
        ("kubernetes.io/os", "Exists", json!(null), ["", ""]),
        ("kubernetes.io/arch", "NotIn", json!(["linux"]), ["", ""]),
    ] {
        assert_eq!(of(&json!({ "key": key, "operator": operator, "values": values })), fields, "{operator} {values}");
    }
}

#[test]
fn b50_sysctls_are_read_in_both_spellings_and_unknown_ones_refused() {
    let profile = Profile { sysctls: vec!["net.core.somaxconn".to_owned()], ..Profile::default() };
    for (name, is_allowed) in [
        ("kernel.shm_rmid_forced", true),
        ("kernel/shm_rmid_forced", true),
        ("net/ipv4/tcp_syncookies", true),
        ("net/core/somaxconn", true),
        ("net/ipv4/ip_forward", false),
        ("net.ipv4.ip_forward", false),
        ("net.ipv4/tcp_syncookies", false),
        ("net.ipv4.*", false),
        ("", false),
    ] {
        let spec = json!({ "securityContext": { "sysctls": [{ "name": name, "value": "1" }] }, "containers": [] });
        let verdict = apply_with(&RULE, &pod(spec), &profile);
        assert_eq!(verdict.is_ok(), is_allowed, "{name}");
        if let Err(refusal) = verdict {
            assert_eq!(fields(&refusal), ["spec.securityContext.sysctls[0].name"]);
        }
    }
}

#[test]
fn a_wrong_type_is_refused_by_its_path() {
    for (spec, field) in [
        (json!({ "hostNetwork": "true" }), "spec.hostNetwork"),
        (json!({ "nodeName": 5 }), "spec.nodeName"),
        (json!({ "containers": [{ "ports": {} }] }), "spec.containers[0].ports"),
        (json!({ "containers": [{ "ports": [{ "hostPort": "80" }] }] }), "spec.containers[0].ports[0].hostPort"),
        (json!({ "securityContext": { "sysctls": [5] } }), "spec.securityContext.sysctls[0]"),
        (json!({ "os": "windows" }), "spec.os"),
    ] {
        let refusal = apply(&RULE, &pod(spec)).err().unwrap();
        assert_eq!(fields(&refusal), [field]);
    }
}
