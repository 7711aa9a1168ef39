//! Against inspectors on a socket, of which only one is a good one.

use std::net::{IpAddr, Ipv4Addr};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";

/// Somebody who listens to the inspector behind a listener.
struct Scene {
    listener: TcpListener,
    program: watch::Sender<Program>,
    heard: mpsc::UnboundedReceiver<Heard>,
    listening: JoinHandle<()>,
}

impl Scene {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, address) = (listener.local_addr().unwrap().port(), Some(IpAddr::from(Ipv4Addr::LOCALHOST)));
        let (program, its_program) = watch::channel(Program::Running { address });
        let (tell, heard) = mpsc::unbounded_channel();
        let listening = tokio::spawn(run(its_program, port, move |heard| tell.send(heard).unwrap()));
        Self { listener, program, heard, listening }
    }

    /// Gives the next connection this answer, and closes it.
    async fn answers(&self, answer: &str) {
        let (mut stream, _) = asked(&self.listener).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

/// The next connection, and what is asked for on it.
async fn asked(listener: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    (stream, String::from_utf8(head).unwrap())
}

fn event(n: u64) -> Heard {
    Heard::Event(serde_json::json!({ "n": n }))
}

#[tokio::test]
async fn dbg_01_events_are_told_and_a_stream_that_ends_is_asked_for_again_until_the_program_has_ended() {
    let mut scene = Scene::new().await;
    let (mut stream, head) = asked(&scene.listener).await;
    assert!(head.starts_with("GET /events HTTP/1.1\r\nhost: 127.0.0.1:"), "{head}");
    assert!(head.contains("accept-encoding: identity\r\n"), "{head}");
    for part in [STREAM, ": hello\n\ndata: {\"n\":", "1}\n\ndata: {\"kind\":\"log\"}\n\n", "data: {\"n\":2}\n\n"] {
        stream.write_all(part.as_bytes()).await.unwrap();
    }
    // What came before the end is heard, also where both come at once.
    drop(stream);
    scene.answers(&format!("{STREAM}data: {{\"n\":3}}\n\n")).await;
    let (mut last, _) = asked(&scene.listener).await;
    last.write_all(STREAM.as_bytes()).await.unwrap();
    for n in 1..=3 {
        assert_eq!(scene.heard.recv().await, Some(event(n)));
    }
    scene.program.send(Program::Ended).unwrap();
    scene.listening.await.unwrap();
    // What nobody reads any more makes a close a reset.
    assert!(matches!(last.read(&mut [0]).await, Ok(0) | Err(_)), "it is closed");
    assert_eq!(scene.heard.recv().await, None);
}

#[tokio::test]
async fn what_is_no_stream_is_not_read_and_no_redirect_is_followed() {
    let mut scene = Scene::new().await;
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let location = format!("location: http://{}/events", elsewhere.local_addr().unwrap());
    for (status, header) in [
        ("302 Found", location.as_str()),
        ("307 Temporary Redirect", &location),
        ("204 No Content", "x: y"),
        ("404 Not Found", "x: y"),
        ("101 Switching Protocols", "upgrade: x\r\nconnection: upgrade"),
        ("200 OK", "content-encoding: gzip"),
        ("200 OK", "content-encoding: identity\r\ncontent-encoding: br"),
    ] {
        let kind = "content-type: text/event-stream";
        scene.answers(&format!("HTTP/1.1 {status}\r\n{kind}\r\n{header}\r\n\r\ndata: {{\"n\":0}}\n\n")).await;
    }
    scene.answers("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\ndata: {\"n\":0}\n\n").await;
    scene.answers("this is no HTTP\r\n\r\n").await;
    scene.answers(&format!("{STREAM}data: {{\"n\":1}}\n\n")).await;
    assert_eq!(scene.heard.recv().await, Some(event(1)));
    let followed = std::pin::pin!(elsewhere.accept());
    assert!(futures_util::FutureExt::now_or_never(followed).is_none());
}

#[tokio::test]
async fn a_head_without_end_is_given_up() {
    let mut scene = Scene::new().await;
    let (mut stream, _) = asked(&scene.listener).await;
    stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
    let (line, mut written) = (format!("x: {}\r\n", "y".repeat(1000)), 0);
    while stream.write_all(line.as_bytes()).await.is_ok() {
        written += line.len();
        assert!(written < 64 * 1024 * 1024, "somebody reads all of it");
    }
    scene.answers(&format!("{STREAM}data: {{\"n\":1}}\n\n")).await;
    assert_eq!(scene.heard.recv().await, Some(event(1)));
}

#[tokio::test(start_paused = true)]
async fn that_nothing_answers_is_told_once_and_it_is_tried_on() {
    let scene = Scene::new().await;
    let port = scene.listener.local_addr().unwrap().port();
    let Scene { listener, mut heard, listening, program: _program } = scene;
    drop(listener);
    assert_eq!(heard.recv().await, Some(Heard::NoAnswer));
    sleep(Duration::from_hours(1)).await;
    assert!(heard.try_recv().is_err() && !listening.is_finished());
    // From here on it is a socket that is waited for.
    tokio::time::resume();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let (mut stream, _) = asked(&listener).await;
    stream.write_all(format!("{STREAM}data: {{\"n\":1}}\n\n").as_bytes()).await.unwrap();
    assert_eq!(heard.recv().await, Some(event(1)));
}

#[tokio::test(start_paused = true)]
async fn dbg_03_that_the_pod_has_no_address_is_told_once() {
    let (program, its_program) = watch::channel(Program::Waiting);
    let (tell, mut heard) = mpsc::unbounded_channel();
    let listening = tokio::spawn(run(its_program, 1, move |heard| tell.send(heard).unwrap()));
    sleep(Duration::from_hours(1)).await;
    assert!(heard.try_recv().is_err(), "it does not run yet");
    program.send(Program::Running { address: None }).unwrap();
    assert_eq!(heard.recv().await, Some(Heard::NoAddress));
    sleep(Duration::from_hours(1)).await;
    assert!(heard.try_recv().is_err());
    drop(program);
    listening.await.unwrap();
}
