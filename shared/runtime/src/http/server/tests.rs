use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use http_body_util::BodyExt;
use prometheus::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::*;
use crate::http::{Counts, Upgraded, reply};

fn server(limits: Limits) -> Server {
    let counts = Counts::register(&Registry::new()).unwrap().of("test");
    Server { tls: None, limits, counts, phases: Phases::default() }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn hello(_: Request<Incoming>) -> Reply {
    reply::text(StatusCode::OK, "hello")
}

/// Asks once on a connection of its own and returns everything that came back.
async fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

/// Fails as often as told, then accepts.
struct Failing {
    listener: TcpListener,
    failures: AtomicUsize,
}

impl Accept for Failing {
    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let left = self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_ok() {
            return Err(io::Error::other("no file descriptors left"));
        }
        self.listener.accept().await
    }
}

#[tokio::test]
async fn accept_errors_are_counted_and_do_not_end_the_listener() {
    let (listener, address) = listen().await;
    let server = server(Limits::default());
    let (phases, counts) = (server.phases.clone(), server.counts.clone());
    let serving = tokio::spawn(server.serve_on(Failing { listener, failures: AtomicUsize::new(2) }, hello));
    assert!(ask(address).await.unwrap().ends_with("hello\n"));
    assert_eq!(counts.accept_errors.get(), 2);
    phases.close.cancel();
    assert_eq!(serving.await.unwrap(), Drained { cut_off: 0 });
}

#[test]
fn the_pause_after_accept_errors_grows_to_a_second_and_stays_there() {
    let mut pause = ACCEPT_PAUSE.0;
    let pauses: Vec<_> = std::iter::repeat_with(|| {
        let now = pause;
        pause = longer(pause);
        now.as_millis()
    })
    .take(7)
    .collect();
    assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_connections_than_allowed_are_served_at_once_and_all_are_served_in_the_end() {
    let (listener, address) = listen().await;
    let server = server(Limits { connections: 2, ..Limits::default() });
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    tokio::spawn(server.serve(listener, move |_| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
            now.fetch_sub(1, Ordering::SeqCst);
            reply::text(StatusCode::OK, "hello")
        }
    }));
    let clients: Vec<_> = (0..20).map(|_| tokio::spawn(ask(address))).collect();
    for client in clients {
        assert!(client.await.unwrap().unwrap().ends_with("hello\n"));
    }
    assert_eq!(seen.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn clients_that_hold_connections_keep_nobody_out() {
    for held in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: x\r\n\r\n", "POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\n"] {
        let (listener, address) = listen().await;
        let answering_when_full = Duration::from_millis(300);
        let server = server(Limits { connections: 2, answering_when_full, ..Limits::default() });
        let displaced = server.counts.displaced.clone();
        tokio::spawn(server.serve(listener, |request: Request<Incoming>| async {
            // As a handler that needs the body.
            let _ = request.into_body().collect().await;
            reply::text(StatusCode::OK, "hello")
        }));
        let mut holders = Vec::new();
        for _ in 0..6 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(held.as_bytes()).await.unwrap();
            holders.push(stream);
        }
        let answer = tokio::time::timeout(Duration::from_secs(5), ask(address)).await;
        assert!(answer.is_ok_and(|answer| answer.unwrap().ends_with("hello\n")), "kept out by {held:?}");
        assert!(displaced.get() > 0);
    }
}

#[tokio::test]
async fn a_request_in_flight_is_answered_after_the_listener_is_closed() {
    let (listener, address) = listen().await;
    let server = server(Limits::default());
    let phases = server.phases.clone();
    let (entered, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gates = (Arc::clone(&entered), Arc::clone(&go_on));
    let serving = tokio::spawn(server.serve(listener, move |_| {
        let (entered, go_on) = gates.clone();
        async move {
            entered.notify_one();
            go_on.notified().await;
            reply::text(StatusCode::OK, "hello")
        }
    }));
    let client = tokio::spawn(ask(address));
    entered.notified().await;
    phases.close.cancel();
    // The listener is closed as soon as the loop has noticed, and a connection it never saw is refused.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    go_on.notify_one();
    assert!(client.await.unwrap().unwrap().ends_with("hello\n"));
    assert_eq!(serving.await.unwrap(), Drained { cut_off: 0 });
}

#[tokio::test]
async fn a_request_that_outlives_the_drain_is_cut_off_and_told() {
    let (listener, address) = listen().await;
    let server = server(Limits { drain: Duration::ZERO, ..Limits::default() });
    let phases = server.phases.clone();
    let entered = Arc::new(Notify::new());
    let gate = Arc::clone(&entered);
    let serving = tokio::spawn(server.serve(listener, move |_| {
        let entered = Arc::clone(&gate);
        async move {
            entered.notify_one();
            std::future::pending().await
        }
    }));
    let client = tokio::spawn(ask(address));
    entered.notified().await;
    phases.close.cancel();
    assert_eq!(serving.await.unwrap(), Drained { cut_off: 1 });
    assert_eq!(client.await.unwrap().unwrap(), "");
}

#[tokio::test]
async fn a_stream_keeps_its_place_against_others_for_longer_than_an_idle_connection() {
    let (listener, address) = listen().await;
    let server = server(Limits { connections: 2, streaming_when_full: Duration::from_hours(1), ..Limits::default() });
    let displaced = server.counts.displaced.clone();
    tokio::spawn(server.serve(listener, |request: Request<Incoming>| async move {
        match request.uri().path() {
            "/switch" => reply::switching(|mut upgraded: Upgraded| async move {
                let mut byte = [0];
                while upgraded.stream.read_exact(&mut byte).await.is_ok() {
                    upgraded.stream.write_all(&byte).await.unwrap();
                }
            }),
            _ => reply::text(StatusCode::OK, "hello"),
        }
    }));
    let mut streaming = TcpStream::connect(address).await.unwrap();
    streaming.write_all(b"GET /switch HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").await.unwrap();
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(streaming.read_u8().await.unwrap()));
    }
    let mut idle = Vec::new();
    for number in 1..=3 {
        idle.push(TcpStream::connect(address).await.unwrap());
        assert!(ask(address).await.unwrap().ends_with("hello\n"));
        assert_eq!(displaced.get(), number);
    }
    streaming.write_all(b"?").await.unwrap();
    assert_eq!(streaming.read_u8().await.unwrap(), b'?');
}

#[tokio::test]
async fn another_protocol_that_outlives_the_drain_is_cut_off_and_told() {
    let (listener, address) = listen().await;
    let server = server(Limits { drain: Duration::ZERO, ..Limits::default() });
    let phases = server.phases.clone();
    let serving = tokio::spawn(server.serve(listener, |_| async {
        reply::switching(|kept: Upgraded| async move {
            std::future::pending::<()>().await;
            drop(kept);
        })
    }));
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").await.unwrap();
    let mut head = [0; 12];
    client.read_exact(&mut head).await.unwrap();
    phases.close.cancel();
    assert_eq!(serving.await.unwrap(), Drained { cut_off: 1 });
}
