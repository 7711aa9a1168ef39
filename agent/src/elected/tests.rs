//! The whole of it against an API server made by hand, in a time that passes at once.

use cofferdam_model::keys;
use prometheus::{Encoder, Registry, TextEncoder};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;

mod api;
mod election;
mod line;
mod outages;
mod stopping;
mod sweep;

use api::Api;
use line::Line;

const LOST_NODE: Duration = Duration::from_secs(15);

const SYSTEM: &str = "cofferdam-system";

/// An agent that takes part.
struct Agent {
    registry: Registry,
    line: Line,
    stop: Stop,
    task: JoinHandle<()>,
}

impl Agent {
    fn start(api: &Api, pod: &str) -> Self {
        let (registry, line, stop) = (Registry::new(), Line::default(), Stop::new());
        let limits = Limits { lost_node_share: 0.5, lost_node: LOST_NODE, silent_agent: Duration::from_mins(1) };
        let cluster = Cluster::new(api.client(&line), keys::AGENT, &registry).unwrap();
        let metrics = crate::metrics::Metrics::register(&registry, "digest", false).unwrap();
        let (events, sending) = Events::new(cluster.clone(), metrics.clone(), SYSTEM, pod);
        tokio::spawn(sending);
        let task = tokio::spawn(run(
            cluster,
            Identity { pod: pod.to_owned(), namespace: SYSTEM.to_owned() },
            Arc::new(ArcSwap::from_pointee(Policy::built_in())),
            limits,
            Metrics::register(&registry, metrics.watches).unwrap(),
            events,
            stop.clone(),
        ));
        Self { registry, line, stop, task }
    }

    /// The value of a metric, with its labels in the name.
    fn metric(&self, name: &str) -> u64 {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    fn leads(&self) -> bool {
        self.metric("leader") == 1
    }

    async fn ends(self) {
        self.stop.drain();
        self.task.await.unwrap();
    }
}

/// Waits until something holds; how long that took.
async fn until(what: &str, holds: impl Fn() -> bool) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_mins(30), "never: {what}");
        sleep(Duration::from_millis(50)).await;
    }
    start.elapsed()
}

/// A cluster of so many nodes with an agent each; all is well.
fn cluster(nodes: usize) -> Api {
    let api = Api::default();
    for node in 1..=nodes {
        set_node(&api, node, "True");
        set_agent(&api, node, "True");
    }
    api
}

fn set_node(api: &Api, node: usize, ready: &str) {
    api.put("nodes", &json!({
        "metadata": {"name": format!("node-{node}"), "creationTimestamp": "2026-01-01T00:00:00Z"},
        "status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-02T00:00:00Z"}]},
    }));
}

fn set_agent(api: &Api, node: usize, ready: &str) {
    api.put(
        "pods",
        &json!({
            "metadata": {
                "name": format!("agent-{node}"), "namespace": SYSTEM,
                "labels": {"app.kubernetes.io/name": "cofferdam", "app.kubernetes.io/component": "agent"},
            },
            "spec": {"nodeName": format!("node-{node}"), "containers": []},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }),
    );
}

/// A session that works, with its slice.
fn add_session(api: &Api, id: &str, node: usize) {
    let node = format!("node-{node}");
    api.put("pods", &json!({
        "metadata": {
            "name": id, "namespace": "team-a", "uid": format!("uid-of-{id}"), "labels": {"cofferdam.dev/session": id},
        },
        "spec": {"nodeName": node, "containers": []},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": [
            {"type": "cofferdam.dev/RouteReachable", "status": "True", "reason": "Reachable"},
        ]},
    }));
    api.put(
        "endpointslices",
        &json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": format!("s-{id}"), "namespace": "team-a",
                "labels": {
                    "app.kubernetes.io/managed-by": "cofferdam-agent",
                    "cofferdam.dev/session": id,
                    "cofferdam.dev/node-hash": crate::desired::node_hash(&node),
                },
                "annotations": {"cofferdam.dev/node": node},
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": id, "uid": format!("uid-of-{id}")}],
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true, "serving": true}}],
            "ports": [],
        }),
    );
}

fn add_namespace(api: &Api, labels: &Value) {
    api.put("namespaces", &json!({"metadata": {"name": "team-a", "labels": labels}}));
}

/// The reason of a session's condition.
fn reason(api: &Api, id: &str) -> String {
    let pod = api.get("pods", "team-a", id).unwrap();
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|condition| condition["type"] == "cofferdam.dev/RouteReachable").unwrap();
    condition["reason"].as_str().unwrap().to_owned()
}

fn serves(api: &Api, id: &str) -> bool {
    api.get("endpointslices", "team-a", &format!("s-{id}")).unwrap()["endpoints"] != json!([])
}

fn holder(api: &Api) -> Value {
    api.get("leases", SYSTEM, "cofferdam-agent").map_or(Value::Null, |lease| lease["spec"]["holderIdentity"].clone())
}

#[tokio::test(start_paused = true)]
async fn whether_its_watches_hear_of_changes_is_told_of_whoever_leads_and_of_nobody_else() {
    let api = cluster(1);
    let agent = Agent::start(&api, "agent-1");
    let watches = || {
        let families = agent.registry.gather();
        let last = families.iter().find(|family| family.name() == "watch_last_event_timestamp_seconds");
        let of = |metric: &prometheus::proto::Metric| metric.get_label()[0].value().to_owned();
        last.map(|last| last.get_metric().iter().map(of).collect::<Vec<_>>()).unwrap_or_default()
    };
    let all = ["agents", "namespaces", "networkpolicies", "nodes", "sessions"].map(|name| format!("elected_{name}"));
    until("each has heard something", || watches() == all).await;
    agent.line.cut();
    until("it gives up", || !agent.leads()).await;
    until("none goes on", || watches().is_empty()).await;
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_tried_again_and_every_error_is_counted() {
    let api = cluster(2);
    add_session(&api, "there", 2);
    api.refuse(Some("endpointslices"));
    let agent = Agent::start(&api, "agent-1");
    set_node(&api, 2, "Unknown");
    until("marked", || reason(&api, "there") == "NodeLost").await;
    sleep(Duration::from_mins(1)).await;
    let errors = agent.metric("api_errors_total{class=\"admission\"}");
    // Tried at once and after pauses of 1, 2, 4, 8, 10, 10, ... seconds, of each of which up to half is left out by chance: by
    // the end of the minute that is 9 times, or with halves alone 15.
    assert!((9..=15).contains(&errors), "{errors}");
    api.refuse(None);
    until("out of service", || !serves(&api, "there")).await;
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_has_its_network_policy_while_it_has_sessions() {
    let api = cluster(1);
    let policy = || api.get("networkpolicies", "team-a", "cofferdam-sessions");
    add_namespace(&api, &json!({}));
    let agent = Agent::start(&api, "agent-1");
    until("it leads", || agent.leads()).await;
    sleep(Duration::from_mins(1)).await;
    assert_eq!(policy(), None);
    add_session(&api, "abc", 1);
    assert!(until("it is there", || policy().is_some()).await < Duration::from_secs(1));
    let made = policy().unwrap();
    sleep(Duration::from_mins(5)).await;
    assert_eq!(api.writes(), ["APPLY networkpolicies/cofferdam-sessions"]);
    let mut edited = made.clone();
    edited["spec"]["egress"] = json!([{}]);
    api.put("networkpolicies", &edited);
    until("it is restored", || policy().unwrap()["spec"] == made["spec"]).await;
    api.remove("networkpolicies", "team-a", "cofferdam-sessions");
    until("it is there again", || policy().is_some()).await;
    api.remove("endpointslices", "team-a", "s-abc");
    api.remove("pods", "team-a", "abc");
    let took = until("it is gone", || policy().is_none()).await;
    assert!(took >= Duration::from_mins(10), "{took:?}");
    add_namespace(&api, &json!({"cofferdam.dev/sessions": "enforced"}));
    until("it is there again", || policy().is_some()).await;
    assert_eq!(policy().unwrap()["spec"]["podSelector"], json!({}));
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_keeps_its_network_policy_while_it_has_a_session_that_is_not_seen() {
    let api = cluster(1);
    let has_policy = || api.get("networkpolicies", "team-a", "cofferdam-sessions").is_some();
    add_namespace(&api, &json!({}));
    add_session(&api, "abc", 1);
    let agent = Agent::start(&api, "agent-1");
    until("it is there", has_policy).await;
    api.remove("endpointslices", "team-a", "s-abc");
    api.remove("pods", "team-a", "abc");
    sleep(Duration::from_mins(5)).await;
    api.blind("pods");
    add_session(&api, "new", 1);
    sleep(Duration::from_mins(20)).await;
    assert!(has_policy());
    api.remove("pods", "team-a", "new");
    // Another namespace's session is no reason.
    api.put("pods", &json!({"metadata": {"name": "a", "namespace": "b", "labels": {"cofferdam.dev/session": "a"}}}));
    until("it is gone", || !has_policy()).await;
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_keeps_its_network_policy_while_it_says_so_and_is_not_seen_to() {
    let warns = json!({"cofferdam.dev/sessions": "warn"});
    for has_sessions in [json!({"cofferdam.dev/sessions": "enforced"}), json!({})] {
        let api = cluster(1);
        let has_policy = || api.get("networkpolicies", "team-a", "cofferdam-sessions").is_some();
        add_namespace(&api, &has_sessions);
        add_session(&api, "abc", 1);
        let agent = Agent::start(&api, "agent-1");
        until("it is there", has_policy).await;
        add_namespace(&api, &warns);
        sleep(Duration::from_mins(9)).await;
        api.blind("namespaces");
        add_namespace(&api, &has_sessions);
        sleep(Duration::from_mins(20)).await;
        assert!(has_policy(), "{has_sessions}");
        // What it can ask for it goes by.
        add_namespace(&api, &warns);
        until("it is gone", || !has_policy()).await;
        agent.ends().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_enforced_no_longer_loses_its_network_policy_whatever_labels_its_pods_keep() {
    let api = cluster(1);
    let has_policy = || api.get("networkpolicies", "team-a", "cofferdam-sessions").is_some();
    add_namespace(&api, &json!({"cofferdam.dev/sessions": "enforced"}));
    add_session(&api, "abc", 1);
    let agent = Agent::start(&api, "agent-1");
    until("it is there", has_policy).await;
    add_namespace(&api, &json!({"cofferdam.dev/sessions": "warn"}));
    sleep(Duration::from_mins(11)).await;
    assert!(!has_policy());
    assert!(api.get("pods", "team-a", "abc").is_some());
    agent.ends().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_lead_writes_nothing() {
    let api = cluster(2);
    add_namespace(&api, &json!({"cofferdam.dev/sessions": "enforced"}));
    add_session(&api, "there", 2);
    let one = Agent::start(&api, "agent-1");
    until("one leads", || one.leads()).await;
    one.line.cut();
    until("one gives up", || !one.leads()).await;
    let timeouts = "api_errors_total{class=\"timeout\"}";
    until("what gets no answer is counted", || one.metric(timeouts) > 0).await;
    api.writes();
    set_node(&api, 2, "Unknown");
    api.remove("networkpolicies", "team-a", "cofferdam-sessions");
    sleep(Duration::from_mins(5)).await;
    assert_eq!(api.writes(), [""; 0]);
    assert_eq!(one.metric("lost_nodes"), 0);
    one.ends().await;
}
