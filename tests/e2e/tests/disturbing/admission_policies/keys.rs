//! Our own words on live pods: a pod is made a session when it is created, and what our programs say of it only they say.

use cofferdam_e2e::kubectl::Answer;
use serde_json::{Value, json};

use super::{AGENT, API, NAMESPACE, hardened, refused_by, stage};

/// An ordinary namespace.
const ORDINARY: &str = "default";

/// Makes a session, which waits to be scheduled for ever.
fn session(name: &str) {
    let mut pod = hardened(&json!({
        "schedulingGates": [{"name": "cofferdam.test/never"}],
        "containers": [{"name": "app", "image": "cofferdam.test/none:1"}],
    }));
    pod["metadata"]["name"] = json!(name);
    create(NAMESPACE, &pod);
}

/// Makes a pod that is none.
fn ordinary(name: &str) {
    create(
        ORDINARY,
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "schedulingGates": [{"name": "cofferdam.test/never"}],
            "containers": [{"name": "app", "image": "cofferdam.test/none:1"}],
        }}),
    );
}

fn create(namespace: &str, pod: &Value) {
    let name = pod["metadata"]["name"].as_str().unwrap();
    // Left by nobody, but for a run that shares its cluster with an earlier one.
    let _ = stage().kubectl.run(["delete", "pod", name, "--namespace", namespace, "--ignore-not-found", "--now"]);
    stage().kubectl.run_with(["create", "--namespace", namespace, "--filename=-"], &pod.to_string()).unwrap();
}

fn patch(namespace: &str, pod: &str, subresource: &str, change: &Value, arguments: &[&str]) -> Answer {
    let change = change.to_string();
    let subresource = format!("--subresource={subresource}");
    let mut all = vec!["patch", "pod", pod, "--namespace", namespace, "--patch", &change];
    if subresource != "--subresource=" {
        all.push(&subresource);
    }
    all.extend(arguments);
    stage().kubectl.ask(all, "").unwrap()
}

fn metadata(namespace: &str, pod: &str) -> Value {
    stage().kubectl.json(["get", "pod", pod, "--namespace", namespace]).unwrap()["metadata"].clone()
}

#[test]
fn what_makes_a_session_neither_comes_changes_nor_goes_while_a_pod_lives() {
    session("fixed");
    ordinary("plain");
    for subresource in ["", "status"] {
        for (namespace, pod, labels) in [
            (NAMESPACE, "fixed", json!({"cofferdam.dev/session": null})),
            (NAMESPACE, "fixed", json!({"cofferdam.dev/session": "other"})),
            (NAMESPACE, "fixed", json!({"cofferdam.dev/profile": null})),
            (NAMESPACE, "fixed", json!({"cofferdam.dev/profile": "other"})),
            (ORDINARY, "plain", json!({"cofferdam.dev/session": "late"})),
            (ORDINARY, "plain", json!({"cofferdam.dev/session": ""})),
            (ORDINARY, "plain", json!({"cofferdam.dev/profile": "default"})),
        ] {
            let answer = patch(namespace, pod, subresource, &json!({"metadata": {"labels": labels}}), &[]);
            refused_by("keys", &answer).unwrap();
        }
        for key in ["hardened", "changes", "body-url", "body-sha256", "body-token-secret", "entry"] {
            for (namespace, pod) in [(NAMESPACE, "fixed"), (ORDINARY, "plain")] {
                let annotations = json!({format!("cofferdam.dev/{key}"): "forged"});
                let answer =
                    patch(namespace, pod, subresource, &json!({"metadata": {"annotations": annotations}}), &[]);
                refused_by("keys", &answer).unwrap();
            }
        }
        let answer = patch(
            NAMESPACE,
            "fixed",
            subresource,
            &json!({"metadata": {"annotations": {"cofferdam.dev/changes": null}}}),
            &[],
        );
        refused_by("keys", &answer).unwrap();
    }
}

#[test]
fn other_subresources_carry_nothing_of_ours() {
    session("carried");
    let before = metadata(NAMESPACE, "carried");
    let forged =
        json!({"labels": {"cofferdam.dev/session": "other"}, "annotations": {"cofferdam.dev/endpoints": "{}"}});
    for (subresource, spec) in [
        ("ephemeralcontainers", json!({"ephemeralContainers": []})),
        ("resize", json!({"containers": [{"name": "app", "resources": {"limits": {"cpu": "400m"}}}]})),
    ] {
        // Refused, or dropped by the API server: either will do.
        let _ = patch(NAMESPACE, "carried", subresource, &json!({"metadata": forged.clone(), "spec": spec}), &[]);
        let after = metadata(NAMESPACE, "carried");
        for kind in ["labels", "annotations"] {
            assert_eq!(after[kind], before[kind], "{subresource}");
        }
    }
}

#[test]
fn a_binding_brings_a_pod_nothing_of_ours() {
    session("bound");
    ordinary("bound");
    let binding = |metadata: Value| {
        let mut binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}});
        binding["metadata"]["name"] = json!("bound");
        binding.to_string()
    };
    let ask = |namespace: &str, path: &str, metadata: Value| {
        let path = format!("/api/v1/namespaces/{namespace}/{path}");
        stage().kubectl.ask(["create", "--raw", &path, "--filename=-"], &binding(metadata)).unwrap()
    };
    for (namespace, path) in [
        (NAMESPACE, "pods/bound/binding"),
        (NAMESPACE, "bindings"),
        (ORDINARY, "pods/bound/binding"),
        (ORDINARY, "bindings"),
    ] {
        for metadata in [
            json!({"labels": {"cofferdam.dev/session": "late"}}),
            json!({"labels": {"cofferdam.dev/profile": "default"}}),
            json!({"annotations": {"cofferdam.dev/endpoints": "{}"}}),
            json!({"annotations": {"cofferdam.dev/hardened": "{}"}}),
            json!({"annotations": {"cofferdam.dev/ports": "80/tcp"}}),
        ] {
            refused_by("keys", &ask(namespace, path, metadata)).unwrap();
        }
        // The scheduler's own is only held up by the pod's gate.
        let answer = ask(namespace, path, json!({"annotations": {"example.com/any": "x"}}));
        assert!(answer.stderr.contains("schedulingGates"), "{answer:?}");
    }
}

#[test]
fn addresses_and_conditions_are_written_by_our_programs_alone() {
    session("reported");
    let agent = [&format!("--as={AGENT}"), "--as-group=system:masters"];
    let stranger = ["--as=system:serviceaccount:default:default", "--as-group=system:masters"];
    let endpoints = json!({"metadata": {"annotations": {"cofferdam.dev/endpoints": "{\"v\":1}"}}});
    let condition =
        |status: &str| json!({"status": {"conditions": [{"type": "cofferdam.dev/RouteReachable", "status": status}]}});
    let foreign = json!({"status": {"conditions": [{"type": "example.com/Any", "status": "True"}]}});
    let mark = |key: &str| json!({"metadata": {"annotations": {format!("cofferdam.dev/{key}"): "forged"}}});
    for subresource in ["", "status"] {
        for who in [&[][..], &stranger] {
            for change in [endpoints.clone(), mark("stopped"), mark("refused")] {
                refused_by("reports", &patch(NAMESPACE, "reported", subresource, &change, who)).unwrap();
            }
        }
    }
    let api = [&format!("--as={API}"), "--as-group=system:masters"];
    for key in ["stopped", "refused"] {
        let answer = patch(NAMESPACE, "reported", "", &mark(key), &api);
        assert!(answer.success, "{}", answer.stderr);
    }
    for who in [&[][..], &stranger] {
        refused_by("reports", &patch(NAMESPACE, "reported", "status", &condition("True"), who)).unwrap();
    }
    for change in [endpoints.clone(), condition("False")] {
        let answer = patch(NAMESPACE, "reported", "status", &change, &agent);
        assert!(answer.success, "{}", answer.stderr);
    }
    // What is there stays there, whatever else somebody writes beside it.
    for (change, is_ours) in [
        (condition("True"), true),
        (json!({"status": {"conditions": [{"type": "cofferdam.dev/RouteReachable", "$patch": "delete"}]}}), true),
        (json!({"metadata": {"annotations": {"cofferdam.dev/endpoints": null}}}), true),
        (json!({"metadata": {"annotations": {"cofferdam.dev/stopped": null}}}), true),
        (foreign, false),
        (json!({"status": {"reason": "any"}}), false),
    ] {
        let answer = patch(NAMESPACE, "reported", "status", &change, &stranger);
        if is_ours {
            refused_by("reports", &answer).unwrap();
        } else {
            assert!(answer.success, "{}", answer.stderr);
        }
    }
}

#[test]
fn a_copy_of_a_session_may_come_with_its_address_where_nobody_believes_it() {
    let hardened = hardened(&json!({"containers": [{"name": "app", "image": "cofferdam.test/none:1"}]}));
    let ask = |is_session: bool| {
        let mut copy = hardened.clone();
        copy["metadata"] = json!({"name": "copy", "annotations": {"cofferdam.dev/endpoints": "{}"}});
        if is_session {
            copy["metadata"]["labels"] = json!({"cofferdam.dev/session": "copy"});
        }
        let arguments = ["create", "--namespace", ORDINARY, "--filename=-", "--dry-run=server"];
        stage().kubectl.ask(arguments, &copy.to_string()).unwrap()
    };
    let answer = ask(false);
    assert!(answer.success, "{}", answer.stderr);
    refused_by("reports", &ask(true)).unwrap();
}

#[test]
fn everything_else_on_a_session_may_change() {
    session("free");
    for change in [
        json!({"metadata": {"labels": {"app": "x"}, "annotations": {"example.com/any": "x", "cofferdam.dev/ports": "80/tcp"}}}),
        json!({"metadata": {"finalizers": ["example.com/any"]}}),
        json!({"metadata": {"annotations": {"cofferdam.dev/ports": null}}}),
        json!({"metadata": {"finalizers": null}}),
        json!({"spec": {"activeDeadlineSeconds": 60}}),
        json!({"spec": {"schedulingGates": null}}),
    ] {
        let answer = patch(NAMESPACE, "free", "", &change, &[]);
        assert!(answer.success, "{change}: {}", answer.stderr);
    }
    stage().kubectl.run(["delete", "pod", "free", "--namespace", NAMESPACE, "--now"]).unwrap();
}
