//! What an agent asks the API server for, before any session is there.

use std::convert::Infallible;
use std::sync::Mutex;

use bytes::Bytes;
use clap::Parser as _;
use futures_util::StreamExt as _;
use http::Request;
use http::header::ACCEPT;
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::args::Args;
use crate::desired::node_hash;
use crate::objects::GATEWAY_GROUP;

/// What was asked for, as `list` or `watch` with path and selectors; `*` marks the metadata alone.
type Asked = Arc<Mutex<Vec<String>>>;

/// A cluster that serves Gateway API and has no objects. Its watches tell nothing and go on.
fn empty_cluster(asked: &Asked) -> Client {
    let asked = Arc::clone(asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let (answer, goes_on) = if let Some(answer) = answer_of_discovery(path) {
            (answer.to_string(), false)
        } else {
            let is_watch = query.contains("watch=true");
            let pairs = form_urlencoded::parse(query.as_bytes());
            let selectors = pairs.filter(|(name, _)| name.ends_with("Selector")).map(|(_, value)| format!(" {value}"));
            let accepted = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
            let mark = if accepted.contains("PartialObjectMetadata") { "*" } else { "" };
            let verb = if is_watch { "watch" } else { "list" };
            asked.lock().unwrap().push(format!("{verb} {path}{mark}{}", selectors.collect::<String>()));
            let list = json!({"metadata": {"resourceVersion": "1"}, "items": []});
            (if is_watch { String::new() } else { list.to_string() }, is_watch)
        };
        let text = futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(answer)))]);
        let rest = futures_util::stream::pending();
        let body = StreamBody::new(if goes_on { text.chain(rest).boxed() } else { text.boxed() });
        std::future::ready(Ok::<_, Infallible>(http::Response::new(body)))
    });
    Client::new(service, "default")
}

fn answer_of_discovery(path: &str) -> Option<Value> {
    let group_version = format!("{GATEWAY_GROUP}/v1");
    let version = json!({"groupVersion": group_version, "version": "v1"});
    if path == "/apis" {
        let group = json!({"name": GATEWAY_GROUP, "versions": [version], "preferredVersion": version});
        return Some(json!({"groups": [group]}));
    }
    let routes =
        json!({"name": "httproutes", "singularName": "", "namespaced": true, "kind": "HTTPRoute", "verbs": []});
    path.ends_with("/v1").then(|| json!({"groupVersion": group_version, "resources": [routes]}))
}

/// All that an agent asks for until it only waits for news, in the order of the alphabet.
async fn asked_by(flags: &[&str]) -> Vec<String> {
    let required = ["cofferdam-agent", "--node-name=node-1", "--pod-name=agent"];
    let mut config = Args::try_parse_from(required.iter().chain(flags)).unwrap().into_config().unwrap();
    let text = "{profiles: {default: {}}, routing: {baseDomain: example.test, gateway: {name: web, namespace: edge}}}";
    config.policy = Policy::parse("policy.yaml", text).unwrap();
    let (asked, registry) = (Asked::default(), prometheus::Registry::new());
    let cluster = Cluster::new(empty_cluster(&asked), keys::AGENT, &registry).unwrap();
    let metrics = Metrics::register(&registry, "digest", false).unwrap();
    let (events, _sending) = Events::new(cluster.clone(), metrics.clone(), "cofferdam-system", "agent");
    let (prober, world) =
        (Prober::new(1, Metrics::probes(&registry, 1).unwrap()), Arc::new(World::new(Ground::default())));
    let node = config.node.clone();
    let crew = Crew::new(Arc::clone(&world), cluster.clone(), metrics.clone(), events, node, prober, Stop::new());
    let policy = Arc::new(ArcSwap::from_pointee(config.policy.clone()));
    let readiness = Readiness::new();
    let gates = ["pods", "objects", "layer", "routes"].map(|name| readiness.gate(name));
    let parts = Parts { config: &config, cluster: &cluster, metrics: &metrics, world: &world, policy: &policy };
    let mut tasks = JoinSet::new();
    let _changed = parts.follow(&mut tasks, crew, gates);
    // Less than a watch may be silent for.
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(readiness.pending(), [""; 0]);
    let mut asked = std::mem::take(&mut *asked.lock().unwrap());
    asked.sort();
    asked
}

/// A list and a watch of each of these.
fn informers(of: &[String]) -> Vec<String> {
    let mut all: Vec<_> =
        ["list", "watch"].iter().flat_map(|verb| of.iter().map(move |of| format!("{verb} {of}"))).collect();
    all.sort();
    all
}

fn ours() -> String {
    format!("cofferdam.dev/node-hash={},app.kubernetes.io/managed-by=cofferdam-agent", node_hash("node-1"))
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_one_informer_of_each_kind_and_of_what_grows_with_the_cluster_its_own_nodes_share() {
    let ours = ours();
    let expected = [
        "/api/v1/pods spec.nodeName=node-1".to_owned(),
        format!("/api/v1/services {ours}"),
        format!("/apis/discovery.k8s.io/v1/endpointslices {ours}"),
        format!("/apis/networking.k8s.io/v1/ingresses {ours}"),
        format!("/apis/gateway.networking.k8s.io/v1/httproutes {ours}"),
        "/api/v1/nodes metadata.name=node-1".to_owned(),
        "/apis/gateway.networking.k8s.io/v1/namespaces/edge/gateways metadata.name=web".to_owned(),
        // Of each namespace its metadata, and of those with sessions one policy's.
        "/api/v1/namespaces*".to_owned(),
        "/apis/networking.k8s.io/v1/networkpolicies* metadata.name=cofferdam-sessions".to_owned(),
        // As many as an administrator has installed.
        "/apis/networking.k8s.io/v1/ingressclasses".to_owned(),
        "/apis/gateway.networking.k8s.io/v1/gatewayclasses".to_owned(),
    ];
    assert_eq!(asked_by(&[]).await, informers(&expected));
}

#[tokio::test(start_paused = true)]
async fn in_the_namespaced_variant_nothing_is_asked_for_beyond_the_namespace_and_the_gateway() {
    let ours = ours();
    let expected = [
        "/api/v1/namespaces/n/pods spec.nodeName=node-1".to_owned(),
        format!("/api/v1/namespaces/n/services {ours}"),
        format!("/apis/discovery.k8s.io/v1/namespaces/n/endpointslices {ours}"),
        format!("/apis/networking.k8s.io/v1/namespaces/n/ingresses {ours}"),
        format!("/apis/gateway.networking.k8s.io/v1/namespaces/n/httproutes {ours}"),
        "/apis/gateway.networking.k8s.io/v1/namespaces/edge/gateways metadata.name=web".to_owned(),
    ];
    assert_eq!(asked_by(&["--namespace-only=n"]).await, informers(&expected));
}
