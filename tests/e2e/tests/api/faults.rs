//! The API is killed, its pod is replaced, a node is lost, a registry fails: what becomes of sessions. A cluster of its own, one
//! fault at a time.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::ensure;
use cofferdam_cluster::cluster::Signal;
use cofferdam_e2e::api;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::install::{SESSIONS, SYSTEM};
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::client::Client;
use crate::disturbed::{Session, apply, object, sessions};
use crate::installed;

/// Runs until it is stopped.
const SERVES: &str = "echo ready-to-serve; exec sleep 3600";

/// Keeps pods of sessions from a node that do not run there yet. The API tolerates it.
const HELD: &str = "cofferdam.test/held=yes:NoSchedule";

/// The stage, for one test at a time: faults do not mix.
fn stage() -> MutexGuard<'static, Stage> {
    static STAGE: OnceLock<Mutex<Stage>> = OnceLock::new();
    let stage = STAGE.get_or_init(|| Mutex::new(start()));
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}

fn start() -> Stage {
    // The pod that has both is made after this, by the second.
    let apps = json!({"stringData": {"apps.yaml": "broken: {image: '127.0.0.1:5000/broken:1'}"}}).to_string();
    let tolerant = json!({"spec": {"template": {"spec": {
        "tolerations": [{"key": "cofferdam.test/held", "operator": "Exists"}],
    }}}});
    let stage = api::start_with("e2e-api-faults", None, &[], |stage| {
        stage.system(&["patch", "secret/apps", "--patch", &apps])?;
        stage.system(&["patch", "deployment/cofferdam-api", "--patch", &tolerant.to_string()]).map(drop)
    });
    let stage = stage.unwrap();
    a_registry_that_fails(&stage);
    stage
}

/// On the first node's loopback, where its container runtime asks for images in plain HTTP, somebody answers 500.
fn a_registry_that_fails(stage: &Stage) {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "registry", "namespace": "default"},
        "spec": {
            "hostNetwork": true, "nodeName": "node-1",
            "containers": [{"name": "registry", "image": FIXTURE, "args": ["listen", "--port=5000", "--http", "--status=500"]}],
        },
    });
    apply(stage, &pod);
    stage
        .kubectl
        .run(["wait", "--namespace=default", "pod/registry", "--for=condition=Ready", "--timeout=2m"])
        .unwrap();
}

/// No pod of a session comes to the first node from now on, or does again.
fn holds(stage: &Stage, is_held: bool) {
    let taint = format!("{HELD}{}", if is_held { "" } else { "-" });
    stage.kubectl.run(["taint", "nodes", "node-1", &taint, "--overwrite"]).unwrap();
}

/// A session of that program whose pod is on that node, or on none while the first is held. The scheduler hears of a taint when it
/// does: what it has placed before is ended.
fn placed(stage: &Stage, client: &Client, script: &str, node: Option<&str>) -> Session {
    holds(stage, true);
    loop {
        let session = Session::create(client, script, 3000);
        is_so(stage, "the scheduler has looked at it", &format!("pod/run-{}", session.id), |pod| {
            let conditions = pod["status"]["conditions"].as_array();
            conditions.is_some_and(|all| all.iter().any(|condition| condition["type"] == "PodScheduled"))
        });
        if session.pod(stage)["spec"]["nodeName"].as_str() == node {
            return session;
        }
        assert_eq!(session.stop(client).0, 204);
        session.becomes(client, "stopped");
    }
}

/// Kills the API with no word to anyone; its kubelet starts it again in the same pod.
fn kill_api(stage: &Stage) {
    let name = api::pod(stage, api::API).unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
    stage.cluster.kill_pod(SYSTEM, &name).unwrap();
}

/// Waits until the API serves that was started `before` times before.
fn is_started_again(stage: &Stage, before: u64) {
    until("the API is started again", PATIENCE, || {
        let pod = api::pod(stage, api::API)?;
        let status = &pod["status"]["containerStatuses"][0];
        let restarts = status["restartCount"].as_u64().unwrap_or_default();
        ensure!(restarts > before && status["ready"] == true, "{restarts} restarts, ready: {}", status["ready"]);
        Ok(())
    })
    .unwrap();
}

/// Waits until something is true of an object where sessions are.
fn is_so(stage: &Stage, what: &str, which: &str, is_so: impl Fn(&Value) -> bool) {
    until(what, PATIENCE, || {
        let object = object(stage, which);
        ensure!(is_so(&object), "it is {object}");
        Ok(())
    })
    .unwrap();
}

/// While this is there, the next step of a start fails in a way that passes, and is tried again: of a session with port 7001
/// its Secret, with 7002 its pod, with 7003 its Secret's owner.
fn held_up() -> Value {
    let hook = |name: &str, resource: &str, operation: &str, expression: &str| {
        json!({
            "name": format!("{name}.cofferdam.test"),
            "clientConfig": {"service": {"namespace": "default", "name": "nobody"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": SESSIONS}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resource]}],
            "matchConditions": [{"name": "port", "expression": expression}],
            "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 1, "admissionReviewVersions": ["v1"],
        })
    };
    let record = |port: u16| format!("object.metadata.annotations['cofferdam.dev/record'].contains('\"port\":{port}')");
    let ports = "object.spec.containers.exists(c, c.?ports.orValue([]).exists(p, p.containerPort == 7002))";
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "held-up"},
        "webhooks": [
            hook("secret", "secrets", "CREATE", &record(7001)),
            hook("pod", "pods", "CREATE", ports),
            hook("owner", "secrets", "UPDATE", &record(7003)),
        ],
    })
}

#[test]
fn d29_an_api_that_is_killed_at_any_stage_of_a_start_leaves_nothing_behind_and_ends_nothing_that_lives() {
    let stage = &*stage();
    let client = &installed::client(stage);
    let runs = Session::create(client, SERVES, 3000);
    let ends = Session::create(client, "trap 'exit 5' TERM; echo ready-to-serve; while :; do sleep 1; done", 3000);
    for session in [&runs, &ends] {
        session.writes(client, "ready-to-serve");
    }
    let before = runs.pod(stage);
    apply(stage, &held_up());
    let unowned = Session::create(client, SERVES, 7003);
    let pulls = Session::of_app(client, "broken");
    unowned.becomes(client, "running");
    is_so(stage, "its image cannot be pulled", &format!("pod/run-{}", pulls.id), |pod| {
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("Pull"))
    });
    let waits = placed(stage, client, "echo the-body-came; exec sleep 3600", None);
    let [staged, kept] = [7001, 7002].map(|port| Session::create(client, SERVES, port));
    // Each is where it is to be.
    assert_eq!((staged.secret(stage), staged.pod(stage)), (Value::Null, Value::Null));
    assert!(kept.secret(stage).is_object() && kept.pod(stage).is_null());
    assert!(unowned.pod(stage).is_object() && unowned.secret(stage)["metadata"]["ownerReferences"].is_null());

    let restarts =
        api::pod(stage, api::API).unwrap()["status"]["containerStatuses"][0]["restartCount"].as_u64().unwrap();
    kill_api(stage);
    stage.cluster.signal_pod(SESSIONS, &format!("run-{}", ends.id), None, Signal::TERM).unwrap();
    stage.kubectl.run(["delete", "validatingwebhookconfiguration/held-up"]).unwrap();
    is_started_again(stage, restarts);
    holds(stage, false);

    let client = &installed::client(stage);
    assert_eq!(staged.status(client).0, 404, "nothing of it was there");
    assert_eq!(runs.status(client).1["kind"], "running");
    assert_eq!(ends.becomes(client, "exited")["code"], 5, "it ended by itself, and nobody was there to see it");
    waits.writes(client, "the-body-came");
    is_so(stage, "its Secret goes with its pod", &format!("secret/s-{}", unowned.id), |secret| {
        secret["metadata"]["ownerReferences"][0]["name"] == format!("run-{}", unowned.id)
    });
    assert_eq!(unowned.status(client).1["kind"], "running");
    // A while later.
    let record = kept.secret(stage)["metadata"]["annotations"]["cofferdam.dev/record"].as_str().unwrap().to_owned();
    let mut record: Value = serde_json::from_str(&record).unwrap();
    record["createdAt"] = json!("2026-01-01T00:00:00Z");
    let secret = format!("secret/s-{}", kept.id);
    sessions(stage, &["annotate", &secret, "--overwrite", &format!("cofferdam.dev/record={record}")]);
    let message = kept.fails(client);
    assert_eq!(message, "create: the start broke off before the session's pod was made; start it again");
    let message = pulls.fails(client);
    assert!(message.starts_with("start: ") && message.contains("the registry has a fault"), "{message}");

    is_in_order(stage);
    let after = runs.pod(stage);
    let life =
        |pod: &Value| (pod["metadata"]["uid"].clone(), pod["status"]["containerStatuses"][0]["restartCount"].clone());
    assert_eq!(life(&after), life(&before));
    for session in [runs, unowned, waits] {
        assert_eq!(session.stop(client).0, 204);
        session.becomes(client, "stopped");
        installed::gone(stage, &session.id);
    }
    is_in_order(stage);
}

/// Of every session there is a Secret, which goes with its pod or says how it ended, and holds nothing then.
fn is_in_order(stage: &Stage) {
    until("nothing is left over", PATIENCE, || {
        let list = |kind: &str| -> Vec<Value> {
            let list = stage.kubectl.json(["--namespace", SESSIONS, "get", kind]).unwrap();
            list["items"].as_array().cloned().unwrap_or_default()
        };
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let (pods, secrets) = (list("pods"), list("secrets"));
        for secret in &secrets {
            let annotations = &secret["metadata"]["annotations"];
            let is_marked =
                annotations["cofferdam.dev/stopped"].is_string() || annotations["cofferdam.dev/refused"].is_string();
            let owner = &secret["metadata"]["ownerReferences"][0]["uid"];
            let is_owned = pods.iter().any(|pod| pod["metadata"]["uid"] == *owner);
            ensure!(is_marked != is_owned, "marked: {is_marked}, owned: {is_owned}: {}", name(secret));
            ensure!(!is_marked || secret["data"].is_null(), "{} holds something", name(secret));
        }
        for pod in &pods {
            let its = name(pod).replacen("run-", "s-", 1);
            ensure!(secrets.iter().any(|secret| name(secret) == its), "{} has no Secret", name(pod));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn d18_bodies_that_wait_are_lost_with_the_apis_pod_as_its_page_says() {
    let stage = &*stage();
    let client = &installed::client(stage);
    let waits = placed(stage, client, SERVES, None);
    installed::restart(stage);
    holds(stage, false);
    let client = &installed::client(stage);
    let message = waits.fails(client);
    assert!(message.starts_with("start: init container \"cofferdam-fetch\" Error (exit code 11): "), "{message}");
    let again = Session::create(client, SERVES, 3000);
    again.writes(client, "ready-to-serve");
    assert_eq!(again.stop(client).0, 204);
    again.becomes(client, "stopped");
}

#[test]
fn d05_a_registry_that_fails_is_told_as_that_and_not_as_a_deadline() {
    let stage = &*stage();
    let client = &installed::client(stage);
    let message = Session::of_app(client, "broken").fails(client);
    assert!(message.starts_with("start: ") && message.contains("the registry has a fault"), "{message}");
    assert!(!message.contains("127.0.0.1"), "the operator's image: {message}");
}

#[test]
fn a_session_on_a_node_that_reboots_has_failed_and_those_on_others_go_on() {
    let stage = &mut *stage();
    let client = &installed::client(stage);
    let stays = Session::create(client, SERVES, 3000);
    stays.writes(client, "ready-to-serve");
    add_second_node(stage);
    let lost = placed(stage, client, SERVES, Some("node-2"));
    lost.writes(client, "ready-to-serve");
    stage.cluster.kill_node("node-2").unwrap();
    add_second_node(stage);
    let message = lost.fails(client);
    assert_eq!(message, "container \"session\" ContainerStatusUnknown (exit code 137): its node lost track of it");
    assert_eq!(stays.status(client).1["kind"], "running");
    let again = Session::create(client, SERVES, 3000);
    again.writes(client, "ready-to-serve");
    for session in [stays, again] {
        assert_eq!(session.stop(client).0, 204);
        session.becomes(client, "stopped");
    }
    // Other tests know of one node.
    stage.kubectl.run(["cordon", "node-2"]).unwrap();
    holds(stage, false);
}

/// Starts the second node, with an empty disk.
fn add_second_node(stage: &mut Stage) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(stage.cluster.add_node("node-2", false)).unwrap();
}
