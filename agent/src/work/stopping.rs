//! What becomes of the work on sessions when the agent is asked to stop.

use std::convert::Infallible;

use cofferdam_model::policy::Policy;
use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use prometheus::Registry;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::session::{Membership, Seen};

#[tokio::test]
async fn what_is_on_its_way_is_finished_and_nothing_new_begins() {
    let (ask, mut asked) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: Request<Body>| {
        let ask = ask.clone();
        async move {
            // Events are told by the way.
            if request.method() == Method::PATCH {
                let (answer, answered) = oneshot::channel::<()>();
                ask.send(answer).unwrap();
                answered.await.unwrap();
            }
            let answer = json!({"metadata": {"resourceVersion": "2"}}).to_string();
            Ok::<_, Infallible>(Response::new(Body::from(answer.into_bytes())))
        }
    });
    let registry = Registry::new();
    let metrics = Metrics::register(&registry, "digest", false).unwrap();
    let cluster = Cluster::new(Client::new(service, "default"), &registry).unwrap();
    let events = Events::begin(cluster.clone(), metrics.clone(), "agent");
    let mut ground = Ground::default();
    ground.is_known = true;
    let (world, stop) = (Arc::new(World::new(ground)), Stop::new());
    let prober = Prober::new(1, metrics.probes(&registry, 1).unwrap());
    let crew = Crew::new(Arc::clone(&world), cluster, metrics, events, "node".to_owned(), prober, stop.clone());
    let begin = |uid: &str| {
        let pod = json!({"metadata": {"namespace": "n", "name": uid, "uid": uid}, "status": {"phase": "Running"}});
        let wake = world.pod(Seen::read(&pod, Membership::Enforced, &Policy::built_in()).unwrap()).unwrap();
        crew.begin(uid.to_owned(), wake);
    };
    begin("first");
    let answer = asked.recv().await.unwrap();
    stop.drain();
    begin("second");
    world.wake_everyone();
    let finished = tokio::spawn({
        let crew = crew.clone();
        async move { crew.finished().await }
    });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!finished.is_finished(), "the answer is waited for");
    answer.send(()).unwrap();
    tokio::select! {
        biased;
        _ = asked.recv() => panic!("something new began"),
        finished = finished => finished.unwrap(),
    }
}
