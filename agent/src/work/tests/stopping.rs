//! What becomes of the work on sessions when the agent is asked to stop.

use std::convert::Infallible;

use cofferdam_model::policy::Policy;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::testing::crew;
use super::*;
use crate::testing::answer;

#[tokio::test]
async fn what_is_on_its_way_is_finished_and_nothing_new_begins() {
    let (ask, mut asked) = mpsc::unbounded_channel();
    let service = tower::service_fn(move |request: Request<Body>| {
        let ask = ask.clone();
        async move {
            // Events are told by the way.
            if request.method() == Method::PATCH {
                let (release, released) = oneshot::channel::<()>();
                ask.send(release).unwrap();
                released.await.unwrap();
            }
            Ok::<_, Infallible>(answer(&json!({"metadata": {"resourceVersion": "2"}})))
        }
    });
    let stop = Stop::new();
    let crew = crew(Client::new(service, "default"), stop.clone());
    let world = Arc::clone(&crew.world);
    let mut ground = Ground::default();
    ground.is_known = true;
    world.ground.store(Arc::new(ground));
    let begin = |uid: &str| {
        let pod = json!({"metadata": {"namespace": "n", "name": uid, "uid": uid}, "status": {"phase": "Running"}});
        let wake = world.pod(Seen::read(&pod, Membership::Enforced, &Policy::built_in()).unwrap()).unwrap();
        crew.begin(uid.to_owned(), wake);
    };
    begin("first");
    let release = asked.recv().await.unwrap();
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
    release.send(()).unwrap();
    tokio::select! {
        biased;
        _ = asked.recv() => panic!("something new began"),
        finished = finished => finished.unwrap(),
    }
}
