//! What is concluded from an API server that answers, refuses or fails.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Mutex;

use cofferdam_model::keys;
use cofferdam_runtime::ready::Readiness;
use http::Request;
use kube::Client;
use kube::client::Body;
use prometheus::Registry;

use super::*;
use crate::metrics::Metrics;
use crate::objects::{GATEWAY_GROUP, Kind};
use crate::testing::reply;

/// Answers to lists, by the end of their path; what is not among them is a fault of the server's.
type Answers = Arc<Mutex<BTreeMap<&'static str, (u16, Value)>>>;

const POLICY: &str = "profiles: {default: {}}\nrouting: {baseDomain: example.com, gateway: {name: g, namespace: n}}";

fn items(items: &Value) -> (u16, Value) {
    (200, json!({"metadata": {"resourceVersion": "1"}, "items": items}))
}

fn class(features: &[&str]) -> Value {
    json!({"metadata": {"name": "c"}, "spec": {"controllerName": "example.com/c"}, "status": {"supportedFeatures": features}})
}

fn forbidden() -> (u16, Value) {
    let message = "x is forbidden: User \"a\" cannot list resource \"x\" in API group \"y\" at the cluster scope";
    (403, json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}))
}

/// Keeps a world's ground by these answers.
fn kept_by(answers: &Answers) -> Arc<World> {
    kept(answers, POLICY, None, Gates::default())
}

/// The same by that policy, where `namespace` is all that may be looked into, if there is one; opens these gates.
fn kept(answers: &Answers, policy: &str, namespace: Option<&str>, mut gates: Gates) -> Arc<World> {
    let (cluster, watches) = cluster(answers);
    let world = Arc::new(World::new(Ground::default()));
    let (its_world, policy) = (Arc::clone(&world), Arc::new(Policy::parse("policy.yaml", policy).unwrap()));
    let namespace = namespace.map(str::to_owned);
    tokio::spawn(async move {
        keep(its_world, cluster, watches, policy, namespace, Arc::new(|_: &[String]| {}), &mut gates).await;
    });
    world
}

fn cluster(answers: &Answers) -> (Cluster, Watches) {
    let answers = Arc::clone(answers);
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path();
        let (status, answer) = if path == "/apis" {
            let version = json!({"groupVersion": format!("{GATEWAY_GROUP}/v1"), "version": "v1"});
            (200, json!({"groups": [{"name": GATEWAY_GROUP, "versions": [version], "preferredVersion": version}]}))
        } else if path.ends_with("/v1") {
            let routes =
                json!({"name": "httproutes", "singularName": "", "namespaced": true, "kind": "HTTPRoute", "verbs": []});
            (200, json!({"groupVersion": format!("{GATEWAY_GROUP}/v1"), "resources": [routes]}))
        } else if request.uri().query().is_some_and(|query| query.contains("watch=")) {
            // So that everything is listed again and again.
            (
                200,
                json!({"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "", "status": "Failure"}}),
            )
        } else {
            let name = path.rsplit('/').next().unwrap_or_default();
            answers.lock().unwrap().get(name).cloned().unwrap_or((500, json!({})))
        };
        let answer = reply(status, &answer);
        async move { Ok::<_, Infallible>(answer) }
    });
    let registry = Registry::new();
    let cluster = Cluster::new(Client::new(service, "default"), keys::AGENT, &registry).unwrap();
    (cluster, Metrics::register(&registry, "", false).unwrap().watches)
}

fn gates(readiness: &Readiness) -> Gates {
    Gates { layer: Some(readiness.gate("layer")), routes: Some(readiness.gate("routes")) }
}

/// What the ground says after so long that all was listed many times.
async fn settled(world: &World) -> Option<Result<bool, String>> {
    tokio::time::sleep(Duration::from_mins(1)).await;
    let ground = world.ground.load();
    ground.is_known.then(|| match &ground.layer {
        Ok(Layer::Gateway { proof, .. }) => Ok(*proof),
        other => Err(format!("{other:?}")),
    })
}

fn all() -> Answers {
    let gateway = json!({"metadata": {"name": "g", "namespace": "n"}, "spec": {"gatewayClassName": "c"}});
    Arc::new(Mutex::new(
        [
            ("gateways", items(&json!([gateway]))),
            ("gatewayclasses", items(&json!([class(&["HTTPRouteResponseHeaderModification"])]))),
            ("ingressclasses", items(&json!([]))),
        ]
        .into(),
    ))
}

#[tokio::test(start_paused = true)]
async fn nothing_is_concluded_from_an_api_server_that_fails() {
    for name in ["gateways", "gatewayclasses", "ingressclasses"] {
        let answers = all();
        let held_back = answers.lock().unwrap().remove(name).unwrap();
        let world = kept_by(&answers);
        assert_eq!(settled(&world).await, None, "{name}");
        answers.lock().unwrap().insert(name, held_back);
        assert_eq!(settled(&world).await, Some(Ok(true)), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_may_list_is_not_waited_for() {
    for (name, proof) in [("gateways", false), ("gatewayclasses", false), ("ingressclasses", true)] {
        let answers = all();
        answers.lock().unwrap().insert(name, forbidden());
        assert_eq!(settled(&kept_by(&answers)).await, Some(Ok(proof)), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_starts_and_refuses_everybody_leads_to_no_other_layer() {
    let default =
        json!({"metadata": {"name": "c", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}});
    let ingress = "profiles: {default: {}}\nrouting: {baseDomain: example.com}";
    for (name, policy) in [("gateways", POLICY), ("gatewayclasses", POLICY), ("ingressclasses", ingress)] {
        let answers = all();
        answers.lock().unwrap().insert("ingressclasses", items(&json!([default])));
        let held_back = answers.lock().unwrap().insert(name, forbidden()).unwrap();
        let world = kept(&answers, policy, None, Gates::default());
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!world.ground.load().is_known, "{name}: {:?}", world.ground.load().layer);
        answers.lock().unwrap().insert(name, held_back);
        settled(&world).await;
        let ground = world.ground.load();
        let is_whole =
            matches!(ground.layer, Ok(Layer::Gateway { proof: true, .. } | Layer::Ingress { .. })) && ground.is_known;
        assert!(is_whole, "{name}: {:?}", ground.layer);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_read_stays_when_it_may_not_be_listed_any_more() {
    for name in ["gateways", "gatewayclasses", "ingressclasses"] {
        let answers = all();
        let world = kept_by(&answers);
        assert_eq!(settled(&world).await, Some(Ok(true)), "{name}");
        let before = world.ground.load_full();
        answers.lock().unwrap().insert(name, forbidden());
        assert_eq!(settled(&world).await, Some(Ok(true)), "{name}");
        assert_eq!(world.ground.load_full(), before, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_look_into_one_namespace_only_waits_for_no_classes() {
    let answers = all();
    answers.lock().unwrap().retain(|name, _| *name == "gateways");
    assert_eq!(settled(&kept(&answers, POLICY, Some("n"), Gates::default())).await, Some(Ok(false)));
}

#[tokio::test(start_paused = true)]
async fn routes_keep_their_proof_while_a_gateway_is_reinstalled_and_lose_it_when_its_class_says_so() {
    let answers = all();
    let world = kept_by(&answers);
    assert_eq!(settled(&world).await, Some(Ok(true)));
    let set = |name, list: Value| answers.lock().unwrap().insert(name, items(&list));
    let gateway = set("gateways", json!([])).unwrap();
    assert_eq!(settled(&world).await, Some(Ok(true)), "the Gateway is gone");
    set("gatewayclasses", json!([]));
    answers.lock().unwrap().insert("gateways", gateway);
    assert_eq!(settled(&world).await, Some(Ok(true)), "the class is gone");
    set("gatewayclasses", json!([class(&[])]));
    assert_eq!(settled(&world).await, Some(Ok(true)), "the class has yet to say what it can");
    set("gatewayclasses", json!([class(&["HTTPRoute"])]));
    assert_eq!(settled(&world).await, Some(Ok(false)), "the class says otherwise");
}

#[tokio::test(start_paused = true)]
async fn readiness_waits_for_the_routes_that_are_there_where_the_layer_has_such() {
    let listed = |world: &World| world.objects_listed(Kind::HttpRoute, world.objects_begin());
    for known in [listed, |world: &World| world.refused(Kind::HttpRoute)] {
        let readiness = Readiness::new();
        let world = kept(&all(), POLICY, None, gates(&readiness));
        assert_eq!(settled(&world).await, Some(Ok(true)));
        assert_eq!(readiness.pending(), ["routes"], "no session is begun yet");
        known(&world);
        settled(&world).await;
        assert_eq!(readiness.pending(), [""; 0]);
    }
    let readiness = Readiness::new();
    let ingresses = "profiles: {default: {}}\nrouting: {baseDomain: example.com, ingress: {className: c}}";
    settled(&kept(&all(), ingresses, None, gates(&readiness))).await;
    assert_eq!(readiness.pending(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_before_its_layer_was_known_leaves_the_gates_to_the_next() {
    let (answers, readiness) = (all(), Readiness::new());
    let held_back = answers.lock().unwrap().remove("gateways").unwrap();
    let (cluster, watches) = cluster(&answers);
    let world = Arc::new(World::new(Ground::default()));
    world.refused(Kind::HttpRoute);
    let mut gates = gates(&readiness);
    for expected in [vec!["layer", "routes"], vec![]] {
        let (world, policy) = (Arc::clone(&world), Arc::new(Policy::parse("policy.yaml", POLICY).unwrap()));
        let told: Served = Arc::new(|_: &[String]| {});
        let keeping = keep(world, cluster.clone(), watches.clone(), policy, None, told, &mut gates);
        assert!(tokio::time::timeout(Duration::from_mins(1), keeping).await.is_err());
        assert_eq!(readiness.pending(), expected);
        answers.lock().unwrap().insert("gateways", held_back.clone());
    }
}
