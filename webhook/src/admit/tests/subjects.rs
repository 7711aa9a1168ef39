//! Every path, asked about every kind of review.

use super::*;

/// What an API server could ask about, as group, version, resource and subresource, and what is done to it.
pub(super) const KINDS: [([&str; 4], &str); 22] = [
    (["", "v1", "pods", ""], "CREATE"),
    (["", "v1", "pods", ""], "UPDATE"),
    (["", "v1", "pods", ""], "DELETE"),
    (["", "v1", "pods", "ephemeralcontainers"], "UPDATE"),
    (["", "v1", "pods", "resize"], "UPDATE"),
    (["", "v1", "pods", "status"], "UPDATE"),
    (["", "v1", "pods", "binding"], "CREATE"),
    (["", "v1", "pods", "exec"], "CONNECT"),
    (["", "v1", "replicationcontrollers", ""], "CREATE"),
    (["", "v1", "podtemplates", ""], "UPDATE"),
    (["apps", "v1", "deployments", ""], "CREATE"),
    (["apps", "v1", "deployments", ""], "UPDATE"),
    (["apps", "v1", "deployments", "scale"], "UPDATE"),
    (["apps", "v1", "statefulsets", ""], "UPDATE"),
    (["apps", "v1", "daemonsets", ""], "CREATE"),
    (["apps", "v1", "replicasets", ""], "CREATE"),
    (["batch", "v1", "jobs", ""], "CREATE"),
    (["batch", "v1", "cronjobs", ""], "UPDATE"),
    (["apps", "v1beta1", "deployments", ""], "CREATE"),
    (["apps", "v1", "pods", ""], "CREATE"),
    (["", "v1", "services", ""], "CREATE"),
    (["metrics.k8s.io", "v1", "pods", ""], "CREATE"),
];

/// A request to do something to something.
pub(super) fn request(
    [group, version, resource, part]: [&str; 4],
    operation: &str,
    object: &Value,
    old: &Value,
) -> Value {
    let mut request = create(object);
    request["resource"] = json!({"group": group, "version": version, "resource": resource});
    request["subResource"] = json!(part);
    request["operation"] = json!(operation);
    request["oldObject"] = old.clone();
    request
}

/// A pod that asks for what is tightened, with the label.
fn privileged_pod() -> Value {
    let mut pod = plain_pod();
    pod["metadata"]["labels"] = json!({"cofferdam.dev/session": "abc"});
    pod["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    pod
}

/// The same pod as a workload's template.
fn workload(resource: &str, pod: &Value) -> Value {
    let template = json!({"metadata": pod["metadata"], "spec": pod["spec"]});
    match resource {
        "podtemplates" => json!({"metadata": {"name": "w"}, "template": template}),
        "cronjobs" => json!({"metadata": {"name": "w"}, "spec": {"jobTemplate": {"spec": {"template": template}}}}),
        _ => json!({"metadata": {"name": "w"}, "spec": {"template": template}}),
    }
}

const WORKLOADS: [([&str; 4], &str); 8] = [
    (["", "v1", "podtemplates", ""], "template"),
    (["", "v1", "replicationcontrollers", ""], "spec.template"),
    (["apps", "v1", "daemonsets", ""], "spec.template"),
    (["apps", "v1", "deployments", ""], "spec.template"),
    (["apps", "v1", "replicasets", ""], "spec.template"),
    (["apps", "v1", "statefulsets", ""], "spec.template"),
    (["batch", "v1", "jobs", ""], "spec.template"),
    (["batch", "v1", "cronjobs", ""], "spec.jobTemplate.spec.template"),
];

fn is_template(resource: [&str; 4]) -> bool {
    WORKLOADS.iter().any(|(known, _)| *known == resource)
}

#[tokio::test]
async fn every_path_answers_what_it_is_registered_for_and_denies_the_rest() {
    for (path, entry) in Entry::ALL {
        let [webhook, scope] = Entry::words(Some(entry));
        for (resource, operation) in KINDS {
            let desk = Desk::open();
            let pod = privileged_pod();
            let object = if is_template(resource) { workload(resource[2], &pod) } else { pod.clone() };
            let response = desk.review(path, &request(resource, operation, &object, &object)).await;
            // Of the ephemeral containers nothing is new, so nothing is done about them.
            let expected = match (webhook, resource, operation) {
                ("mutating", ["", "v1", "pods", ""], "CREATE")
                | ("mutating", ["", "v1", "pods", "ephemeralcontainers"], "UPDATE") => {
                    if scope == "warn" {
                        "advised"
                    } else {
                        "hardened"
                    }
                }
                ("mutating", ["", "v1", "pods", "resize"], "UPDATE")
                | ("validating", ["", "v1", "pods", ""], "UPDATE") => "nothing-loosened",
                ("validating", resource, "CREATE" | "UPDATE") if is_template(resource) => "advised",
                _ => "unexpected",
            };
            let context = format!("{path} {resource:?} {operation} {response}");
            assert!(desk.counted_by(webhook, scope, expected), "{expected}: {context}");
            assert_eq!(response["allowed"], expected != "unexpected", "{context}");
        }
    }
}

#[tokio::test]
async fn b28_b30_a_new_container_for_debugging_is_hardened_and_its_neighbours_stay() {
    let desk = Desk::open();
    let mut old = privileged_pod();
    old["spec"]["ephemeralContainers"] = json!([{"name": "before", "image": "i"}]);
    let mut new = old.clone();
    let added = json!({"name": "debug", "image": "i", "securityContext": {"privileged": true}});
    new["spec"]["ephemeralContainers"].as_array_mut().unwrap().push(added);
    let request = request(["", "v1", "pods", "ephemeralcontainers"], "UPDATE", &new, &old);
    let response = desk.review("/mutate/enforced", &request).await;
    let paths = patched(&response);
    assert!(
        !paths.is_empty() && paths.iter().all(|path| path.starts_with("/spec/ephemeralContainers/1/")),
        "{paths:?}"
    );
    assert!(!paths.iter().any(|path| path.contains("resources")), "{paths:?}");
    let warnings = response["warnings"].to_string();
    assert!(warnings.contains("spec.ephemeralContainers[1].securityContext.privileged: true, now false"), "{warnings}");
    assert!(desk.counted("enforced", "hardened"));
}

fn patched(response: &Value) -> Vec<String> {
    use base64::Engine as _;
    let patch = base64::engine::general_purpose::STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
    let patch: Vec<Value> = serde_json::from_slice(&patch).unwrap();
    patch.iter().map(|operation| operation["path"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn b32_a_resize_above_the_ceiling_is_refused_and_never_patched() {
    let mut old = plain_pod();
    old["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "100Mi"}, "requests": {"memory": "100Mi"}});
    for (memory, allowed, outcome) in [("200Mi", true, "nothing-loosened"), ("64Gi", false, "refused")] {
        let desk = Desk::open();
        let mut new = old.clone();
        new["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!(memory);
        let request = request(["", "v1", "pods", "resize"], "UPDATE", &new, &old);
        let response = desk.review("/mutate/enforced", &request).await;
        assert_eq!(response["allowed"], allowed, "{response}");
        assert!(response.get("patch").is_none());
        assert!(desk.counted("enforced", outcome), "{outcome}");
        assert_eq!(response["auditAnnotations"]["refused-by"].is_null(), allowed, "{response}");
    }
}

#[tokio::test]
async fn b26_an_update_is_never_patched_and_refused_only_for_what_it_makes_worse() {
    // Made before there was a webhook.
    let old = privileged_pod();
    let mut finished = old.clone();
    finished["metadata"]["finalizers"] = json!([]);
    let mut worse = old.clone();
    worse["spec"]["hostNetwork"] = json!(true);
    for (new, outcome) in [(finished, "nothing-loosened"), (worse, "refused")] {
        let desk = Desk::open();
        let request = request(["", "v1", "pods", ""], "UPDATE", &new, &old);
        let response = desk.review("/validate/labelled", &request).await;
        assert!(response.get("patch").is_none(), "{response}");
        assert!(desk.counted_by("validating", "labelled", outcome), "{response}");
    }
}

#[tokio::test]
async fn an_update_without_the_old_object_cannot_be_judged() {
    for (path, part) in
        [("/mutate/enforced", "ephemeralcontainers"), ("/mutate/enforced", "resize"), ("/validate/enforced", "")]
    {
        let desk = Desk::open();
        let response =
            desk.review(path, &request(["", "v1", "pods", part], "UPDATE", &plain_pod(), &Value::Null)).await;
        assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(400)), "{response}");
    }
}

#[tokio::test]
async fn the_owner_of_a_workload_is_told_what_becomes_of_its_pods_and_is_never_refused() {
    for scope in ["enforced", "warn", "labelled"] {
        for (resource, at) in WORKLOADS {
            for (field, told, outcome) in [
                (json!({}), "would change: {at}.spec.containers[0].securityContext.privileged", "advised"),
                (json!({"hostNetwork": true}), "would refuse: {at}.spec.hostNetwork: ", "advised-refusal"),
            ] {
                let desk = Desk::open();
                let mut pod = privileged_pod();
                pod["spec"].as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
                let request = request(resource, "CREATE", &workload(resource[2], &pod), &Value::Null);
                let response = desk.review(&format!("/validate/{scope}"), &request).await;
                assert_eq!(response["allowed"], true, "{response}");
                let told = told.replace("{at}", at);
                let warnings = response["warnings"].as_array().unwrap();
                assert!(warnings.iter().any(|line| line.as_str().unwrap().starts_with(&told)), "{told}: {warnings:?}");
                assert!(desk.counted_by("validating", scope, outcome), "{scope} {resource:?} {outcome}");
            }
        }
    }
}

#[tokio::test]
async fn a_workload_whose_pods_are_no_sessions_or_cannot_be_read_is_let_through() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
    let deployments = ["apps", "v1", "deployments", ""];
    let plain = request(deployments, "CREATE", &workload("deployments", &plain_pod()), &Value::Null);
    let desk = Desk::open();
    assert_eq!(desk.review("/validate/labelled", &plain).await, json!({"uid": "u-1", "allowed": true}));
    assert!(desk.counted_by("validating", "labelled", "not-a-session"));

    let body = review(&request(deployments, "CREATE", &json!("DEEP"), &Value::Null)).replace("\"DEEP\"", &deep);
    let (_, _, answer) = desk.ask(post("/validate/enforced", &body)).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["response"]["allowed"], true);
    assert!(answer["response"]["warnings"][0].as_str().unwrap().starts_with("Cofferdam cannot tell"), "{answer}");
}

#[tokio::test]
async fn a_namespace_that_only_wants_to_know_gets_warnings_and_unchanged_pods() {
    let desk = Desk::open();
    let response = desk.review("/mutate/warn", &create(&privileged_pod())).await;
    assert_eq!(response["allowed"], true);
    assert!(response.get("patch").is_none() && response.get("auditAnnotations").is_none(), "{response}");
    let told = "would change: spec.containers[0].securityContext.privileged: true, now false (privilege)";
    assert_eq!(response["warnings"][0], told);
    assert!(desk.counted("warn", "advised"));

    let mut refused = privileged_pod();
    refused["spec"]["hostNetwork"] = json!(true);
    let response = desk.review("/mutate/warn", &create(&refused)).await;
    assert_eq!(response["allowed"], true);
    assert!(response["warnings"].to_string().contains("would refuse: spec.hostNetwork"), "{response}");
    assert!(desk.counted("warn", "advised-refusal"));
}

#[tokio::test]
async fn an_old_object_counts_like_the_new_one() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
    let heavy = json!(vec![json!({"": 0}); 100_000]).to_string();
    for (old, outcome) in [(deep, "unreadable"), (heavy, "too-heavy")] {
        let desk = Desk::open();
        let asked = request(["", "v1", "pods", "resize"], "UPDATE", &plain_pod(), &json!("OLD"));
        let body = review(&asked).replace("\"OLD\"", &old);
        let (_, _, answer) = desk.ask(post("/mutate/enforced", &body)).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["response"]["uid"], &answer["response"]["allowed"]), (&json!("u-1"), &json!(false)));
        assert!(desk.counted("enforced", outcome), "{outcome}");
        // Where nobody looks at it, it costs nothing.
        let unread = review(&request(["", "v1", "pods", ""], "CREATE", &plain_pod(), &json!("OLD")));
        let (_, _, answer) = desk.ask(post("/mutate/enforced", &unread.replace("\"OLD\"", &old))).await;
        assert!(answer.contains("\"allowed\":true"), "{answer}");
    }
}

#[tokio::test]
async fn b22_a_dry_run_gets_the_patch_of_the_real_request() {
    let desk = Desk::open();
    let real = create(&plain_pod());
    let mut dry = real.clone();
    dry["dryRun"] = json!(true);
    let patch = |response: Value| response["patch"].as_str().unwrap().to_owned();
    assert_eq!(patch(desk.review("/mutate/enforced", &real).await), patch(desk.review("/mutate/enforced", &dry).await));
}

#[tokio::test]
async fn a_request_is_judged_by_the_policy_of_the_moment() {
    let desk = Desk::open();
    let digest = |response: Value| response["auditAnnotations"]["policy"].as_str().unwrap().to_owned();
    let before = digest(desk.review("/mutate/enforced", &create(&plain_pod())).await);
    let changed = Policy::parse("policy.yaml", "profiles: {default: {}}").unwrap();
    desk.admission.policy.store(Arc::new(changed.clone()));
    let after = digest(desk.review("/mutate/enforced", &create(&plain_pod())).await);
    assert_ne!(before, after);
    assert_eq!(after, changed.digest());
}
