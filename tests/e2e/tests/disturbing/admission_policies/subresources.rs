//! Live pods that get a container for debugging, or other resources: what comes new is judged, what was there before is
//! not, so that a pod from before the policies is held up by nothing of its past.

use cofferdam_e2e::kubectl::Answer;
use cofferdam_model::{Operation, Request, Scope, User, Verdict, harden};
use serde_json::{Value, json};

use super::loosened::set;
use super::{NAMESPACE, hardened, policy, refused_by, stage};

/// A namespace that was given over to sessions when its pod was there already.
const LATER: &str = "policies-later";

/// Makes the pod in a namespace of its own that is only then given over to sessions.
fn older(name: &str, spec: &Value) -> Value {
    let kubectl = &stage().kubectl;
    let namespace = format!("{LATER}-{name}");
    let _ = kubectl.run(["delete", "namespace", &namespace, "--ignore-not-found"]);
    kubectl.run(["create", "namespace", &namespace]).unwrap();
    cofferdam_e2e::wait::until("the ServiceAccount `default`", cofferdam_e2e::namespace::PATIENCE, || {
        kubectl.run(["get", "serviceaccount", "default", "--namespace", &namespace])
    })
    .unwrap();
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    kubectl.run_with(["create", "--filename=-"], &pod.to_string()).unwrap();
    kubectl.run(["label", "namespace", &namespace, "cofferdam.dev/sessions=enforced"]).unwrap();
    kubectl.json(["get", "pod", name, "--namespace", &namespace]).unwrap()
}

/// Makes a session.
fn session(name: &str) -> Value {
    let kubectl = &stage().kubectl;
    let mut pod = hardened(&json!({"containers": [{"name": "app", "image": "cofferdam.test/none:1"}]}));
    pod["metadata"]["name"] = json!(name);
    let _ = kubectl.run(["delete", "pod", name, "--namespace", NAMESPACE, "--ignore-not-found", "--now"]);
    kubectl.run_with(["create", "--namespace", NAMESPACE, "--filename=-"], &pod.to_string()).unwrap();
    kubectl.json(["get", "pod", name, "--namespace", NAMESPACE]).unwrap()
}

/// What the API server would say to the change.
fn ask(pod: &Value, subresource: &str, change: &Value) -> Answer {
    let (name, namespace) = (pod["metadata"]["name"].as_str().unwrap(), pod["metadata"]["namespace"].as_str().unwrap());
    let (change, subresource) = (json!({"spec": change}).to_string(), format!("--subresource={subresource}"));
    let arguments =
        ["patch", "pod", name, "--namespace", namespace, &subresource, "--dry-run=server", "--patch", &change];
    stage().kubectl.ask(arguments, "").unwrap()
}

/// The container for debugging, as the webhook makes it for this pod.
fn debugger(old: &Value) -> Value {
    let mut pod = old.clone();
    pod["spec"]["ephemeralContainers"] = json!([{"name": "debugger", "image": "cofferdam.test/none:1"}]);
    match verdict(Operation::AddEphemeralContainers { old }, &pod) {
        Verdict::Hardened(hardened) => hardened.pod["spec"]["ephemeralContainers"][0].clone(),
        other => panic!("{other:?}"),
    }
}

fn verdict(operation: Operation<'_>, pod: &Value) -> Verdict {
    let user = User { name: "jane", groups: &[] };
    let request = Request { uid: Some("u-1"), namespace: NAMESPACE, scope: Scope::Enforced, user, operation, pod };
    harden(&request, policy())
}

#[test]
fn a_container_for_debugging_is_judged_and_the_pod_that_it_joins_is_not() {
    let bare = json!({"hostPID": true, "containers": [
        {"name": "app", "image": "cofferdam.test/none:1", "securityContext": {"privileged": true}}]});
    for pod in [session("debugged"), older("debugged", &bare)] {
        let hard = debugger(&pod);
        let answer = ask(&pod, "ephemeralcontainers", &json!({"ephemeralContainers": [hard]}));
        assert!(answer.success, "{}", answer.stderr);
        for (rule, pointer, loose) in [
            ("privilege", "/securityContext/privileged", json!(null)),
            ("privilege", "/securityContext/allowPrivilegeEscalation", json!(true)),
            ("privilege", "/securityContext/capabilities", json!({"drop": ["ALL"], "add": ["SYS_PTRACE"]})),
            ("run-as", "/securityContext/runAsUser", json!(0)),
            ("run-as", "/securityContext/runAsGroup", json!(0)),
            ("run-as", "/securityContext/runAsNonRoot", json!(false)),
            ("read-only-root", "/securityContext/readOnlyRootFilesystem", json!(null)),
            ("seccomp", "/securityContext/seccompProfile", json!({"type": "Unconfined"})),
            ("confinement", "/securityContext/appArmorProfile", json!({"type": "Unconfined"})),
            ("confinement", "/securityContext/seLinuxOptions", json!({"type": "spc_t"})),
            ("privilege", "/securityContext", json!(null)),
        ] {
            let mut loosened = hard.clone();
            set(&mut loosened, pointer, loose);
            let mut with = pod.clone();
            with["spec"]["ephemeralContainers"] = json!([loosened]);
            let is_hard = matches!(verdict(Operation::AddEphemeralContainers { old: &pod }, &with), Verdict::Hardened(hardened) if hardened.patch.0.is_empty());
            assert!(!is_hard, "{pointer}");
            let answer = ask(&pod, "ephemeralcontainers", &json!({"ephemeralContainers": [loosened]}));
            refused_by("session-containers", &answer).unwrap();
            // Without the securityContext several rules have something against it; the first is named.
            assert!(pointer == "/securityContext" || answer.stderr.contains(&format!("({rule})")), "{}", answer.stderr);
        }
    }
}

#[test]
fn a_resize_is_held_to_what_it_changes() {
    let pod = session("resized");
    for (resources, is_fine) in [
        (json!({"limits": {"cpu": "400m"}}), true),
        (json!({"requests": {"cpu": "60m"}}), true),
        (json!({"limits": {"cpu": "600m"}}), false),
        (json!({"limits": {"memory": "513Mi"}}), false),
    ] {
        resize(&pod, &resources, is_fine);
    }
    // One resource was above its ceiling all along; the other is free to move below its own.
    let greedy = json!({"containers": [{"name": "app", "image": "cofferdam.test/none:1",
        "resources": {"limits": {"cpu": "400m", "memory": "2Gi"}, "requests": {"cpu": "50m", "memory": "1Gi"}}}]});
    let pod = older("resized", &greedy);
    for (resources, is_fine) in [
        (json!({"limits": {"cpu": "300m"}}), true),
        (json!({"limits": {"cpu": "501m"}}), false),
        (json!({"limits": {"memory": "1Gi"}}), false),
        (json!({"limits": {"memory": "3Gi"}}), false),
        (json!({"limits": {"memory": "512Mi"}, "requests": {"memory": "512Mi"}}), true),
    ] {
        resize(&pod, &resources, is_fine);
    }
}

/// Asks for other resources of the first container, of the API server and of the rules.
fn resize(pod: &Value, resources: &Value, is_fine: bool) {
    let mut resized = pod.clone();
    for (kind, amounts) in resources.as_object().unwrap() {
        for (resource, amount) in amounts.as_object().unwrap() {
            set(&mut resized, &format!("/spec/containers/0/resources/{kind}/{resource}"), amount.clone());
        }
    }
    let refuses = matches!(verdict(Operation::Update { old: pod }, &resized), Verdict::Refused(_));
    assert_eq!(refuses, !is_fine, "{resources}");
    let answer = ask(pod, "resize", &json!({"containers": [{"name": "app", "resources": resources}]}));
    if is_fine {
        assert!(answer.success, "{resources}: {}", answer.stderr);
    } else {
        refused_by("session-resources", &answer).unwrap();
        assert!(answer.stderr.contains("(resources)"), "{}", answer.stderr);
    }
}
