//! The cluster that all tests of this program share: two nodes, Envoy Gateway, Prometheus, and Cofferdam with routing on.

use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};
use cofferdam_cluster::addon::{Addon, ENVOY_GATEWAY, PROMETHEUS, PROMETHEUS_OPERATOR_CRDS};
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::install::AGENTS;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::routing::{Door, ENVOY_GATEWAY_NETWORK, host, through_gateway, told};
use cofferdam_e2e::stage::{Setup, Stage, value};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

/// Pods choose their node, so that tests know which agent has to do something; those of the profile `strict` are deleted
/// where they slipped through; finished ones are deleted soon.
const PROFILES: &str = "profiles:
  default: {scheduling: {nodeLabels: [kubernetes.io/hostname]}}
  app: {}
  workspace: {}
  strict: {slippedThrough: delete, scheduling: {nodeLabels: [kubernetes.io/hostname]}}
finishedGraceSeconds: 5";

const ADDONS: &[Addon] = &[ENVOY_GATEWAY, PROMETHEUS, PROMETHEUS_OPERATOR_CRDS];

/// The cluster.
pub(crate) fn stage() -> &'static Stage {
    static SHARED: OnceLock<Stage> = OnceLock::new();
    SHARED.get_or_init(|| {
        let policy = format!("{PROFILES}\nrouting: {}\n{ENVOY_GATEWAY_NETWORK}\n", through_gateway());
        let setup = Setup { name: "e2e-routing", nodes: 2, addons: ADDONS, policy: &policy, not_ready_after: None };
        Stage::set_up(&setup).unwrap()
    })
}

/// Its gateway.
pub(crate) fn door() -> Door {
    static SHARED: OnceLock<Door> = OnceLock::new();
    *SHARED.get_or_init(|| Door::of_gateway(stage()).unwrap())
}

/// A namespace in which every pod is a session.
pub(crate) fn sessions(name: &str) -> TestNamespace {
    stage().namespace(name, Sessions::Enforced)
}

/// A pod of the test program that declares TCP port 3000; its name is its session's id.
pub(crate) fn pod(name: &str, arguments: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"cofferdam.dev/session": name}},
        "spec": {"containers": [{
            "name": "app",
            "image": FIXTURE,
            "args": arguments.split(' ').collect::<Vec<_>>(),
            "ports": [{"containerPort": 3000}],
        }]},
    })
}

/// A pod that serves what it declares.
pub(crate) fn web(name: &str) -> Value {
    pod(name, "listen --port 3000 --http")
}

/// The pod, for one node only.
pub(crate) fn on(node: &str, mut pod: Value) -> Value {
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod
}

/// Creates all of them.
pub(crate) fn create(namespace: &TestNamespace, pods: impl IntoIterator<Item = Value>) {
    let pods: Vec<Value> = pods.into_iter().collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": pods}).to_string();
    let answer = namespace.ask(["create", "--filename=-"], &list).unwrap();
    assert!(answer.success, "{}", answer.stderr);
}

/// Waits until a pod's address is proved to work, and gives its host.
pub(crate) fn reachable(namespace: &TestNamespace, pod: &str) -> String {
    told(namespace, pod, "RouteReachable", "True/Reachable").unwrap();
    host(namespace, pod, 3000).unwrap()
}

/// Which pod answers at a host.
pub(crate) fn who_answers(host: &str) -> Result<String> {
    let answer = door().get(host)?;
    ensure!(answer.status == 200, "{}", answer.head);
    let body: Value = serde_json::from_str(&answer.body)?;
    body["hostname"].as_str().map(str::to_owned).context("it does not say who it is")
}

/// The names of the objects of a kind that belong to a session.
pub(crate) fn objects(namespace: &TestNamespace, kind: &str, session: &str) -> Result<Vec<String>> {
    let selector = format!("--selector=cofferdam.dev/session={session}");
    let list = namespace.json(["get", kind, selector.as_str()])?;
    let items = list["items"].as_array().into_iter().flatten();
    Ok(items.map(|object| object["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect())
}

/// Waits until nothing leads to a session any more.
pub(crate) fn unpublished(namespace: &TestNamespace, session: &str) {
    until(&format!("nothing leads to {session}"), PATIENCE, || {
        for kind in ["httproutes", "endpointslices", "services"] {
            let left = objects(namespace, kind, session)?;
            ensure!(left.is_empty(), "{kind}: {left:?}");
        }
        Ok(())
    })
    .unwrap();
}

/// What each agent answers to whoever asks for its metrics.
pub(crate) fn metrics_of_agents() -> Result<Vec<String>> {
    let names = stage().system(&["get", "pods", AGENTS, "--output=jsonpath={.items[*].metadata.name}"])?;
    names.split_whitespace().map(|pod| stage().answer(pod, "/metrics")).collect()
}

/// The sum of a metric over the agents; `sample` has its labels with it.
pub(crate) fn counted(sample: &str) -> Result<u64> {
    metrics_of_agents()?.iter().map(|text| Ok(value(text, sample)?.parse::<u64>()?)).sum()
}
