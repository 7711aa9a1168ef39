//! Whatever keeps the API server from making a session's pod reaches the client as one of a closed set of sentences, and in its
//! own words the log alone (lessons L04 and L05). A cluster of its own, one fault after the other.

use cofferdam_e2e::api;
use cofferdam_e2e::images::SHELL;
use cofferdam_e2e::install::{SESSIONS, SYSTEM};
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::client::Client;
use crate::disturbed::{Session, apply, is_ready, logged, object, ready, referred, sessions};
use crate::installed;

const UNREACHABLE: &str = "the Kubernetes API server does not answer; try again in a moment";
const QUOTA: &str = "a ResourceQuota of the namespace of sessions does not allow it; try again when other sessions have ended, \
                     and ask the operator where that does not help";
const FORBIDDEN: &str = "the Kubernetes API server does not permit it; the operator has to check the API's role";
const REFUSED: &str = "an admission rule of the cluster refuses it; the operator finds the reason in the log";
const ADMISSION_UNREACHABLE: &str = "what checks pods before they run does not answer; try again in a moment";
const POD_SECURITY: &str =
    "Pod Security of the namespace of sessions refuses it; the operator has to check that pods are hardened there";
const UNHARDENED: &str =
    "pods in the namespace of sessions are not hardened; the operator has to check its label and the webhook";
const OTHER: &str = "the Kubernetes API server refuses it; the operator finds the reason in the log";

/// What runs until it is stopped.
const SERVES: &str = "echo serving; exec sleep 3600";

#[test]
fn l04_every_failure_of_the_cluster_is_told_as_its_sentence_and_the_log_alone_has_the_rest() {
    let stage = &installed::start("e2e-api-refused");
    let client = &installed::client(stage);
    assert_eq!(probed(client)["status"], "ready");

    what_our_webhook_says_is_told(stage, client);
    what_others_say_is_not(stage, client);
    l05_a_right_that_is_missing_is_no_quota(stage, client);
    d01_a_quota_that_is_full_is_no_missing_right(stage, client);
    without_the_webhooks_configuration(stage, client);
    without_the_webhook(stage, client);
    without_the_api_server(stage, client);
    b36_where_nobody_hardens_pods(stage, client);
    without_the_namespace(stage, client);
    is_ready(stage, "ok\n");
}

/// What a client is told that asks whether it could have a session.
fn probed(client: &Client) -> Value {
    client.ask("POST", "/v1/probe", &json!({"config": {"image": SHELL, "pullPolicy": "missing"}})).body
}

/// Waits until a probe fails by a sentence that begins so, with a reference into the log, where `raw` stands.
fn probe_tells(stage: &Stage, client: &Client, sentence: &str, raw: &str) {
    let message = until("the probe fails", PATIENCE, || {
        let answer = probed(client);
        let message = answer["message"].as_str().unwrap_or_default();
        anyhow::ensure!(answer["status"] == "unavailable" && message.starts_with(sentence), "{answer}");
        Ok(message.to_owned())
    });
    is_told(stage, &message.unwrap(), sentence, raw);
}

/// A session fails so, and has no pod; the same of the probe.
fn fails(stage: &Stage, client: &Client, sentence: &str, raw: &str) {
    probe_tells(stage, client, sentence, raw);
    let session = Session::create(client, SERVES, 3000);
    let message = session.fails(client);
    is_told(stage, created(&message), sentence, raw);
    assert_eq!(session.pod(stage), Value::Null);
}

fn is_told(stage: &Stage, message: &str, sentence: &str, raw: &str) {
    let (told, reference) = referred(message);
    // What is ours to say may go on; nothing else may.
    assert!(told == sentence || sentence == OURS && told.starts_with(OURS), "{told}");
    for secret in ["system:serviceaccount", "node-1", "cofferdam-api", "audit", "hunter2-4711"] {
        assert!(!told.contains(secret), "{told}");
    }
    let line = logged(stage, reference);
    assert!(line.contains(raw), "{line}");
    assert!(!line.contains("hunter2-4711"), "{line}");
}

/// How our own webhook begins.
const OURS: &str = "Cofferdam refuses this pod: ";

fn what_our_webhook_says_is_told(stage: &Stage, client: &Client) {
    // The API server puts into every pod what no profile allows.
    let limits = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "faults", "namespace": SESSIONS},
        "spec": {"limits": [{"type": "Container", "default": {"example.test/chip": "1"}}]},
    });
    apply(stage, &limits);
    fails(stage, client, OURS, "denied the request: Cofferdam refuses this pod: ");
    let message = Session::create(client, SERVES, 3000).fails(client);
    assert!(message.contains("example.test/chip"), "{message}");
    sessions(stage, &["delete", "limitrange/faults"]);
    is_well_again(client);
}

fn what_others_say_is_not(stage: &Stage, client: &Client) {
    let (policy, raw) = ("faults", "the chip of team-b is s3cret");
    apply(
        stage,
        &json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": policy},
            "spec": {
                "matchConstraints": {"resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
                ]},
                "validations": [{"expression": "object.metadata.namespace != 'cofferdam-sessions'", "message": raw}],
            },
        }),
    );
    apply(
        stage,
        &json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": policy}, "spec": {"policyName": policy, "validationActions": ["Deny"]},
        }),
    );
    fails(stage, client, REFUSED, raw);
    let both = "validatingadmissionpolicybinding/faults,validatingadmissionpolicy/faults";
    for one in both.split(',') {
        stage.kubectl.run(["delete", one]).unwrap();
    }
    is_well_again(client);
}

fn l05_a_right_that_is_missing_is_no_quota(stage: &Stage, client: &Client) {
    let session = Session::create(client, SERVES, 3000);
    session.becomes(client, "running");
    let binding = object(stage, "rolebinding/cofferdam-api");
    sessions(stage, &["delete", "rolebinding/cofferdam-api"]);
    fails(stage, client, FORBIDDEN, "cannot create resource");
    let (status, body) = session.stop(client);
    assert_eq!((status, &body["error"]), (500, &json!("stop_failed")), "{body}");
    is_told(stage, body["message"].as_str().unwrap(), FORBIDDEN, "cannot patch resource");
    assert_eq!(session.status(client).1["kind"], "running", "it goes on");
    assert_eq!(ready(stage), "ok\n", "what begins anew would know no more");
    apply(stage, &bare(binding));
    is_well_again(client);
    assert_eq!(session.stop(client).0, 204);
    session.becomes(client, "stopped");
}

fn d01_a_quota_that_is_full_is_no_missing_right(stage: &Stage, client: &Client) {
    // As it ships, but with room for one.
    let shipped = include_str!("../../../../manifests/components/quota/quota.yaml");
    let quota = shipped.replace("pods: \"32\"", "pods: \"1\"");
    assert_ne!(quota, shipped);
    installed_empty(stage);
    stage.kubectl.run_with(["apply", "--filename=-"], &quota).unwrap();
    sessions(
        stage,
        &["wait", "resourcequota/cofferdam-sessions", "--for=jsonpath={.status.used.pods}=0", "--timeout=2m"],
    );
    let session = Session::create(client, SERVES, 3000);
    session.becomes(client, "running");
    fails(stage, client, QUOTA, "exceeded quota: cofferdam-sessions");
    assert_eq!(session.stop(client).0, 204);
    session.becomes(client, "stopped");
    is_well_again(client);
    Session::create(client, "exit 7", 3000).becomes(client, "exited");
    stage.kubectl.run_with(["delete", "--filename=-"], &quota).unwrap();
}

/// Waits until no pod of a session counts any more.
fn installed_empty(stage: &Stage) {
    until("no session is left", PATIENCE, || {
        let left = sessions(stage, &["get", "pods", "--output=name"]);
        anyhow::ensure!(left.is_empty(), "{left}");
        Ok(())
    })
    .unwrap();
}

fn without_the_webhooks_configuration(stage: &Stage, client: &Client) {
    let configuration = stage.kubectl.json(["get", "mutatingwebhookconfiguration/cofferdam-webhook"]).unwrap();
    stage.kubectl.run(["delete", "mutatingwebhookconfiguration/cofferdam-webhook"]).unwrap();
    fails(stage, client, POD_SECURITY, "violates PodSecurity");
    apply(stage, &bare(configuration));
    is_well_again(client);
}

fn without_the_webhook(stage: &Stage, client: &Client) {
    let replicas = "--selector=app.kubernetes.io/component=webhook";
    stage.system(&["scale", "deployment/cofferdam-webhook", "--replicas=0"]).unwrap();
    stage.system(&["wait", "--for=delete", "pod", replicas, "--timeout=2m"]).unwrap();
    fails(stage, client, ADMISSION_UNREACHABLE, "failed calling webhook");
    stage.system(&["scale", "deployment/cofferdam-webhook", "--replicas=2"]).unwrap();
    is_well_again(client);
}

fn without_the_api_server(stage: &Stage, client: &Client) {
    let address = api::pod(stage, api::API).unwrap()["status"]["podIP"].as_str().unwrap().to_owned();
    let turned_away = |how: &str| {
        let node = stage.cluster.inside("node-1").unwrap();
        let rule = ["INPUT", "--source", &address, "--protocol", "tcp", "--dport", "6443", "--jump", "REJECT"];
        let status =
            node.network("iptables").arg(how).args(rule).args(["--reject-with", "tcp-reset"]).status().unwrap();
        assert!(status.success());
    };
    turned_away("--insert");
    fails(stage, client, UNREACHABLE, "(unreachable)");
    is_ready(stage, "ok; degraded: sessions\n");
    turned_away("--delete");
    is_well_again(client);
}

/// Pods are hardened by none of those who should, and would run as they are.
fn b36_where_nobody_hardens_pods(stage: &Stage, client: &Client) {
    let configuration = stage.kubectl.json(["get", "mutatingwebhookconfiguration/cofferdam-webhook"]).unwrap();
    stage.kubectl.run(["delete", "mutatingwebhookconfiguration/cofferdam-webhook"]).unwrap();
    let policies = ["validatingadmissionpolicybindings", "--selector=app.kubernetes.io/part-of=cofferdam"];
    stage.kubectl.run([&["delete"], &policies[..]].concat()).unwrap();
    let label = format!("namespace/{SESSIONS}");
    stage.kubectl.run(["label", &label, "pod-security.kubernetes.io/enforce-"]).unwrap();
    probe_tells(stage, client, UNHARDENED, "a pod of ours was not hardened");
    let session = Session::create(client, SERVES, 3000);
    let message = session.fails(client);
    is_told(stage, created(&message), UNHARDENED, "a pod of ours was not hardened");
    installed::gone(stage, &session.id);
    apply(stage, &bare(configuration));
}

/// The last: nothing is as it was afterwards.
fn without_the_namespace(stage: &Stage, client: &Client) {
    // The rights in the namespace go with it.
    let account = format!("--serviceaccount={SYSTEM}:cofferdam-api");
    stage.kubectl.run(["create", "clusterrolebinding", "faults", "--clusterrole=edit", &account]).unwrap();
    stage.kubectl.run(["delete", "namespace", SESSIONS, "--timeout=5m"]).unwrap();
    probe_tells(stage, client, OTHER, "namespaces \"cofferdam-sessions\" not found");
    let message = Session::create(client, SERVES, 3000).fails(client);
    is_told(stage, created(&message), OTHER, "namespaces \"cofferdam-sessions\" not found");
}

/// The sentence of a start that ended when something was to be created.
fn created(message: &str) -> &str {
    message.strip_prefix("create: ").unwrap_or_else(|| panic!("it ended elsewhere: {message}"))
}

/// Sessions can be had again.
fn is_well_again(client: &Client) {
    until("sessions can be had again", PATIENCE, || {
        let answer = probed(client);
        anyhow::ensure!(answer["status"] == "ready", "{answer}");
        Ok(())
    })
    .unwrap();
}

/// An object as it can be made again.
fn bare(mut object: Value) -> Value {
    for key in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"] {
        object["metadata"].as_object_mut().unwrap().remove(key);
    }
    object
}
