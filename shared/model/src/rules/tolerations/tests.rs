use serde_json::{Value, json};

use super::RULE;
use crate::{
    policy::{Profile, RuntimeClass, Toleration},
    rules::Occasion,
    testing::{apply_as, apply_on, apply_with, fields, pod},
};

fn exists(key: &str, effect: Option<&str>) -> Toleration {
    Toleration { key: Some(key.to_owned()), exists: true, value: None, effect: effect.map(str::to_owned) }
}

fn equal(key: &str, value: &str) -> Toleration {
    Toleration { key: Some(key.to_owned()), exists: false, value: Some(value.to_owned()), effect: None }
}

/// A profile that puts in these and allows those.
fn profile(wanted: &[Toleration], allowed: &[Toleration]) -> Profile {
    let mut profile = Profile::default();
    profile.scheduling.tolerations = wanted.to_vec();
    profile.scheduling.allowed_tolerations = allowed.to_vec();
    profile
}

fn with(tolerations: &Value) -> Value {
    pod(json!({ "tolerations": tolerations }))
}

/// Whether the profile leaves that toleration to its author.
fn stays(toleration: &Value, profile: &Profile) -> bool {
    let applied = apply_with(&RULE, &with(&json!([toleration])), profile).unwrap();
    match applied.warnings.as_slice() {
        [] => true,
        [warning] => {
            assert_eq!(warning, "spec.tolerations[0]: removed (tolerations)");
            false
        }
        more => panic!("{more:?}"),
    }
}

#[test]
fn what_the_api_servers_plugins_put_in_is_accepted_and_nothing_that_only_looks_like_it() {
    let plugins = json!([
        { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 },
        { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 },
        { "key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule" },
    ]);
    let applied = apply_with(&RULE, &with(&plugins), &Profile::default()).unwrap();
    assert_eq!(applied.spec("/tolerations"), &plugins);
    assert!(applied.changes.is_empty());
    for other in [
        json!({ "operator": "Exists" }),
        json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute" }),
        json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300 }),
        json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "key": "node.kubernetes.io/memory-pressure", "operator": "Exists" }),
        json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule" }),
    ] {
        assert!(!stays(&other, &Profile::default()), "{other}");
    }
}

#[test]
fn an_authors_toleration_stays_if_a_listed_one_covers_it() {
    let profile = profile(&[], &[exists("gpu", Some("NoSchedule")), exists("spot", None), equal("team", "blue")]);
    for covered in [
        json!({ "key": "gpu", "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule" }),
        json!({ "key": "gpu", "value": "a100", "effect": "NoSchedule" }),
        json!({ "key": "gpu", "operator": "Gt", "value": "1", "effect": "NoSchedule" }),
        json!({ "key": "spot", "operator": "Exists" }),
        json!({ "key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1 }),
        json!({ "key": "team", "operator": "Equal", "value": "blue" }),
        json!({ "key": "team", "value": "blue", "effect": "NoSchedule" }),
    ] {
        assert!(stays(&covered, &profile), "{covered}");
    }
    for broader in [
        json!({ "key": "gpu", "operator": "Exists" }),
        json!({ "key": "gpu", "operator": "Exists", "effect": "NoExecute" }),
        json!({ "key": "gpus", "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "key": "team", "operator": "Exists" }),
        json!({ "key": "team", "operator": "Equal", "value": "red" }),
        json!({ "key": "team", "operator": "Equal" }),
        json!({ "key": "team", "operator": "Lt", "value": "blue" }),
        json!({ "key": "", "operator": "Exists", "effect": "NoSchedule" }),
        json!({}),
    ] {
        assert!(!stays(&broader, &profile), "{broader}");
    }
    let any = Toleration { exists: true, ..Toleration::default() };
    assert!(stays(&json!({ "operator": "Exists" }), &self::profile(&[], &[any])));
}

#[test]
fn what_is_removed_leaves_the_rest_in_its_order() {
    let profile = profile(&[], &[exists("a", None), exists("b", None)]);
    let tolerations = json!([
        { "operator": "Exists" }, { "key": "b", "operator": "Exists" }, { "key": "x", "operator": "Exists" },
        { "key": "a", "operator": "Exists" },
    ]);
    let applied = apply_with(&RULE, &with(&tolerations), &profile).unwrap();
    assert_eq!(
        applied.spec("/tolerations"),
        &json!([{ "key": "b", "operator": "Exists" }, { "key": "a", "operator": "Exists" }])
    );
    assert_eq!(
        applied.warnings,
        ["spec.tolerations[0]: removed (tolerations)", "spec.tolerations[2]: removed (tolerations)"]
    );
}

#[test]
fn the_profiles_own_are_put_in_once_unless_a_broader_one_stands_for_them() {
    let profile = profile(&[exists("a", Some("NoSchedule")), equal("b", "x")], &[exists("a", None)]);
    let both = json!([
        { "key": "a", "operator": "Exists", "effect": "NoSchedule" }, { "key": "b", "operator": "Equal", "value": "x" },
    ]);
    for (before, after) in [
        (json!(null), both.clone()),
        (json!([]), both.clone()),
        (both.clone(), both.clone()),
        (json!([{ "operator": "Exists" }]), both.clone()),
        (
            json!([{ "key": "b", "value": "x" }, { "key": "a", "operator": "Exists" }]),
            json!([{ "key": "b", "value": "x" }, { "key": "a", "operator": "Exists" }]),
        ),
        (
            json!([{ "key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9 }, both[1]]),
            json!([{ "key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9 }, both[1], both[0]]),
        ),
        (
            json!([{ "key": "a", "operator": "Exists", "tolerationSeconds": 9 }, both[1]]),
            json!([{ "key": "a", "operator": "Exists", "tolerationSeconds": 9 }, both[1], both[0]]),
        ),
    ] {
        let applied = apply_with(&RULE, &with(&before), &profile).unwrap();
        assert_eq!(applied.spec("/tolerations"), &after, "{before}");
        assert!(apply_with(&RULE, &applied.pod, &profile).unwrap().changes.is_empty(), "{before}");
    }
}

#[test]
fn a_live_pod_that_tolerates_less_than_it_might_is_fine_and_one_that_tolerates_more_is_not() {
    let profile = profile(&[exists("a", None)], &[]);
    assert!(apply_on(Occasion::Audit, &RULE, &with(&json!([])), &profile).unwrap().changes.is_empty());
    let applied = apply_on(Occasion::Audit, &RULE, &with(&json!([{ "operator": "Exists" }])), &profile).unwrap();
    assert_eq!(applied.warnings, ["spec.tolerations[0]: removed (tolerations)"]);
}

#[test]
fn a_runtime_classs_own_are_accepted_with_that_class_alone() {
    let mut profile = Profile::default();
    profile.scheduling.runtime_classes = vec![RuntimeClass {
        name: "gvisor".to_owned(),
        tolerations: vec![exists("sandbox", None)],
        ..RuntimeClass::default()
    }];
    for (class, stays) in [(json!("gvisor"), 1), (json!(null), 0), (json!("kata"), 0)] {
        let spec = json!({ "runtimeClassName": class, "tolerations": [{ "key": "sandbox", "operator": "Exists" }] });
        let applied = apply_with(&RULE, &pod(spec), &profile).unwrap();
        assert_eq!(applied.spec("/tolerations").as_array().map(Vec::len), Some(stays), "{class}");
    }
}

#[test]
fn a_daemon_sets_are_accepted_from_its_controller_and_in_an_audit() {
    let toleration = |key: &str, effect: &str| json!({ "key": key, "operator": "Exists", "effect": effect });
    let tolerations = json!([
        toleration("node.kubernetes.io/not-ready", "NoExecute"),
        toleration("node.kubernetes.io/unreachable", "NoExecute"),
        toleration("node.kubernetes.io/disk-pressure", "NoSchedule"),
        toleration("node.kubernetes.io/memory-pressure", "NoSchedule"),
        toleration("node.kubernetes.io/pid-pressure", "NoSchedule"),
        toleration("node.kubernetes.io/unschedulable", "NoSchedule"),
        toleration("node-role.kubernetes.io/control-plane", "NoSchedule"),
    ]);
    let mut pod = with(&tolerations);
    pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "controller": true }]);
    let profile = Profile::default();
    let by = |user| apply_as(user, &RULE, &pod, &profile).unwrap().warnings;
    let controller = by("system:serviceaccount:kube-system:daemon-set-controller");
    assert_eq!(controller, ["spec.tolerations[6]: removed (tolerations)"]);
    assert_eq!(by("system:kube-controller-manager"), controller);
    assert_eq!(apply_on(Occasion::Audit, &RULE, &pod, &profile).unwrap().warnings, controller);
    assert_eq!(by("jane").len(), 6);
}

#[test]
fn what_is_no_toleration_is_refused_and_never_told() {
    let profile = Profile::default();
    for (tolerations, field) in [
        (json!({}), "spec.tolerations"),
        (json!([5]), "spec.tolerations[0]"),
        (json!([{ "key": 5 }]), "spec.tolerations[0].key"),
        (json!([{ "tolerationSeconds": "1" }]), "spec.tolerations[0].tolerationSeconds"),
    ] {
        assert_eq!(fields(&apply_with(&RULE, &with(&tolerations), &profile).err().unwrap()), [field]);
    }
    let applied = apply_with(&RULE, &with(&json!([{ "key": "hunter2-xyz" }])), &profile).unwrap();
    assert!(!format!("{:?}{:?}", applied.warnings, applied.changes).contains("hunter2-xyz"));
}
