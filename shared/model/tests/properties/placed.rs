//! Where pods are asked to run, and what that comes to.

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use crate::pods::{Member, future, list, object, one_of, rarely};

/// Labels that the built-in policy lists, and one that it does not.
fn label() -> impl Strategy<Value = &'static str> {
    prop_oneof![20 => select(vec!["kubernetes.io/arch", "kubernetes.io/os"]), 1 => Just("kubernetes.io/hostname")]
}

fn term() -> impl Strategy<Value = Value> {
    let expression = label().prop_map(|key| json!({ "key": key, "operator": "In", "values": ["linux"] }));
    let field = Just(json!({ "key": "metadata.name", "operator": "In", "values": ["node-1"] }));
    object(vec![
        ("matchExpressions", prop::option::of(list(expression, 2)).boxed()),
        rarely("matchFields", field.prop_map(|field| json!([field]))),
        future(),
    ])
}

fn affinity() -> impl Strategy<Value = Value> {
    let preferred = term().prop_map(|term| json!({ "weight": 1, "preference": term }));
    let required = list(term(), 2).prop_map(|terms| json!({ "nodeSelectorTerms": terms }));
    let node = object(vec![
        ("requiredDuringSchedulingIgnoredDuringExecution", prop::option::of(required).boxed()),
        ("preferredDuringSchedulingIgnoredDuringExecution", prop::option::of(list(preferred, 2)).boxed()),
        future(),
    ]);
    object(vec![
        ("nodeAffinity", prop::option::of(node).boxed()),
        one_of("podAntiAffinity", &[json!({}), json!(null)]),
        future(),
    ])
}

fn toleration() -> impl Strategy<Value = Value> {
    select(vec![
        json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }),
        json!({ "key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" }),
        json!({ "key": "sandbox", "operator": "Equal", "value": "gvisor", "effect": "NoSchedule" }),
        json!({ "key": "sandbox", "value": "gvisor" }),
        json!({ "key": "spot", "operator": "Exists", "tolerationSeconds": 5 }),
        json!({ "operator": "Exists" }),
        json!({}),
    ])
}

/// The members of a spec that say where its pod runs.
pub(crate) fn members() -> Vec<Member> {
    let selector = prop::collection::btree_map(label().prop_map(str::to_owned), Just("linux".to_owned()), 0..=2);
    vec![
        one_of("schedulerName", &[json!(""), json!("default-scheduler")]),
        rarely("runtimeClassName", select(vec![json!("gvisor"), json!("runc")])),
        ("nodeSelector", prop::option::weighted(0.2, selector.prop_map(|labels| json!(labels))).boxed()),
        ("affinity", prop::option::weighted(0.2, affinity()).boxed()),
        ("tolerations", prop::option::of(list(toleration(), 3)).boxed()),
        one_of("priority", &[json!(0), json!(-10)]),
        rarely("priority", Just(json!(1_000_000))),
        one_of("imagePullSecrets", &[json!([]), json!([{ "name": "mine" }])]),
    ]
}

/// Panics if a pod of the built-in policy runs where it may not.
pub(crate) fn check(spec: &Value) {
    assert!(matches!(spec["schedulerName"].as_str(), None | Some("" | "default-scheduler")));
    assert!(spec["runtimeClassName"].as_str().is_none_or(str::is_empty));
    assert!(spec["priority"].as_i64().unwrap_or(0) <= 0);
    let is_listed = |label: &str| matches!(label, "kubernetes.io/arch" | "kubernetes.io/os");
    assert!(spec["nodeSelector"].as_object().into_iter().flatten().all(|(label, _)| is_listed(label)));
    let node = &spec["affinity"]["nodeAffinity"];
    let required = items(&node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]);
    let preferred = items(&node["preferredDuringSchedulingIgnoredDuringExecution"]).map(|item| &item["preference"]);
    for term in required.chain(preferred) {
        assert!(items(&term["matchExpressions"]).all(|item| item["key"].as_str().is_none_or(is_listed)), "{term}");
        assert_eq!(items(&term["matchFields"]).count(), 0);
    }
    for toleration in items(&spec["tolerations"]) {
        let (key, effect) = (toleration["key"].as_str().unwrap(), toleration["effect"].as_str().unwrap());
        assert_eq!(toleration["operator"], json!("Exists"));
        let of_plugins = [
            ("node.kubernetes.io/not-ready", "NoExecute"),
            ("node.kubernetes.io/unreachable", "NoExecute"),
            ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ];
        assert!(of_plugins.contains(&(key, effect)), "{toleration}");
        assert!(effect == "NoSchedule" || toleration["tolerationSeconds"].is_i64());
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
