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

mod healing;

/// An answer, and whether its body stays open.
type Answer = (u16, String, bool);

/// An API server that gives these answers, one after the other, and then none at all.
fn server(answers: Vec<Answer>) -> (Cluster, Watches) {
    let (cluster, watches, ..) = noting_server(answers);
    (cluster, watches)
}

/// The same; with what it was asked for, and what was counted.
fn noting_server(answers: Vec<Answer>) -> (Cluster, Watches, Arc<Mutex<Vec<String>>>, Registry) {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let its_asked = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        its_asked.lock().unwrap().push(request.uri().query().unwrap_or_default().to_owned());
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
    let cluster = Cluster::new(Client::new(service, "default"), "tests", &registry).unwrap();
    (cluster, Watches::register(&registry).unwrap(), asked, registry)
}

/// Follows services there.
fn follow_by(answers: Vec<Answer>) -> mpsc::UnboundedReceiver<Change> {
    let (cluster, watches) = server(answers);
    followed(cluster, watches)
}

fn followed(cluster: Cluster, watches: Watches) -> mpsc::UnboundedReceiver<Change> {
    followed_of(Resource::core("services"), cluster, watches)
}

fn followed_of(resource: Resource, cluster: Cluster, watches: Watches) -> mpsc::UnboundedReceiver<Change> {
    let (told, changes) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let tell = move |change| told.send(change).unwrap();
        let watching = watches.begin(resource.name);
        follow(cluster, resource, Selection::default(), watching, &Notify::new(), tell).await;
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
        assert!(matches!(unreadable, Some(Change::Unreadable { .. })), "{unreadable:?}");
        assert!(matches!(told(&mut changes).await, Some(Change::Begun)));
    }
    assert!(matches!(told(&mut changes).await, Some(Change::Listed)));
    assert!(told(&mut changes).await.is_none());
}

/// Whether each failure of these requests is conclusive, and when the first that is was told, in seconds.
async fn conclusions(answers: Vec<Answer>) -> (Vec<bool>, Option<u64>) {
    let (count, begun) = (answers.iter().filter(|(status, ..)| *status != 200).count(), Instant::now());
    let (mut changes, mut conclusions, mut first) = (follow_by(answers), Vec::new(), None);
    while conclusions.len() < count {
        if let Change::Unreadable { is_conclusive } = changes.recv().await.unwrap() {
            conclusions.push(is_conclusive);
            first = first.or(is_conclusive.then(|| begun.elapsed().as_secs()));
        }
    }
    (conclusions, first)
}

#[tokio::test(start_paused = true)]
async fn that_nothing_may_be_read_is_believed_once_it_has_been_so_for_a_while() {
    let fails =
        |code: u16| (code, json!({"kind": "Status", "code": code, "reason": "", "message": ""}).to_string(), false);
    assert_eq!(conclusions(vec![fails(404)]).await, (vec![true], Some(0)), "there is no such kind");
    let (told, first) = conclusions(vec![forbidden(); 20]).await;
    assert_eq!(first, Some(15), "no pause is longer than it is waited for");
    assert!(!told[0] && told.is_sorted(), "{told:?}");
    for other in [list(), fails(503), fails(410)] {
        let answers = (0..10).flat_map(|_| [forbidden(), other.clone()]).collect();
        assert_eq!(conclusions(answers).await.1, None, "each time it was short");
    }
}

/// How many lists are over in two minutes.
async fn lists_of(answers: Vec<Answer>) -> usize {
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
    lists
}

#[tokio::test(start_paused = true)]
async fn who_may_list_and_not_watch_is_not_asked_without_a_pause() {
    let lists = lists_of((0..20).flat_map(|_| [list(), forbidden(), forbidden()]).collect()).await;
    assert!((2..12).contains(&lists), "{lists}");
}

#[tokio::test(start_paused = true)]
async fn nor_is_who_ends_every_watch_with_an_error() {
    let error = json!({"type": "ERROR", "object": {"kind": "Status", "code": 500, "reason": "InternalError",
        "message": "no", "status": "Failure"}});
    let lists = lists_of((0..20).flat_map(|_| [list(), (200, format!("{error}\n"), false)]).collect()).await;
    // Not all of them: the pauses grow to half a minute.
    assert!((2..16).contains(&lists), "{lists}");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_takes_so_long_that_it_never_ends_is_a_failure_and_the_next_has_larger_pages() {
    let page = json!({"metadata": {"resourceVersion": "1", "continue": "more"}, "items": []}).to_string();
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}).to_string();
    let answers = vec![(200, page, false), (410, gone, false), list(), (200, String::new(), true)];
    let (cluster, watches, asked, registry) = noting_server(answers);
    let mut changes = followed(cluster, watches.clone());
    assert!(matches!(changes.recv().await, Some(Change::Begun)));
    // It has begun, which counts, and since then nothing was heard.
    watches.last_event("services").set(0);
    let heard = || watches.last_event("services").get() > 0;
    let unreadable = changes.recv().await;
    assert!(matches!(unreadable, Some(Change::Unreadable { is_conclusive: false })), "{unreadable:?}");
    assert!(!heard(), "half a list is no sign of life");
    let families = registry.gather();
    let errors = families.iter().find(|family| family.name() == "api_errors_total").unwrap();
    let counted: Vec<_> = errors.get_metric().iter().filter(|metric| metric.get_counter().get_value() > 0.0).collect();
    assert_eq!((counted.len(), counted[0].get_label()[0].value()), (1, "expired"));
    assert!(matches!(changes.recv().await, Some(Change::Begun)));
    assert!(matches!(changes.recv().await, Some(Change::Listed)));
    assert!(heard());
    let limits: Vec<_> = asked
        .lock()
        .unwrap()
        .iter()
        .filter_map(|query| {
            form_urlencoded::parse(query.as_bytes())
                .find(|(name, _)| name == "limit")
                .map(|(_, limit)| limit.into_owned())
        })
        .collect();
    assert_eq!(limits, ["10", "10", "40"]);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_fails_is_asked_for_again_before_what_was_read_is_thrown_away() {
    let page = |name: &str, more: &str| {
        let items = json!([{"metadata": {"name": name}}]);
        (200, json!({"metadata": {"resourceVersion": "1", "continue": more}, "items": items}).to_string(), false)
    };
    let fails = |code: u16| {
        (code, json!({"kind": "Status", "code": code, "reason": "", "message": "not now"}).to_string(), false)
    };
    let (first, last) = (page("a", "more"), page("b", ""));
    let mut answers =
        vec![first.clone(), fails(429), fails(503), fails(504), last, (200, "no JSON\n".to_owned(), false)];
    // From here on nothing helps: the watch is broken, and so is what follows.
    answers.extend([fails(503), first]);
    answers.extend((0..5).map(|_| fails(429)));
    let (cluster, watches, asked, _) = noting_server(answers);
    let mut changes = followed(cluster, watches);
    let mut told = Vec::new();
    while told.len() < 8 {
        told.push(match changes.recv().await.unwrap() {
            Change::Seen(object) => object["metadata"]["name"].as_str().unwrap().to_owned(),
            Change::Unreadable { .. } => "Unreadable".to_owned(),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(told.join(" "), "Begun a b Listed Unreadable Begun a Unreadable");
    let asked = asked.lock().unwrap();
    let more = asked.iter().map(|query| u8::from(query.contains("continue=more"))).collect::<Vec<_>>();
    assert_eq!(more, [0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_breaks_after_it_worked_is_a_first_failure() {
    let event = json!({"type": "BOOKMARK", "object": {"kind": "Service", "apiVersion": "v1",
        "metadata": {"resourceVersion": "5"}}});
    let broken = (200, format!("{event}\nno JSON\n"), false);
    let mut changes = follow_by(vec![list(), forbidden(), forbidden(), list(), broken, (200, String::new(), true)]);
    assert!(matches!(changes.recv().await, Some(Change::Begun)));
    assert!(matches!(changes.recv().await, Some(Change::Listed)));
    assert!(matches!(changes.recv().await, Some(Change::Unreadable { .. })));
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
