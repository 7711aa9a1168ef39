use cofferdam_model::policy::Policy;
use serde_json::json;

use super::*;
use crate::session::{Membership, Phase};

fn world() -> World {
    World::new(Ground::default())
}

fn seen(uid: &str, id: &str, version: u32, phase: &str) -> Seen {
    let pod = json!({
        "metadata": {"namespace": "n", "name": uid, "uid": uid, "resourceVersion": version.to_string(),
            "labels": {"cofferdam.dev/session": id}},
        "status": {"phase": phase},
    });
    Seen::read(&pod, Membership::Other, &Policy::built_in()).unwrap()
}

fn service(uid: &str, version: u32) -> Value {
    json!({"metadata": {"namespace": "n", "name": "s-a", "uid": uid, "resourceVersion": version.to_string(),
        "labels": {"cofferdam.dev/session": "a"}, "managedFields": [{"manager": "x"}]}})
}

/// Whether there is a permit, taking it.
fn woken(wake: &Notify) -> bool {
    let mut waiting = tokio_test(wake.notified());
    waiting.take().is_some()
}

/// Polls once.
fn tokio_test<F: Future>(future: F) -> Option<F::Output> {
    use std::task::{Context, Poll, Waker};
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[test]
fn b109_what_a_list_does_not_show_is_gone() {
    let world = world();
    let wakes: Vec<_> = ["p", "q"].map(|uid| world.pod(seen(uid, uid, 1, "Running")).unwrap()).into();
    world.object(Kind::Service, &service("s", 1));
    let pods = world.pods_begin();
    assert!(world.pod(seen("p", "p", 1, "Running")).is_none());
    // A list of something else begins meanwhile.
    let _ = world.objects_begin();
    world.pods_listed(pods);
    assert!(world.snapshot("p").is_some() && world.snapshot("q").is_none());
    assert!(!woken(&wakes[0]) && woken(&wakes[1]));
    assert!(world.state().by_id.len() == 1);
    // Lists of several kinds go on side by side, and none takes away what belongs to another.
    let services = world.objects_begin();
    let slices = world.objects_begin();
    world.objects_listed(Kind::EndpointSlice, slices);
    assert_eq!(world.state().objects.len(), 1);
    world.object(Kind::Service, &service("s", 1));
    world.objects_listed(Kind::Service, services);
    assert_eq!(world.state().objects.len(), 1);
    let again = world.objects_begin();
    world.objects_listed(Kind::Service, again);
    assert!(world.state().objects.is_empty());
}

#[test]
fn what_is_older_changes_nothing() {
    let world = world();
    let wake = world.pod(seen("p", "a", 5, "Running")).unwrap();
    assert!(world.pod(seen("p", "a", 4, "Pending")).is_none() && !woken(&wake));
    assert_eq!(world.snapshot("p").unwrap().seen.session.phase, Phase::Running);
    world.object(Kind::Service, &service("new", 7));
    assert!(woken(&wake));
    world.object(Kind::Service, &service("new", 6));
    assert!(!woken(&wake));
    assert_eq!(world.state().objects.values().next().unwrap().values().next().unwrap().version, 7);
    // The end of the one before comes after the beginning of the next.
    world.object_gone(Kind::Service, &service("old", 6));
    assert_eq!(world.snapshot("p").unwrap().live.len(), 1);
    world.object_gone(Kind::Service, &service("new", 8));
    assert!(world.snapshot("p").unwrap().live.is_empty());
}

#[test]
fn who_waits_for_an_id_is_woken_when_its_holder_ends() {
    let world = world();
    let _holder = world.pod(seen("p", "a", 1, "Running")).unwrap();
    let waiting = world.pod(seen("q", "a", 1, "Running")).unwrap();
    let other = world.pod(seen("r", "b", 1, "Running")).unwrap();
    world.pod(seen("p", "a", 2, "Succeeded"));
    assert!(woken(&waiting) && !woken(&other));
    world.pod_gone("p");
    assert!(woken(&waiting) && !woken(&other));
}

#[test]
fn a_session_whose_namespace_has_none_any_more_is_worked_on_once_more() {
    let pod = json!({"metadata": {"namespace": "n", "name": "p", "uid": "p", "resourceVersion": "1",
        "labels": {"cofferdam.dev/session": "a"}, "annotations": {"cofferdam.dev/hardened": "{}"}},
        "status": {"phase": "Running"}});
    let read = |membership| Seen::read(&pod, membership, &Policy::built_in()).unwrap();
    let world = world();
    let wake = world.pod(read(Membership::Enforced)).unwrap();
    assert!(world.pod(read(Membership::Exempt)).is_none() && woken(&wake));
    assert_eq!((world.is_live("p"), world.snapshot("p").unwrap().seen.session.phase), (Some(false), Phase::Released));
}

#[test]
fn a_start_is_seen_when_its_events_come_and_not_when_somebody_looks() {
    let world = world();
    let event = |version: u32, address: Option<&str>| {
        let mut seen = seen("p", "a", version, "Pending");
        seen.session.address = address.and_then(|address| address.parse().ok());
        world.pod(seen);
    };
    let start = || world.snapshot("p").unwrap().start;
    event(1, None);
    event(2, Some("10.0.0.1"));
    let first = start();
    assert!(first.is_whole && first.addressed >= Some(first.at));
    event(3, Some("10.0.0.1"));
    event(4, None);
    assert_eq!((start().at, start().addressed), (first.at, first.addressed));
    world.pod_gone("p");
    event(5, Some("10.0.0.1"));
    assert!(!start().is_whole);
}

#[test]
fn an_event_that_tells_nothing_new_wakes_nobody() {
    let world = world();
    let wake = world.pod(seen("p", "a", 1, "Running")).unwrap();
    world.pod(seen("p", "a", 1, "Running"));
    assert!(!woken(&wake));
    world.readable(Kind::HttpRoute, true);
    world.node_lost(false);
    world.protected("elsewhere", true);
    assert!(!woken(&wake));
    world.readable(Kind::HttpRoute, false);
    assert!(woken(&wake));
    world.protected("n", true);
    assert!(woken(&wake));
    assert!(world.snapshot("p").unwrap().is_protected);
}

#[test]
fn an_object_whose_label_somebody_took_is_still_known_and_wakes_its_session() {
    let world = world();
    let wake = world.pod(seen("p", "a", 1, "Running")).unwrap();
    world.object(Kind::Service, &service("s", 1));
    assert!(woken(&wake));
    for (version, labels) in [(2, json!({})), (3, json!({"cofferdam.dev/session": "b"}))] {
        let mut changed = service("s", version);
        changed["metadata"]["labels"] = labels.clone();
        world.object(Kind::Service, &changed);
        assert!(woken(&wake), "{labels}");
        let live = world.snapshot("p").unwrap().live;
        assert!(live.len() == 1 && live[0].object["metadata"]["labels"] == labels, "{live:?}");
    }
    let mut gone = service("s", 4);
    gone["metadata"]["labels"] = json!({});
    world.object_gone(Kind::Service, &gone);
    assert!(woken(&wake) && world.snapshot("p").unwrap().live.is_empty());
}

#[test]
fn an_answer_that_comes_after_the_end_of_its_object_brings_it_back_no_more() {
    let world = world();
    world.pod(seen("p", "a", 1, "Running")).unwrap();
    let known = || world.snapshot("p").unwrap().live.len();
    let begun = world.moment();
    world.object_gone(Kind::Service, &service("s", 7));
    world.answer(Kind::Service, &service("s", 6), begun);
    assert_eq!(known(), 0, "no watch would ever tell that it is gone");
    world.answer(Kind::Service, &service("anew", 8), begun);
    assert_eq!(known(), 1, "that it went says nothing of the next");
    world.answer(Kind::Service, &service("anew", 9), begun);
    let round = world.objects_begin();
    world.objects_listed(Kind::Service, round);
    assert_eq!(known(), 0);
    for uid in ["anew", "never-seen"] {
        world.answer(Kind::Service, &service(uid, 9), begun);
        assert_eq!(known(), 0, "a list did not show it");
    }
    let begun = world.moment();
    let round = world.objects_begin();
    world.answer(Kind::Service, &service("last", 12), begun);
    assert_eq!(known(), 1);
    world.objects_listed(Kind::Service, round);
    assert_eq!(known(), 0, "it was gone before the list that goes on");
    world.answer(Kind::Service, &service("last", 12), world.moment());
    assert_eq!(known(), 1);
}

#[test]
fn of_what_no_session_can_want_and_of_what_is_too_large_an_outline_is_kept() {
    let world = world();
    world.pod(seen("p", "a", 1, "Running"));
    let object = |name: &str, note: &str| {
        json!({"metadata": {"namespace": "n", "name": name, "uid": name, "resourceVersion": "1",
            "labels": {"cofferdam.dev/session": "a"}, "annotations": {"note": note}}, "spec": {"ports": []}})
    };
    let all = [("s-a", 100, true), ("s-a", 100_000, false), ("s-b", 100, false), ("other", 100, false)];
    for (version, (name, length, is_whole)) in all.into_iter().enumerate() {
        let mut object = object(name, &"x".repeat(length));
        object["metadata"]["resourceVersion"] = version.to_string().into();
        world.object(Kind::Service, &object);
        let state = world.state();
        let kept = state.objects.values().find_map(|objects| objects.get(&(Kind::Service, name.to_owned()))).unwrap();
        let live = kept.clone().live(Kind::Service, name.to_owned());
        assert_eq!(!live.object["spec"].is_null(), is_whole, "{name} {length}");
        assert_eq!((live.uid.as_str(), live.object["metadata"]["name"].as_str()), (name, Some(name)));
    }
}
