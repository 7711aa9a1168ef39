//! What people are told who would not hear of it otherwise: where nothing is enforced yet, and of workloads' pods.

use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::kubectl::Answer;
use cofferdam_e2e::namespace::{Sessions, TestNamespace};
use cofferdam_e2e::stage::Stage;
use serde_json::{Value, json};

use crate::session::namespace;

/// A pod that asks for too much, and is never scheduled.
fn greedy(name: &str, label: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": label.map(|value| json!({"cofferdam.dev/session": value}))},
        "spec": {
            "schedulingGates": [{"name": "cofferdam.test/never"}],
            "containers": [{"name": "app", "image": FIXTURE, "securityContext": {"privileged": true}}],
        },
    })
}

#[test]
fn a_namespace_that_only_wants_to_know_hears_of_everything_and_nothing_is_done() {
    let namespace = namespace("warned", Sessions::Warn);
    let stage = Stage::shared();
    let counted = |outcome: &str| -> u64 {
        let labels = format!("outcome=\"{outcome}\",scope=\"warn\",webhook=\"mutating\"");
        let values = stage.metrics(&format!("cofferdam_webhook_requests_total{{{labels}}}")).unwrap();
        values.iter().map(|value| value.parse::<u64>().unwrap()).sum()
    };
    let before = (counted("advised"), counted("advised-refusal"));

    let created = namespace.create_object(&greedy("changed", None).to_string()).unwrap();
    let told = "would change: spec.containers[0].securityContext.privileged: true, now false (privilege)";
    assert!(created.warnings.iter().any(|line| line == told), "{:?}", created.warnings);
    let container = &created.pod["spec"]["containers"][0];
    assert_eq!(container["securityContext"], json!({"privileged": true}));
    assert_eq!(created.pod["spec"]["securityContext"], json!({}));
    assert!(created.pod["metadata"]["annotations"].is_null() && created.pod["metadata"]["labels"].is_null());

    let mut pod = greedy("refused", Some("abc"));
    pod["spec"]["hostNetwork"] = json!(true);
    let created = namespace.create_object(&pod.to_string()).unwrap();
    let refusal = created.warnings.iter().any(|line| line.starts_with("would refuse: spec.hostNetwork: "));
    assert!(refusal, "{:?}", created.warnings);
    assert_eq!(created.pod["spec"]["hostNetwork"], true);

    assert_eq!((counted("advised"), counted("advised-refusal")), (before.0 + 1, before.1 + 1));
}

fn apply(namespace: &TestNamespace, object: &Value) -> Answer {
    let answer = namespace.ask(["apply", "--filename=-"], &object.to_string()).unwrap();
    assert!(answer.success, "{}", answer.stderr);
    answer
}

fn deployment(name: &str, label: Option<&str>) -> Value {
    let mut template = greedy("x", label);
    template["metadata"]["labels"]["app"] = json!(name);
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]},
        },
    })
}

#[test]
fn the_owner_of_a_workload_is_told_at_apply_what_becomes_of_its_pods() {
    const PRIVILEGED: &str = "spec.containers[0].securityContext.privileged: true, now false (privilege)";
    for (name, sessions, label, expected) in [
        ("owner-enforced", Sessions::Enforced, None, true),
        ("owner-warn", Sessions::Warn, None, true),
        ("owner-labelled", Sessions::None, Some(""), true),
        ("owner-ordinary", Sessions::None, None, false),
    ] {
        let namespace = namespace(name, sessions);
        let told = format!("would change: spec.template.{PRIVILEGED}");
        let answer = apply(&namespace, &deployment("web", label));
        assert_eq!(answer.warnings().contains(&told.as_str()), expected, "{name}: {}", answer.stderr);
        let answer = namespace.ask(["scale", "deployment/web", "--replicas=0"], "").unwrap();
        assert!(answer.success && answer.warnings().is_empty(), "{}", answer.stderr);

        let told = format!("would change: spec.jobTemplate.spec.template.{PRIVILEGED}");
        let mut template = deployment("x", label)["spec"]["template"].take();
        template["spec"]["restartPolicy"] = json!("Never");
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": template}}},
        });
        let answer = apply(&namespace, &job);
        assert_eq!(answer.warnings().contains(&told.as_str()), expected, "{name}: {}", answer.stderr);
    }
}

#[test]
fn what_a_controller_makes_is_not_told_again() {
    let namespace = namespace("owner-owned", Sessions::Enforced);
    let stage = Stage::shared();
    let labels = "outcome=\"advised\",scope=\"enforced\",webhook=\"validating\"";
    let counted = || -> u64 {
        let values = stage.metrics(&format!("cofferdam_webhook_requests_total{{{labels}}}")).unwrap();
        values.iter().map(|value| value.parse::<u64>().unwrap()).sum()
    };
    let before = counted();
    let controller =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true});
    let mut set = deployment("set", None);
    set["kind"] = json!("ReplicaSet");
    set["spec"]["replicas"] = json!(0);
    set["metadata"]["ownerReferences"] = json!([controller]);
    // Nothing is stored, so no garbage collector misses the owner.
    let run = ["create", "--filename=-", "--dry-run=server"];
    let owned = namespace.ask(run, &set.to_string()).unwrap();
    assert!(owned.success && owned.warnings().is_empty(), "{}", owned.stderr);
    set["metadata"]["ownerReferences"].take();
    let of_a_person = namespace.ask(run, &set.to_string()).unwrap();
    assert!(of_a_person.success && !of_a_person.warnings().is_empty(), "{}", of_a_person.stderr);
    assert!(counted() > before);
}

#[test]
fn b22_a_dry_run_shows_what_the_real_creation_stores() {
    let namespace = namespace("dry-run", Sessions::Enforced);
    let pod = greedy("pod", Some("mine")).to_string();
    let dry = namespace.ask(["create", "--filename=-", "--output=json", "--dry-run=server"], &pod).unwrap();
    assert!(dry.success, "{}", dry.stderr);
    let real = namespace.create_object(&pod).unwrap();
    let shown: Value = serde_json::from_str(&dry.stdout).unwrap();
    assert_eq!(shown["spec"], real.pod["spec"]);
    for member in ["labels", "annotations"] {
        assert_eq!(shown["metadata"][member], real.pod["metadata"][member]);
    }
    assert_eq!(dry.warnings(), real.warnings);
}

#[test]
fn a_mistyped_value_of_the_namespaces_label_is_refused_and_both_words_are_taken() {
    let namespace = namespace("label-words", Sessions::None);
    let label = |value: &str| {
        let word = format!("cofferdam.dev/sessions={value}");
        namespace.ask(["label", "namespace", namespace.name(), &word, "--overwrite"], "").unwrap()
    };
    for value in ["warn", "enforced"] {
        assert!(label(value).success, "{value}");
    }
    let refused = label("enforce");
    assert!(!refused.success && refused.stderr.contains("must be 'enforced' or 'warn'"), "{refused:?}");
}

#[test]
fn the_label_of_pods_on_a_namespace_and_that_of_namespaces_on_a_pod_are_refused_by_the_name_of_the_right_one() {
    let namespace = namespace("label-keys", Sessions::None);
    let word = "cofferdam.dev/session=enforced";
    let refused = namespace.ask(["label", "namespace", namespace.name(), word], "").unwrap();
    assert!(!refused.success && refused.stderr.contains("set cofferdam.dev/sessions to"), "{refused:?}");
    let mut pod = greedy("mistaken", None);
    namespace.create_object(&pod.to_string()).unwrap();
    let word = "cofferdam.dev/sessions=enforced";
    let labelled = namespace.ask(["label", "pod", "mistaken", word], "").unwrap();
    pod["metadata"]["name"] = json!("born");
    pod["metadata"]["labels"] = json!({"cofferdam.dev/sessions": "enforced"});
    let created = namespace.ask(["create", "--filename=-"], &pod.to_string()).unwrap();
    for refused in [labelled, created] {
        let says = "create the pod with the label cofferdam.dev/session";
        assert!(!refused.success && refused.stderr.contains(says), "{refused:?}");
    }
}

#[test]
fn a_namespaces_label_that_comes_with_its_status_is_refused_too() {
    let namespace = namespace("label-status", Sessions::None);
    for word in [r#"{"cofferdam.dev/sessions":"enforce"}"#, r#"{"cofferdam.dev/session":"enforced"}"#] {
        let patch = format!(r#"--patch={{"metadata":{{"labels":{word}}}}}"#);
        let arguments = ["patch", "namespace", namespace.name(), "--subresource=status", "--type=merge", &patch];
        let refused = namespace.ask(arguments, "").unwrap();
        assert!(!refused.success && refused.stderr.contains("would protect nothing"), "{refused:?}");
    }
}

#[test]
fn the_label_of_namespaces_on_a_pod_is_no_mistake_where_its_namespace_has_it() {
    for (name, sessions) in [("label-enforced", Sessions::Enforced), ("label-warned", Sessions::Warn)] {
        let namespace = namespace(name, sessions);
        let mut pod = greedy("both", None);
        pod["metadata"]["labels"] = json!({"cofferdam.dev/sessions": "enforced"});
        let created = namespace.create_object(&pod.to_string()).unwrap();
        let is_session = !created.pod["metadata"]["labels"]["cofferdam.dev/session"].is_null();
        assert_eq!(is_session, sessions == Sessions::Enforced, "{name}");
    }
}
