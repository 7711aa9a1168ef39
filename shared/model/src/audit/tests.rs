use serde_json::json;

use super::*;
use crate::{
    harden::{Untouched, Verdict, harden},
    request::{Operation, Request},
    testing::{create, fields, hardened, pod},
};

fn live(image: &str) -> Value {
    let mut live = hardened(&pod(json!({ "containers": [{ "name": "a", "image": image }] }))).pod;
    live["spec"]["nodeName"] = json!("node-1");
    live["status"] = json!({ "phase": "Running" });
    live
}

fn update(old: &Value, new: &Value) -> Verdict {
    harden(&Request { operation: Operation::Update { old }, ..create(new) }, &Policy::built_in())
}

#[test]
fn a_hardened_pod_that_runs_is_without_findings() {
    assert_eq!(audit(&live("nginx"), &Policy::built_in()), []);
}

#[test]
fn a_finding_names_rule_field_and_what_must_be() {
    let mut live = live("nginx");
    live["spec"]["containers"][0]["securityContext"]["privileged"] = json!(true);
    live["spec"]["hostPID"] = json!(true);
    let found = audit(&live, &Policy::built_in());
    let found: Vec<String> = found.iter().map(|r| format!("{}: {} ({})", r.field, r.message, r.rule)).collect();
    assert_eq!(
        found,
        [
            "spec.hostPID: shares the node's processes with the session; remove it (host)",
            "spec.containers[0].securityContext.privileged: is true, must be false (privilege)",
        ]
    );
}

#[test]
fn a_pod_that_was_never_hardened_and_one_that_is_no_session_are_found_out() {
    let found = audit(&pod(json!({ "containers": [{ "name": "a" }] })), &Policy::built_in());
    let fields: Vec<&str> = found.iter().map(|reason| reason.field.as_str()).collect();
    for field in [
        "spec.securityContext.runAsNonRoot",
        "spec.containers[0].securityContext.readOnlyRootFilesystem",
        "spec.containers[0].resources.limits.memory",
        "metadata.labels[cofferdam.dev/session]",
    ] {
        assert!(fields.contains(&field), "{field} not in {fields:?}");
    }
}

#[test]
fn b34_a_mirror_pod_is_never_a_session() {
    let mut mirror = live("nginx");
    mirror["metadata"]["annotations"]["kubernetes.io/config.mirror"] = json!("abc");
    let found = audit(&mirror, &Policy::built_in());
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].field, "metadata.annotations[kubernetes.io/config.mirror]");
}

#[test]
fn b26_an_update_of_a_pod_that_was_never_hardened_goes_on_as_long_as_it_loosens_nothing() {
    let old = pod(json!({
        "containers": [{ "name": "a", "securityContext": { "privileged": true } }],
        "volumes": [{ "name": "h", "hostPath": { "path": "/" } }],
    }));
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({ "team": "blue" });
    new["metadata"]["finalizers"] = json!([]);
    assert!(matches!(update(&old, &new), Verdict::Untouched(Untouched::NothingLoosened)));
}

#[test]
fn b32_a_resize_above_the_ceiling_is_refused_and_below_it_is_not() {
    let old = live("nginx");
    for (amount, is_refused) in [("64Mi", false), ("512Mi", false), ("64Gi", true), ("-1", true)] {
        let mut new = old.clone();
        new["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!(amount);
        new["spec"]["containers"][0]["resources"]["requests"]["memory"] = json!("64Mi");
        match update(&old, &new) {
            Verdict::Refused(refusal) => {
                assert!(is_refused, "{amount}: {refusal}");
                assert_eq!(fields(&refusal)[0], "spec.containers[0].resources.limits.memory");
            }
            Verdict::Untouched(_) => assert!(!is_refused, "{amount}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_was_above_a_lowered_ceiling_may_stay_but_not_grow() {
    let mut old = live("nginx");
    old["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("1Gi");
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    assert!(matches!(update(&old, &new), Verdict::Untouched(_)));
    new["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("2Gi");
    assert!(matches!(update(&old, &new), Verdict::Refused(_)));
}

#[test]
fn b32_every_container_list_and_the_pod_itself_are_bounded_in_a_resize() {
    let mut old = pod(json!({
        "containers": [{ "name": "a" }], "initContainers": [{ "name": "s", "restartPolicy": "Always" }],
    }));
    old = hardened(&old).pod;
    for (list, amount) in [
        ("containers", json!("64Gi")),
        ("containers", json!(null)),
        ("containers", json!(0)),
        ("initContainers", json!("513Mi")),
        ("initContainers", json!("0")),
    ] {
        let mut new = old.clone();
        new["spec"][list][0]["resources"]["limits"]["memory"] = amount.clone();
        match update(&old, &new) {
            Verdict::Refused(refusal) => {
                assert_eq!(fields(&refusal)[0], format!("spec.{list}[0].resources.limits.memory"), "{amount}");
            }
            other => panic!("{amount} {other:?}"),
        }
    }
    let whole = pod(json!({ "containers": [{ "name": "a" }], "resources": { "limits": { "memory": "1Gi" } } }));
    let old = hardened(&whole).pod;
    for (amount, is_refused) in [("2Gi", false), ("3Gi", true)] {
        let mut new = old.clone();
        new["spec"]["resources"]["limits"]["memory"] = json!(amount);
        match update(&old, &new) {
            Verdict::Refused(refusal) => {
                assert!(is_refused);
                assert_eq!(fields(&refusal), ["spec.resources.limits.memory"]);
            }
            Verdict::Untouched(_) => assert!(!is_refused),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_update_may_neither_add_tolerations_nor_choose_nodes_that_a_creation_may_not() {
    let old = live("nginx");
    let change = |change: &dyn Fn(&mut Value)| {
        let mut new = old.clone();
        change(&mut new["spec"]);
        match update(&old, &new) {
            Verdict::Refused(refusal) => fields(&refusal).join(" "),
            Verdict::Untouched(_) => String::new(),
            other => panic!("{other:?}"),
        }
    };
    let plugins = json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9 });
    assert_eq!(change(&|spec| spec["tolerations"] = json!([plugins])), "");
    assert_eq!(change(&|spec| spec["tolerations"] = json!([plugins, { "operator": "Exists" }])), "spec.tolerations[1]");
    assert_eq!(change(&|spec| spec["nodeSelector"] = json!({ "kubernetes.io/arch": "arm64" })), "");
    assert_eq!(change(&|spec| spec["nodeSelector"] = json!({ "x": "y" })), "spec.nodeSelector.x");
    assert_eq!(change(&|spec| spec["priority"] = json!(1)), "spec.priority");
}

#[test]
fn an_update_of_a_pod_whose_profile_is_gone_loosens_nothing_either() {
    let mut old = live("nginx");
    old["metadata"]["labels"]["cofferdam.dev/profile"] = json!("gone");
    let mut new = old.clone();
    new["metadata"]["finalizers"] = json!([]);
    new["spec"]["containers"][0]["image"] = json!("nginx:2");
    assert!(matches!(update(&old, &new), Verdict::Untouched(Untouched::NothingLoosened)));
    new["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("64Gi");
    new["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
    match update(&old, &new) {
        Verdict::Refused(refusal) => {
            assert_eq!(fields(&refusal), ["spec.tolerations[0]", "spec.containers[0].resources.limits.memory"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_update_is_judged_by_the_profile_that_the_pod_has_and_not_by_one_that_it_brings() {
    let policy =
        Policy::parse("policy.yaml", "profiles: {default: {}, large: {resources: {limits: {memory: 8Gi}}}}").unwrap();
    let old = live("nginx");
    let mut new = old.clone();
    new["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("8Gi");
    for labels in [json!({ "cofferdam.dev/session": "a", "cofferdam.dev/profile": "large" }), json!({}), json!(null)] {
        new["metadata"]["labels"] = labels.clone();
        match harden(&Request { operation: Operation::Update { old: &old }, ..create(&new) }, &policy) {
            Verdict::Refused(refusal) => {
                let fields = fields(&refusal);
                assert!(fields.contains(&"spec.containers[0].resources.limits.memory"), "{labels}: {refusal}");
            }
            other => panic!("{labels}: {other:?}"),
        }
    }
    let mut large = old.clone();
    large["metadata"]["labels"]["cofferdam.dev/profile"] = json!("large");
    new["metadata"] = large["metadata"].clone();
    let verdict = harden(&Request { operation: Operation::Update { old: &large }, ..create(&new) }, &policy);
    assert!(matches!(verdict, Verdict::Untouched(Untouched::NothingLoosened)), "{verdict:?}");
}

#[test]
fn an_update_adds_nothing_that_only_a_controller_may_ask_for_whoever_is_named_as_the_owner() {
    let mut old = live("nginx");
    let owner = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": true });
    old["metadata"]["ownerReferences"] = json!([owner]);
    let tolerations =
        json!([{ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" }]);
    let by_name = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["node-1"] }] });
    let affinity = json!({
        "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [by_name] } }
    });
    let mut new = old.clone();
    new["spec"]["tolerations"] = tolerations;
    new["spec"]["affinity"] = affinity;
    match update(&old, &new) {
        Verdict::Refused(refusal) => {
            let key = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]\
                       .matchFields[0].key";
            assert_eq!(fields(&refusal), [key, "spec.tolerations[0]"]);
        }
        other => panic!("{other:?}"),
    }
    // A pod that has them already is the controller's, as far as anybody knows.
    assert_eq!(audit(&new, &Policy::built_in()), []);
    let mut other = new.clone();
    other["spec"]["containers"][0]["image"] = json!("nginx:2");
    assert!(matches!(update(&new, &other), Verdict::Untouched(Untouched::NothingLoosened)));
}

#[test]
fn an_update_gives_what_fetches_a_body_no_other_image() {
    let mut asks = pod(json!({ "containers": [{ "name": "a", "image": "nginx" }] }));
    asks["metadata"]["annotations"] = json!({
        "cofferdam.dev/body-url": "https://bodies.example.com/a", "cofferdam.dev/body-sha256": "0".repeat(64),
        "cofferdam.dev/body-token-secret": "token",
    });
    let old = hardened(&asks).pod;
    let given = |old: &Value, image: &str| {
        let mut new = old.clone();
        new["spec"]["initContainers"][0]["image"] = json!(image);
        match update(old, &new) {
            Verdict::Refused(refusal) => fields(&refusal).join(" "),
            Verdict::Untouched(_) => String::new(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(old["spec"]["initContainers"][0]["name"], "cofferdam-fetch");
    assert_eq!(given(&old, "evil"), "spec.initContainers[0].image");
    // One of an earlier version may stay, and become the one of now.
    let mut earlier = old.clone();
    earlier["spec"]["initContainers"][0]["image"] = json!("cofferdam:earlier");
    assert_eq!(audit(&earlier, &Policy::built_in()), []);
    assert_eq!(given(&earlier, "cofferdam:earlier"), "");
    assert_eq!(given(&earlier, old["spec"]["initContainers"][0]["image"].as_str().unwrap()), "");
    assert_eq!(given(&earlier, "evil"), "spec.initContainers[0].image");
}

#[test]
fn b10_a_container_that_a_later_webhook_put_in_is_found_in_the_final_pod() {
    let mut live = live("nginx");
    live["spec"]["containers"].as_array_mut().unwrap().push(json!({ "name": "proxy", "image": "p" }));
    let found = audit(&live, &Policy::built_in());
    let fields: Vec<&str> = found.iter().map(|reason| reason.field.as_str()).collect();
    assert!(fields.iter().all(|field| field.starts_with("spec.containers[1].")), "{fields:?}");
    for field in ["securityContext.allowPrivilegeEscalation", "resources.limits.memory"] {
        assert!(fields.contains(&format!("spec.containers[1].{field}").as_str()), "{field} not in {fields:?}");
    }
}
