use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::{Profile, RuntimeClass},
    request::Template,
    rules::Occasion,
    testing::{apply, apply_as, apply_on, apply_with, fields, pod},
};

const CONTROLLER: &str = "system:serviceaccount:kube-system:daemon-set-controller";

fn labels(labels: &[(&str, &str)]) -> BTreeMap<String, String> {
    labels.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Sessions run in the pool `sessions`, by gVisor or by Kata, each on nodes of its own.
fn profile() -> Profile {
    let mut profile = Profile::default();
    let class = |name: &str| RuntimeClass {
        name: name.to_owned(),
        node_selector: labels(&[("sandbox", name)]),
        tolerations: Vec::new(),
    };
    profile.scheduling.runtime_classes = vec![class("gvisor"), class("kata")];
    profile.scheduling.scheduler_names = vec!["packing".to_owned()];
    profile.scheduling.node_selector = labels(&[("pool", "sessions")]);
    profile
}

fn refused(spec: Value, profile: &Profile) -> Vec<String> {
    match apply_with(&RULE, &pod(spec), profile) {
        Ok(_) => Vec::new(),
        Err(refusal) => fields(&refusal).into_iter().map(str::to_owned).collect(),
    }
}

#[test]
fn the_shipped_profile_puts_nothing_in_and_refuses_what_it_does_not_list() {
    let plain = pod(json!({ "schedulerName": "default-scheduler", "nodeSelector": { "kubernetes.io/arch": "arm64" } }));
    let applied = apply(&RULE, &plain).unwrap();
    assert_eq!(applied.pod, plain);
    let spec = json!({
        "runtimeClassName": "gvisor", "schedulerName": "packing", "nodeSelector": { "kubernetes.io/hostname": "n1" },
    });
    assert_eq!(
        refused(spec, &Profile::default()),
        ["spec.runtimeClassName", "spec.schedulerName", "spec.nodeSelector[kubernetes.io/hostname]"]
    );
}

#[test]
fn a_runtime_class_is_injected_where_the_profile_says_so_and_an_authors_stays_if_listed() {
    let mut profile = profile();
    for (is_injected, before, after) in [
        (false, json!(null), json!(null)),
        (true, json!(null), json!("gvisor")),
        (true, json!(""), json!("gvisor")),
        (true, json!("kata"), json!("kata")),
        (true, json!("gvisor"), json!("gvisor")),
    ] {
        profile.scheduling.inject_runtime_class = is_injected;
        let applied = apply_with(&RULE, &pod(json!({ "runtimeClassName": before })), &profile).unwrap();
        assert_eq!(applied.spec("/runtimeClassName"), &after);
        assert!(applied.warnings.is_empty());
        assert!(apply_with(&RULE, &applied.pod, &profile).unwrap().changes.is_empty());
    }
    let refusal = apply_with(&RULE, &pod(json!({ "runtimeClassName": "runc" })), &profile).err().unwrap();
    assert!(refusal.to_string().contains("it allows gvisor, kata"), "{refusal}");
}

#[test]
fn a_template_gets_the_class_and_the_node_selector_too_and_an_audit_misses_them() {
    let mut profile = profile();
    profile.scheduling.inject_runtime_class = true;
    let empty = pod(json!({}));
    for occasion in [Occasion::Template(Template::RunsForever), Occasion::Audit] {
        let applied = apply_on(occasion, &RULE, &empty, &profile).unwrap();
        assert_eq!(applied.injected(), ["spec.runtimeClassName", "spec.nodeSelector.pool"]);
    }
}

#[test]
fn only_listed_schedulers_pass_and_the_default_one_counts_as_missing() {
    for (scheduler, is_allowed) in
        [("", true), ("default-scheduler", true), ("packing", true), ("other", false), ("Packing", false)]
    {
        assert_eq!(refused(json!({ "schedulerName": scheduler }), &profile()).is_empty(), is_allowed, "{scheduler}");
    }
}

#[test]
fn the_profiles_node_selector_joins_the_authors_and_is_not_overruled() {
    let of = |selector: &Value| apply_with(&RULE, &pod(json!({ "nodeSelector": selector })), &profile());
    for before in [json!(null), json!({}), json!({ "kubernetes.io/arch": "arm64" }), json!({ "pool": "sessions" })] {
        let applied = of(&before).unwrap();
        assert_eq!(applied.spec("/nodeSelector/pool"), "sessions", "{before}");
        assert_eq!(applied.spec("/nodeSelector/kubernetes.io~1arch"), &before["kubernetes.io/arch"]);
        assert!(applied.warnings.is_empty());
        assert!(apply_with(&RULE, &applied.pod, &profile()).unwrap().changes.is_empty());
    }
    let refusal = of(&json!({ "pool": "hunter2-xyz" })).err().unwrap();
    assert_eq!(fields(&refusal), ["spec.nodeSelector.pool"]);
    assert!(!refusal.to_string().contains("hunter2-xyz"));
    assert_eq!(fields(&of(&json!({ "pool": 5 })).err().unwrap()), ["spec.nodeSelector.pool"]);
    assert_eq!(fields(&of(&json!("pool")).err().unwrap()), ["spec.nodeSelector"]);
}

#[test]
fn a_runtime_classs_own_selector_is_accepted_with_that_class_alone() {
    let of = |class: &Value, sandbox: &str| {
        refused(json!({ "runtimeClassName": class, "nodeSelector": { "sandbox": sandbox } }), &profile())
    };
    assert!(of(&json!("gvisor"), "gvisor").is_empty());
    assert_eq!(of(&json!("gvisor"), "kata"), ["spec.nodeSelector.sandbox"]);
    assert_eq!(of(&json!(null), "gvisor"), ["spec.nodeSelector.sandbox"]);
}

#[test]
fn node_affinity_may_choose_by_listed_labels_only_required_or_preferred() {
    let term = |key: &str| json!({ "matchExpressions": [{ "key": key, "operator": "In", "values": ["x"] }] });
    let of = |class: &Value, key: &str| {
        let affinity = json!({ "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term("pool"), term(key)] },
            "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": term(key) }],
        } });
        refused(json!({ "runtimeClassName": class, "affinity": affinity }), &profile())
    };
    let node_affinity = "spec.affinity.nodeAffinity";
    let both = [
        format!(
            "{node_affinity}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0].key"
        ),
        format!(
            "{node_affinity}.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key"
        ),
    ];
    assert!(of(&json!(null), "kubernetes.io/arch").is_empty());
    assert!(of(&json!("gvisor"), "sandbox").is_empty());
    assert_eq!(of(&json!(null), "sandbox"), both);
    assert_eq!(of(&json!(null), "kubernetes.io/hostname"), both);
}

fn of_daemon_set(owner: &Value, key: &str) -> Value {
    let term = json!({ "matchFields": [{ "key": key, "operator": "In", "values": ["node-1"] }] });
    let required = json!({ "nodeSelectorTerms": [term] });
    let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
    let mut pod = pod(json!({ "affinity": affinity }));
    pod["metadata"]["ownerReferences"] = json!([owner]);
    pod
}

#[test]
fn a_node_is_named_by_the_daemon_set_controller_alone() {
    let owner = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true });
    let profile = Profile::default();
    let pod = of_daemon_set(&owner, "metadata.name");
    for user in [CONTROLLER, "system:kube-controller-manager"] {
        assert!(apply_as(user, &RULE, &pod, &profile).unwrap().changes.is_empty());
    }
    assert!(apply_on(Occasion::Audit, &RULE, &pod, &profile).unwrap().changes.is_empty());
    let field = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]\
                 .matchFields[0].key";
    for user in ["jane", "system:serviceaccount:default:daemon-set-controller"] {
        assert_eq!(fields(&apply_as(user, &RULE, &pod, &profile).err().unwrap()), [field]);
    }
    for owner in [
        json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "controller": false }),
        json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": true }),
        json!({ "apiVersion": "example.com/v1", "kind": "DaemonSet", "controller": true }),
    ] {
        let pod = of_daemon_set(&owner, "metadata.name");
        assert_eq!(fields(&apply_as(CONTROLLER, &RULE, &pod, &profile).err().unwrap()), [field], "{owner}");
    }
    let pod = of_daemon_set(&owner, "metadata.uid");
    assert_eq!(fields(&apply_as(CONTROLLER, &RULE, &pod, &profile).err().unwrap()), [field]);
}

#[test]
fn nobody_prefers_a_node_by_its_name() {
    let mut pod = of_daemon_set(&json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "controller": true }), "x");
    let preference = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["node-1"] }] });
    pod["spec"]["affinity"]["nodeAffinity"] =
        json!({ "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": preference }] });
    assert_eq!(
        fields(&apply_as(CONTROLLER, &RULE, &pod, &Profile::default()).err().unwrap()),
        ["spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key"]
    );
}

#[test]
fn owners_that_cannot_be_read_are_refused_when_the_pod_is_created_and_not_left_to_an_audit() {
    let mut pod = pod(json!({ "containers": [{ "name": "a" }] }));
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "controller": true });
    pod["metadata"]["ownerReferences"] = json!([job, []]);
    assert_eq!(fields(&crate::testing::refused(&pod)), ["metadata.ownerReferences[1]"]);
}
