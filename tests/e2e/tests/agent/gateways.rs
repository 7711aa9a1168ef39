//! What is told while a Gateway, its controller, its proxy or the right to read a status is missing, and that all of it
//! mends by itself. A cluster of its own, one fault after the other.

use anyhow::{Context as _, Result, ensure};
use cofferdam_cluster::addon::envoy_gateway::{CONTROL_PLANE, DATA_PLANE, NAMESPACE};
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::routing::{DOMAIN, ENVOY_GATEWAY_NETWORK, message, policy, told};
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::history::History;
use crate::permissions::what_is_asked_for_is_documented;
use crate::session::{create, goes_all_the_way, says, stage, works};

/// A short deadline, since it is waited for.
const DEADLINE: u64 = 8;

const PROGRAMMED: &str = "RouteProgrammed";
const REACHABLE: &str = "RouteReachable";

#[test]
fn what_is_missing_of_a_gateway_is_named_and_mends_by_itself() {
    let routing = format!(
        "{{baseDomain: {DOMAIN}, gateway: {{name: sessions, namespace: gateway}}, publicURL: {{scheme: http}}, \
         deadlineSeconds: {DEADLINE}}}"
    );
    let policy = policy(&routing, ENVOY_GATEWAY_NETWORK);
    let stage = stage("e2e-gateways", &policy);
    let namespace = stage.namespace("gateways", Sessions::Enforced);
    a_gateway_that_is_not_there_is_named(&stage, &namespace);
    b136_the_words_of_a_listener_that_takes_no_routes_from_here_are_passed_on(&stage, &namespace);
    without_the_right_to_read_routes_nobody_is_blamed(&stage, &namespace);
    stage.cluster.stop_workload(&CONTROL_PLANE).unwrap();
    d21_a_controller_that_is_not_there_is_waited_for_and_then_named(&stage, &namespace);
    b130_an_answer_for_an_older_route_is_none(&stage, &namespace);
    b128_each_parent_is_judged_alone(&stage, &namespace);
    a_proxy_that_hangs_is_told_of_by_probes_alone(&stage, &namespace);
    a_proxy_that_was_killed_is_told_of_by_probes_alone(&stage, &namespace);
    stage.cluster.start_workload(&CONTROL_PLANE).unwrap();
    d21_a_controller_that_comes_late_is_believed(&namespace);
    a_proxy_that_is_gone_is_told_of(&stage, &namespace);
    what_is_asked_for_is_documented(&stage, "gateways");
}

fn a_gateway_that_is_not_there_is_named(stage: &Stage, namespace: &TestNamespace) {
    let gateway = gateway(stage);
    stage.kubectl.run(["--namespace=gateway", "delete", "gateway/sessions"]).unwrap();
    create(namespace, "web");
    says(namespace, "web", PROGRAMMED, "False/GatewayMissing", "gateway/sessions");
    told(namespace, "web", REACHABLE, "False/NotProgrammed").unwrap();
    let again = json!({"apiVersion": gateway["apiVersion"], "kind": "Gateway", "spec": gateway["spec"],
        "metadata": {"name": "sessions", "namespace": "gateway"}});
    stage.kubectl.run_with(["create", "--filename=-"], &again.to_string()).unwrap();
    works(namespace, "web");
}

fn b136_the_words_of_a_listener_that_takes_no_routes_from_here_are_passed_on(stage: &Stage, namespace: &TestNamespace) {
    admit(stage, "Same");
    let pod = told(namespace, "web", PROGRAMMED, "False/RefusedByController").unwrap();
    let said = message(&pod, PROGRAMMED);
    let accepted = condition_of(&route(namespace, "web"), "Accepted");
    assert_eq!(accepted["reason"], "NotAllowedByListeners");
    let verbatim = format!("NotAllowedByListeners: {}", accepted["message"].as_str().unwrap());
    assert!(said.contains(&verbatim), "{said}");
    // It is not served any more, and that is told too.
    until("its address is not told to work", PATIENCE, || {
        let pod = namespace.json(["get", "pod", "web"])?;
        let is = cofferdam_e2e::routing::condition(&pod, REACHABLE);
        ensure!(is.starts_with("False/"), "it is {is:?}");
        Ok(())
    })
    .unwrap();
    admit(stage, "All");
    works(namespace, "web");
}

/// From which namespaces the listeners of the Gateway take routes.
fn admit(stage: &Stage, from: &str) {
    let of = |listener: u8| format!("/spec/listeners/{listener}/allowedRoutes/namespaces/from");
    let patch = json!([0, 1].map(|listener| json!({"op": "replace", "path": of(listener), "value": from}))).to_string();
    stage.kubectl.run(["--namespace=gateway", "patch", "gateway/sessions", "--type=json", "--patch", &patch]).unwrap();
}

fn without_the_right_to_read_routes_nobody_is_blamed(stage: &Stage, namespace: &TestNamespace) {
    let role = stage.kubectl.json(["get", "clusterrole/cofferdam-agent"]).unwrap();
    let mut blind = role.clone();
    let mut rules = blind["rules"].as_array_mut().unwrap().iter_mut();
    let of_routes = rules.find(|rule| rule["resources"][0] == "httproutes").unwrap();
    of_routes["verbs"] = json!(["create", "patch", "delete"]);
    let set = |role: &Value| {
        let patch = json!({"rules": role["rules"]}).to_string();
        stage.kubectl.run(["patch", "clusterrole/cofferdam-agent", "--type=merge", "--patch", &patch]).unwrap();
    };
    set(&blind);
    // A watch that has begun goes on.
    stage.cluster.reset_api_connections().unwrap();
    create(namespace, "unseen");
    let history = History::begin(stage, namespace, "unseen");
    history.has(PROGRAMMED, "Unknown/StatusUnreadable");
    // The address works, whoever can read what.
    told(namespace, "unseen", REACHABLE, "True/Reachable").unwrap();
    until("the deadline of the route has passed", PATIENCE, || {
        let created = route(namespace, "unseen")["metadata"]["creationTimestamp"].clone();
        let created: k8s_openapi::jiff::Timestamp = serde_json::from_value(created)?;
        let age = k8s_openapi::jiff::Timestamp::now().as_second() - created.as_second();
        ensure!(age > 2 * i64::try_from(DEADLINE)?, "it is {age} s old");
        Ok(())
    })
    .unwrap();
    told(namespace, "web", PROGRAMMED, "True/Programmed").unwrap();
    set(&role);
    works(namespace, "unseen");
    let all = history.all(PROGRAMMED);
    assert!(!all.iter().any(|told| told.starts_with("False/")), "somebody was blamed: {all:?}");
}

fn d21_a_controller_that_is_not_there_is_waited_for_and_then_named(stage: &Stage, namespace: &TestNamespace) {
    create(namespace, "late");
    let history = History::begin(stage, namespace, "late");
    history.has(PROGRAMMED, "Unknown/Pending");
    let pod = told(namespace, "late", PROGRAMMED, "False/Unclaimed").unwrap();
    let said = message(&pod, PROGRAMMED);
    for wanted in
        ["Gateway gateway/sessions", "class is envoy", "controller runs", "listeners for this host are http, https."]
    {
        assert!(said.contains(wanted), "{wanted} is not in {said:?}");
    }
    // It serves what it knew.
    told(namespace, "web", REACHABLE, "True/Reachable").unwrap();
    told(namespace, "web", PROGRAMMED, "True/Programmed").unwrap();
}

fn b130_an_answer_for_an_older_route_is_none(stage: &Stage, namespace: &TestNamespace) {
    let history = History::begin(stage, namespace, "web");
    let before = generation(&route(namespace, "web"));
    // The agent takes it back; the status is what it was.
    let name = name_of_route(namespace, "web");
    let patch = json!({"spec": {"hostnames": ["elsewhere.example.test"]}}).to_string();
    namespace.run(["patch", "httproute", &name, "--type=merge", "--patch", &patch]).unwrap();
    until("the route is taken back", PATIENCE, || {
        let route = route(namespace, "web");
        ensure!(generation(&route) == before + 2, "it is of generation {}", generation(&route));
        assert_eq!(condition_of(&route, "Accepted")["observedGeneration"], before);
        assert_eq!(condition_of(&route, "Accepted")["status"], "True");
        Ok(())
    })
    .unwrap();
    history
        .has(PROGRAMMED, "Unknown/Pending: 3000: The controller of Gateway gateway/sessions has answered for an older");
    told(namespace, "web", PROGRAMMED, "False/Unclaimed").unwrap();
    // A controller that does not say which route it answers for is not believed, and not blamed.
    write_status(
        namespace,
        "web",
        &[entry(&parent(namespace, "web"), "example.test/one", Some(0), "True", "Accepted")],
    );
    says(namespace, "web", PROGRAMMED, "Unknown/Pending", "does not say which generation");
}

fn b128_each_parent_is_judged_alone(stage: &Stage, namespace: &TestNamespace) {
    let history = History::begin(stage, namespace, "late");
    let ours = parent(namespace, "late");
    let mut other = ours.clone();
    other["name"] = json!("another");
    let generation = generation(&route(namespace, "late"));
    let of = |parent: &Value, controller: &str, status: &str, reason: &str| {
        entry(parent, controller, Some(generation), status, reason)
    };
    // What another Gateway says of the route is not what ours says.
    write_status(namespace, "late", &[of(&other, "example.test/one", "True", "Accepted")]);
    // Of two parents, the one that refuses is ours.
    write_status(
        namespace,
        "late",
        &[
            of(&other, "example.test/one", "True", "Accepted"),
            of(&ours, "example.test/two", "False", "NoMatchingParent"),
        ],
    );
    says(namespace, "late", PROGRAMMED, "False/RefusedByController", "NoMatchingParent: by hand");
    let all = history.all(PROGRAMMED);
    assert!(!all.iter().any(|told| told.starts_with("True/")), "{all:?}");
    // The other way round; and a second controller that does not want ours takes nothing away from the one that does.
    write_status(
        namespace,
        "late",
        &[
            of(&other, "example.test/one", "False", "NoMatchingParent"),
            of(&ours, "example.test/three", "False", "NoMatchingParent"),
            of(&ours, "example.test/two", "True", "Accepted"),
        ],
    );
    told(namespace, "late", PROGRAMMED, "True/Programmed").unwrap();
    // Said is not served.
    told(namespace, "late", REACHABLE, "False/NotRouted").unwrap();
}

/// The parent of a session's route.
fn parent(namespace: &TestNamespace, pod: &str) -> Value {
    route(namespace, pod)["spec"]["parentRefs"][0].clone()
}

/// What a controller may write of one parent of a route.
fn entry(parent: &Value, controller: &str, generation: Option<u64>, status: &str, reason: &str) -> Value {
    let condition = |type_: &str, status: &str, reason: &str| {
        json!({"type": type_, "status": status, "reason": reason, "message": "by hand", "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({"parentRef": parent, "controllerName": controller,
        "conditions": [condition("Accepted", status, reason), condition("ResolvedRefs", "True", "ResolvedRefs")]})
}

fn write_status(namespace: &TestNamespace, pod: &str, parents: &[Value]) {
    let patch = json!({"status": {"parents": parents}}).to_string();
    let name = name_of_route(namespace, pod);
    namespace.run(["patch", "httproute", &name, "--subresource=status", "--type=merge", "--patch", &patch]).unwrap();
}

fn a_proxy_that_hangs_is_told_of_by_probes_alone(stage: &Stage, namespace: &TestNamespace) {
    let pod = proxy(stage);
    stage.cluster.pause_pod(NAMESPACE, &pod).unwrap();
    told(namespace, "unseen", REACHABLE, "False/NoAnswer").unwrap();
    let found = told(namespace, "unseen", PROGRAMMED, "True/Programmed").unwrap();
    assert_eq!(cofferdam_e2e::routing::condition(&found, "PortsReachable"), "True/AllReachable");
    stage.cluster.resume_pod(NAMESPACE, &pod).unwrap();
    works(namespace, "unseen");
}

/// Its kubelet starts it again; what it is to serve it learns from its controller alone, which is not there yet.
fn a_proxy_that_was_killed_is_told_of_by_probes_alone(stage: &Stage, namespace: &TestNamespace) {
    let history = History::begin(stage, namespace, "unseen");
    stage.cluster.kill_pod(NAMESPACE, &proxy(stage)).unwrap();
    told(namespace, "unseen", REACHABLE, "False/NoAnswer").unwrap();
    for (name, wanted) in [(PROGRAMMED, "True/Programmed"), ("PortsReachable", "True/AllReachable")] {
        let all = history.all(name);
        assert!(all.iter().all(|told| told.starts_with(wanted)), "{name} was {all:?}");
    }
}

fn proxy(stage: &Stage) -> String {
    until("the proxy", PATIENCE, || {
        let list = stage.kubectl.json(["--namespace", NAMESPACE, "get", "pods", "--selector", DATA_PLANE.selector])?;
        Ok(list["items"][0]["metadata"]["name"].as_str().context("there is none")?.to_owned())
    })
    .unwrap()
}

fn d21_a_controller_that_comes_late_is_believed(namespace: &TestNamespace) {
    for pod in ["late", "web", "unseen"] {
        works(namespace, pod);
    }
}

fn a_proxy_that_is_gone_is_told_of(stage: &Stage, namespace: &TestNamespace) {
    stage.cluster.stop_workload(&DATA_PLANE).unwrap();
    told(namespace, "web", REACHABLE, "False/NoAnswer").unwrap();
    // This controller looks after its proxies, and says of the Gateway itself that it has none.
    says(namespace, "web", PROGRAMMED, "False/GatewayNotProgrammed", "NoResources");
    stage.cluster.start_workload(&DATA_PLANE).unwrap();
    works(namespace, "web");
    goes_all_the_way(namespace, "afterwards");
}

fn gateway(stage: &Stage) -> Value {
    stage.kubectl.json(["--namespace=gateway", "get", "gateway/sessions"]).unwrap()
}

/// The one route of a session.
fn route(namespace: &TestNamespace, pod: &str) -> Value {
    route_of(namespace, pod).unwrap()
}

fn route_of(namespace: &TestNamespace, pod: &str) -> Result<Value> {
    let id = namespace.run(["get", "pod", pod, r"--output=jsonpath={.metadata.labels.cofferdam\.dev/session}"])?;
    let name = format!("s-{id}-3000");
    until(&format!("route {name}"), PATIENCE, || namespace.json(["get", "httproute", &name]))
}

fn name_of_route(namespace: &TestNamespace, pod: &str) -> String {
    route(namespace, pod)["metadata"]["name"].as_str().unwrap().to_owned()
}

fn generation(route: &Value) -> u64 {
    route["metadata"]["generation"].as_u64().unwrap()
}

/// A condition that the controller of the only parent has written.
fn condition_of(route: &Value, type_: &str) -> Value {
    let all = route["status"]["parents"][0]["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default()
}
