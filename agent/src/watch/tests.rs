//! Against an API server that answers by a script.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::{Bytes, Frame};
use kube::Client;
use kube::client::Body;
use prometheus::Registry;
use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::metrics::{Metrics, Watches};

/// An answer, and whether its body stays open.
type Answer = (u16, String, bool);

/// An API server that gives these answers, one after the other, and then none at all.
fn server(answers: Vec<Answer>) -> (Cluster, Watches) {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let service = tower::service_fn(move |_: Request<Body>| {
        let next = answers.lock().unwrap().pop_front();
        async move {
            let Some((status, text, stays)) = next else { return std::future::pending().await };
            let text = futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(text)))]);
            let open = futures_util::stream::pending();
            let body = StreamBody::new(if stays { text.chain(open).boxed() } else { text.boxed() });
            Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
        }
    });
    let registry = Registry::new();
    let cluster = Cluster::new(Client::new(service, "default"), &registry).unwrap();
    (cluster, Metrics::register(&registry, "", false).unwrap().watches)
}

/// Follows services there.
fn follow_by(answers: Vec<Answer>) -> mpsc::UnboundedReceiver<Change> {
    let (cluster, watches) = server(answers);
    let (told, changes) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let tell = move |change| told.send(change).unwrap();
        let watching = watches.begin("services");
        follow(cluster, Resource::core("services"), Selection::default(), watching, &Notify::new(), tell).await;
    });
    changes
}

fn list() -> Answer {
    (200, json!({"metadata": {"resourceVersion": "1"}, "items": []}).to_string(), false)
}

fn forbidden() -> Answer {
    let message = "services is forbidden: User \"a\" cannot watch resource \"services\" in API group \"\"";
    (403, json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": message}).to_string(), false)
}

#[tokio::test(start_paused = true)]
async fn after_a_time_in_which_nothing_could_be_read_all_is_listed_anew() {
    let answers = vec![list(), forbidden(), forbidden(), forbidden(), list(), (200, String::new(), true)];
    let mut changes = follow_by(answers);
    let told = async |changes: &mut mpsc::UnboundedReceiver<Change>| {
        timeout(Duration::from_secs(100), changes.recv()).await.ok().flatten()
    };
    assert!(matches!(told(&mut changes).await, Some(Change::Begun)));
    assert!(matches!(told(&mut changes).await, Some(Change::Listed)));
    // The first might have been a connection that broke.
    for _ in 0..2 {
        let unreadable = told(&mut changes).await;
        assert!(matches!(unreadable, Some(Change::Unreadable(Class::Forbidden))), "{unreadable:?}");
        assert!(matches!(told(&mut changes).await, Some(Change::Begun)));
    }
    assert!(matches!(told(&mut changes).await, Some(Change::Listed)));
    assert!(told(&mut changes).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn who_may_list_and_not_watch_is_not_asked_without_a_pause() {
    let answers = (0..20).flat_map(|_| [list(), forbidden(), forbidden()]).collect();
    let mut changes = follow_by(answers);
    let begun = tokio::time::Instant::now();
    let mut lists = 0;
    while begun.elapsed() < Duration::from_mins(2) {
        let rest = Duration::from_mins(2).saturating_sub(begun.elapsed());
        match timeout(rest, changes.recv()).await {
            Ok(Some(Change::Listed)) => lists += 1,
            Ok(Some(_)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    assert!((2..12).contains(&lists), "{lists}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_after_it_worked_is_a_first_failure() {
    let event = json!({"type": "BOOKMARK", "object": {"kind": "Service", "apiVersion": "v1",
        "metadata": {"resourceVersion": "5"}}});
    let broken = (200, format!("{event}\nno JSON\n"), false);
    let mut changes = follow_by(vec![list(), forbidden(), forbidden(), list(), broken, (200, String::new(), true)]);
    assert!(matches!(changes.recv().await, Some(Change::Begun)));
    assert!(matches!(changes.recv().await, Some(Change::Listed)));
    assert!(matches!(changes.recv().await, Some(Change::Unreadable(_))));
    assert!(matches!(changes.recv().await, Some(Change::Begun)));
    assert!(matches!(changes.recv().await, Some(Change::Listed)));
    let told = timeout(Duration::from_secs(100), changes.recv()).await;
    assert!(told.is_err(), "nothing is to be told: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn whoever_decides_by_a_watch_learns_that_it_panicked() {
    let event = json!({"type": "ADDED", "object": {"metadata": {"name": "s", "resourceVersion": "2"}}});
    let (cluster, watches) = server(vec![list(), (200, format!("{event}\n"), true)]);
    let mut lookout = Lookout::new(cluster, watches, Vec::new());
    lookout.watch("services", Resource::core("services"), Selection::default(), |seen: &mut Vec<String>, change| {
        assert!(!matches!(change, Change::Seen(_)), "on purpose");
        seen.push(format!("{change:?}"));
        matches!(change, Change::Listed)
    });
    while lookout.changed().await {}
    assert_eq!(*lookout.seen(), ["Begun", "Listed"], "what was seen is there still");
}
