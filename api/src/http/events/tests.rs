use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cofferdam_runtime::http::{Limits, Phases};
use http::Request;
use hyper::body::Incoming;

use super::super::testing::{Client, serve};
use super::*;
use crate::session::hub::{Hub, Limits as Kept};
use crate::wire::{Phase, Status};

fn progress(message: &str) -> Event {
    Event::Progress { app: None, phase: Phase::Provision, message: message.to_owned(), done: None }
}

fn frame(id: u64, message: &str) -> String {
    format!(
        "id: {id}\nevent: progress\ndata: {{\"type\":\"progress\",\"phase\":\"provision\",\"message\":\"{message}\"}}\n\n"
    )
}

/// Serves a hub's events on every path.
async fn served(hub: &Arc<Hub>) -> (std::net::SocketAddr, Phases) {
    let (sender, phases) = tokio::sync::oneshot::channel::<Phases>();
    let close = CancellationToken::new();
    let (hub, its_close) = (Arc::clone(hub), close.clone());
    let (address, real) = serve(Limits::default(), move |request: Request<Incoming>| {
        let after = last_id(request.headers(), request.uri().query());
        std::future::ready(answer(hub.events(after), its_close.clone(), ()))
    })
    .await;
    let real_close = real.close.clone();
    tokio::spawn(async move {
        real_close.cancelled().await;
        close.cancel();
    });
    drop((sender, phases));
    (address, real)
}

#[tokio::test]
async fn buf_04_events_are_replayed_and_then_come_as_they_are_told_until_a_final_status() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    hub.tell(&Event::Status { status: Status::Starting });
    hub.tell(&progress("one"));
    let (address, _) = served(&hub).await;
    let mut client = Client::get(address, "/", "").await;
    let head = client.head().await;
    for line in [
        "HTTP/1.1 200 OK\r\n",
        "content-type: text/event-stream\r\n",
        "cache-control: no-cache, no-transform\r\n",
        "connection: keep-alive\r\n",
        "x-accel-buffering: no\r\n",
    ] {
        assert!(head.contains(line), "{head}");
    }
    let starting = "id: 1\nevent: status\ndata: {\"type\":\"status\",\"status\":{\"kind\":\"starting\"}}\n\n";
    assert_eq!(client.chunk().await, format!("{starting}{}", frame(2, "one")));
    hub.tell(&progress("two\nlines"));
    assert_eq!(client.chunk().await, frame(3, "two\\nlines"));
    hub.tell(&Event::Status { status: Status::Exited { code: 3 } });
    assert!(client.chunk().await.starts_with("id: 4\nevent: status\n"));
    assert_eq!(client.chunk().await, "");
    // Who has it all learns that there is nothing more.
    let mut again = Client::get(address, "/?lastEventId=4", "").await;
    again.head().await;
    assert_eq!(again.chunk().await, "");
}

#[tokio::test]
async fn buf_04_what_a_browser_remembers_counts_before_what_its_page_wrote() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    for message in ["one", "two", "three"] {
        hub.tell(&progress(message));
    }
    let (address, _) = served(&hub).await;
    for (path, header, first) in [
        ("/?lastEventId=2", "", 3),
        ("/?lastEventId=1", "last-event-id: 2\r\n", 3),
        ("/?lastEventId=2", "last-event-id: 0\r\n", 1),
        ("/?lastEventId=x", "", 1),
        ("/?lastEventId=99", "", 1),
        ("/", "last-event-id: nonsense\r\n", 1),
    ] {
        let mut client = Client::get(address, path, header).await;
        client.head().await;
        assert!(client.chunk().await.starts_with(&format!("id: {first}\n")), "{path} {header}");
    }
}

#[tokio::test]
async fn what_is_not_kept_any_more_is_told_as_a_gap_without_an_id() {
    let hub = Arc::new(Hub::new(Kept { events: 1, bytes: 1 }, 1));
    hub.tell(&progress("one"));
    hub.tell(&progress("two"));
    let (address, _) = served(&hub).await;
    let mut client = Client::get(address, "/", "").await;
    client.head().await;
    let gap = "event: gap\ndata: {\"type\":\"gap\",\"reason\":\"buffer_evicted\"}\n\n";
    assert_eq!(client.chunk().await, format!("{gap}{}", frame(2, "two")));
}

#[tokio::test]
async fn a_server_that_closes_ends_its_streams_well() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    let (address, phases) = served(&hub).await;
    let mut client = Client::get(address, "/", "").await;
    client.head().await;
    phases.retire.cancel();
    hub.tell(&progress("still served"));
    assert_eq!(client.chunk().await, frame(1, "still served"));
    phases.close.cancel();
    assert_eq!(client.chunk().await, "");
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_client_that_leaves_is_a_reader_no_more() {
    struct Held(Arc<AtomicUsize>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    let hub = Arc::new(Hub::new(Kept::default(), 1));
    let left = Arc::new(AtomicUsize::new(0));
    let (its_hub, its_left) = (Arc::clone(&hub), Arc::clone(&left));
    let (address, _) = serve(Limits::default(), move |_| {
        let held = Held(Arc::clone(&its_left));
        std::future::ready(answer(its_hub.events(0), CancellationToken::new(), held))
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = Client::get(address, "/", "").await;
        client.head().await;
        clients.push(client);
    }
    assert_eq!(hub.readers(), 20);
    drop(clients);
    while hub.readers() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(left.load(Ordering::SeqCst), 20);
}

#[tokio::test(start_paused = true)]
async fn a_comment_comes_after_twenty_seconds_without_an_event() {
    let hub = Hub::new(Kept::default(), 1);
    let mut source = Source { events: hub.events(0), close: CancellationToken::new(), is_over: false, _held: () };
    let start = tokio::time::Instant::now();
    assert_eq!(source.next().await.unwrap(), HEARTBEAT);
    assert_eq!(start.elapsed(), QUIET);
    hub.tell(&progress("one"));
    assert_eq!(source.next().await.unwrap(), frame(1, "one"));
}

#[tokio::test]
async fn what_a_stream_holds_is_one_batch() {
    let hub = Hub::new(Kept::default(), 1);
    for _ in 0..1000 {
        hub.tell(&progress(&"x".repeat(1000)));
    }
    let mut source = Source { events: hub.events(0), close: CancellationToken::new(), is_over: false, _held: () };
    assert!(source.next().await.unwrap().len() < 2 * BATCH_BYTES);
}
