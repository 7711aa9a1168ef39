//! Which requests the entries of the webhook show it, and what becomes of them when nothing answers.

use std::collections::BTreeSet;

use cofferdam_model::keys;
use serde_json::{Value, json};

use crate::objects::{Labels, Objects, items, labels, labels_of, selects, text};

/// The webhooks that would be shown an object with these labels, in a namespace with those.
fn shown<'a>(webhooks: impl Iterator<Item = &'a Value>, namespace: &Labels, object: &Labels) -> Vec<&'a str> {
    webhooks
        .filter(|webhook| {
            selects(&webhook["namespaceSelector"], namespace) && selects(&webhook["objectSelector"], object)
        })
        .map(|webhook| text(&webhook["name"]))
        .collect()
}

#[test]
fn b89_no_pod_is_shown_to_two_entries_and_none_that_a_cluster_needs_to_start_to_any() {
    let objects = Objects::of("overlays/cert-manager");
    let sessions = |name, value| labels(&[("kubernetes.io/metadata.name", name), ("cofferdam.dev/sessions", value)]);
    let ordinary = |name| labels(&[("kubernetes.io/metadata.name", name)]);
    let plain = labels(&[("app", "x")]);
    let session = labels(&[("cofferdam.dev/session", "abc")]);
    let opted_in = labels(&[("cofferdam.dev/session", "")]);
    let shipped = labels_of(&objects.named("Namespace", "cofferdam-sessions").expect("it ships")["metadata"]["labels"]);
    // Who is shown its creation, and who its update; nobody holds up an update where nothing is enforced.
    for (namespace, pod, created, updated) in [
        (shipped, &plain, &["enforced.cofferdam.dev"][..], &["enforced.pods.cofferdam.dev"][..]),
        (sessions("team", "enforced"), &plain, &["enforced.cofferdam.dev"], &["enforced.pods.cofferdam.dev"]),
        (sessions("team", "enforced"), &session, &["enforced.cofferdam.dev"], &["enforced.pods.cofferdam.dev"]),
        (sessions("team", "warn"), &plain, &["warn.cofferdam.dev"], &[]),
        (sessions("team", "warn"), &session, &["warn.cofferdam.dev"], &[]),
        (ordinary("default"), &session, &["labelled.cofferdam.dev"], &["labelled.pods.cofferdam.dev"]),
        (ordinary("default"), &opted_in, &["labelled.cofferdam.dev"], &["labelled.pods.cofferdam.dev"]),
        (ordinary("default"), &plain, &[], &[]),
        (ordinary("cert-manager"), &plain, &[], &[]),
        (ordinary("kube-system"), &session, &[], &[]),
        (sessions("kube-system", "enforced"), &plain, &[], &[]),
        (sessions("kube-system", "warn"), &plain, &[], &[]),
        (ordinary("cofferdam-system"), &session, &[], &[]),
        (sessions("cofferdam-system", "enforced"), &plain, &[], &[]),
    ] {
        let of_pods = objects.validating().iter().filter(|webhook| webhook["rules"][0]["resources"] == json!(["pods"]));
        assert_eq!(shown(objects.mutating().iter(), &namespace, pod), created, "{namespace:?} {pod:?}");
        assert_eq!(shown(of_pods, &namespace, pod), updated, "{namespace:?} {pod:?}");
        // One answer about a workload, wherever it is.
        let of_workloads = objects.validating().iter().filter(|webhook| webhook["failurePolicy"] == "Ignore");
        let name = namespace.get("kubernetes.io/metadata.name").map(String::as_str);
        let exempt = matches!(name, Some("kube-system" | "cofferdam-system"));
        assert_eq!(shown(of_workloads, &namespace, &plain).len(), usize::from(!exempt), "{namespace:?}");
    }
}

#[test]
fn the_program_and_the_entries_use_the_same_words() {
    let objects = Objects::of("overlays/cert-manager");
    for webhook in objects.webhooks() {
        let expressions = items(&webhook["namespaceSelector"]["matchExpressions"]);
        assert_eq!(expressions[0]["values"], json!([keys::SYSTEM_NAMESPACE, keys::KUBE_SYSTEM]));
        assert_eq!(expressions[1]["key"], keys::SESSIONS);
        if let Some(expression) = items(&webhook["objectSelector"]["matchExpressions"]).first() {
            assert_eq!(expression["key"], keys::SESSION);
        }
        let path = text(&webhook["clientConfig"]["service"]["path"]);
        let scope = text(&webhook["name"]).split('.').next().expect("a name has a first part");
        assert!(path.ends_with(&format!("/{scope}")), "{path}");
        let expected = if scope == "labelled" { json!(["enforced", "warn"]) } else { json!([scope]) };
        assert_eq!(expressions[1]["values"], expected, "{path}");
    }
    for (policy, key) in [("cofferdam-session-label", keys::SESSIONS), ("cofferdam-session-selector", keys::SESSION)] {
        let policy = objects.named("ValidatingAdmissionPolicy", policy).expect("the policy is shipped").to_string();
        assert!(policy.contains(&format!("'{key}'")), "{policy}");
    }
    each_key_is_refused_where_it_would_protect_nothing(&objects);
    let asks = objects.validating().last().expect("there are some")["matchConditions"].to_string();
    assert!(asks.contains(&format!("'{}'", keys::SESSION)), "{asks}");
}

/// The pods' key on a namespace, and the namespaces' on a pod: refused in words that name the right one. Of pods no other
/// is looked at.
fn each_key_is_refused_where_it_would_protect_nothing(objects: &Objects) {
    for (policy, wrong, right) in [
        ("cofferdam-session-label", keys::SESSION, keys::SESSIONS),
        ("cofferdam-session-pod-label", keys::SESSIONS, keys::SESSION),
    ] {
        let policy = objects.named("ValidatingAdmissionPolicy", policy).expect("the policy is shipped");
        let says = items(&policy["spec"]["validations"]).last().map(|last| text(&last["message"]).to_owned());
        let says = says.expect("it refuses something");
        assert!(says.starts_with(&format!("label {wrong} is for ")) && says.contains(right), "{says}");
        assert!(policy["spec"]["variables"].to_string().contains(&format!("'{wrong}'")), "{policy}");
        assert!(objects.named("ValidatingAdmissionPolicyBinding", text(&policy["metadata"]["name"])).is_some());
    }
    let pods =
        objects.named("ValidatingAdmissionPolicy", "cofferdam-session-pod-label").expect("the policy is shipped");
    let selector = &pods["spec"]["matchConstraints"]["objectSelector"];
    assert!(selects(selector, &labels(&[(keys::SESSIONS, "enforced")])));
    assert!(!selects(selector, &labels(&[(keys::SESSION, "")])));
    // Where the namespace has the key all pods are protected, or stay as they are.
    let selector = &pods["spec"]["matchConstraints"]["namespaceSelector"];
    for (name, sessions, is_looked_at) in [
        ("team", None, true),
        ("team", Some("enforced"), false),
        ("team", Some("warn"), false),
        ("team", Some("of-before-the-policy"), true),
        (keys::KUBE_SYSTEM, None, false),
    ] {
        let mut namespace = labels(&[("kubernetes.io/metadata.name", name)]);
        namespace.extend(sessions.map(|value| (keys::SESSIONS.to_owned(), value.to_owned())));
        assert_eq!(selects(selector, &namespace), is_looked_at, "{name} {sessions:?}");
    }
}

#[test]
fn a_namespaces_label_is_looked_at_by_whichever_way_it_comes() {
    let objects = Objects::of("overlays/cert-manager");
    let policy = objects.named("ValidatingAdmissionPolicy", "cofferdam-session-label").expect("the policy is shipped");
    let rules = items(&policy["spec"]["matchConstraints"]["resourceRules"]);
    let resources: BTreeSet<&str> = rules.iter().flat_map(|rule| items(&rule["resources"])).map(text).collect();
    // Of these, an update carries the metadata.
    assert_eq!(resources, ["namespaces", "namespaces/finalize", "namespaces/status"].into());
}

/// Operations and resources that a webhook is registered for, as `OPERATION group/resource`.
fn registered(webhook: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rule in items(&webhook["rules"]) {
        assert_eq!((&rule["apiVersions"], &rule["scope"]), (&json!(["v1"]), &json!("Namespaced")));
        for operation in items(&rule["operations"]) {
            for resource in items(&rule["resources"]) {
                found.insert(format!("{} {}/{}", text(operation), text(&rule["apiGroups"][0]), text(resource)));
            }
        }
    }
    found
}

#[test]
fn b22_b91_every_entry_that_enforces_fails_closed_and_none_has_a_side_effect() {
    let objects = Objects::of("overlays/cert-manager");
    let mut paths = Vec::new();
    for webhook in objects.webhooks() {
        let name = text(&webhook["name"]);
        let only_tells = name.starts_with("warn.") || name.contains(".workloads.");
        assert_eq!(webhook["failurePolicy"], if only_tells { "Ignore" } else { "Fail" }, "{name}");
        assert_eq!(webhook["sideEffects"], "None");
        assert_eq!(webhook["timeoutSeconds"], 3);
        assert_eq!(webhook["matchPolicy"], "Equivalent");
        assert_eq!(webhook["admissionReviewVersions"], json!(["v1"]));
        paths.push(text(&webhook["clientConfig"]["service"]["path"]));
    }
    for webhook in objects.mutating() {
        assert_eq!(webhook["reinvocationPolicy"], "IfNeeded");
    }
    let expected = ["mutate/enforced", "mutate/warn", "mutate/labelled", "validate/enforced", "validate/labelled"];
    assert_eq!(paths[..5], expected.map(|path| format!("/{path}")));
    assert_eq!(paths[5..], ["/validate/enforced", "/validate/warn", "/validate/labelled"]);
}

#[test]
fn b28_b32_what_changes_a_pod_is_registered_and_what_keeps_it_going_is_not() {
    let objects = Objects::of("overlays/cert-manager");
    for webhook in objects.mutating() {
        let expected = ["CREATE /pods", "UPDATE /pods/ephemeralcontainers", "UPDATE /pods/resize"];
        assert_eq!(registered(webhook), expected.map(str::to_owned).into(), "{}", webhook["name"]);
    }
    for webhook in objects.validating() {
        let registered = registered(webhook);
        if text(&webhook["name"]).contains(".pods.") {
            assert_eq!(registered, ["UPDATE /pods".to_owned()].into());
            let conditions = items(&webhook["matchConditions"]);
            let expression = text(&conditions[0]["expression"]);
            for field in ["containers", "initContainers", "tolerations", "nodeName", "nodeSelector", "affinity"] {
                assert!(
                    expression.contains(&format!("spec.{field}")) || expression.contains(&format!("spec.?{field}"))
                );
            }
            assert!(conditions.len() == 1 && !expression.contains("metadata"), "{expression}");
        } else {
            assert_eq!(registered.len(), 14, "{registered:?}");
        }
    }
}
