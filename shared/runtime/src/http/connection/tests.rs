use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, UPGRADE};
use hyper::body::{Body, Frame};
use prometheus::Registry;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::*;
use crate::http::Counts;

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/// The client's end of a connection, and the task that serves the other end.
struct Client {
    stream: BufReader<DuplexStream>,
    served: JoinHandle<()>,
    phases: Phases,
    counts: ListenerCounts,
}

impl Client {
    /// Connects through a pipe of `pipe_bytes` to a server with short, round limits.
    fn connect<H, F>(pipe_bytes: usize, handler: H) -> Self
    where
        H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let limits = Limits {
            head: Duration::from_secs(10),
            write: Duration::from_secs(20),
            idle: Duration::from_secs(100),
            ..Limits::default()
        };
        let (near, far) = tokio::io::duplex(pipe_bytes);
        let phases = Phases::default();
        let counts = Counts::register(&Registry::new()).unwrap().of("test");
        let (its_phases, its_counts) = (phases.clone(), counts.clone());
        let served = tokio::spawn(async move { serve(far, None, &handler, &limits, &its_counts, &its_phases).await });
        Self { stream: BufReader::new(near), served, phases, counts }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).await.unwrap();
    }

    /// The head and the body of the next answer.
    async fn answer(&mut self) -> (String, String) {
        let head = self.head().await;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix(CONTENT_LENGTH.as_str())?.strip_prefix(": "))
            .map_or(0, |number| number.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8(body).unwrap())
    }

    /// The head of an answer that is streamed.
    async fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).await.unwrap() > 0, "closed after {head:?}");
        }
        head
    }

    /// One chunk of an answer that is streamed.
    async fn chunk(&mut self) -> String {
        let mut size = String::new();
        self.stream.read_line(&mut size).await.unwrap();
        let mut chunk = vec![0; usize::from_str_radix(size.trim_end(), 16).unwrap() + 2];
        self.stream.read_exact(&mut chunk).await.unwrap();
        String::from_utf8(chunk).unwrap().trim_end().to_owned()
    }

    /// What comes until the server has closed its side.
    async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.unwrap();
        rest
    }
}

/// A body that is what is sent to it.
struct Fed(UnboundedReceiver<&'static str>);

impl Body for Fed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|text| text.map(|text| Ok(Frame::data(Bytes::from_static(text.as_bytes())))))
    }
}

/// A client whose first answer is streamed, and what feeds it. Later answers are whole.
fn streaming(pipe_bytes: usize) -> (Client, UnboundedSender<&'static str>) {
    let (feed, food) = unbounded_channel();
    let first = Mutex::new(Some(Fed(food)));
    let client = Client::connect(pipe_bytes, move |_| {
        let body = first.lock().unwrap().take();
        async move {
            match body {
                Some(body) => reply::streamed(StatusCode::OK, "text/plain", body),
                None => reply::text(StatusCode::OK, "whole"),
            }
        }
    });
    (client, feed)
}

async fn hello(_: Request<Incoming>) -> Reply {
    reply::text(StatusCode::OK, "hello")
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_ends_is_cut_off_long_before_an_idle_connection_is() {
    let mut client = Client::connect(1024, hello);
    let start = Instant::now();
    client.send(b"GET / HTTP/1.1\r\n").await;
    assert_eq!(client.rest().await, b"");
    // The clock is paused and moves only when everybody waits: the wait was exactly the limit of a head.
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(client.counts.connection_errors.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_in_drops_is_cut_off_too() {
    let mut client = Client::connect(1024, hello);
    let start = Instant::now();
    client.send(b"GET / HTTP/1.1\r\n").await;
    for _ in 0..20 {
        tokio::time::advance(Duration::from_secs(1)).await;
        // Once the server has hung up the pipe is broken, which is what this waits for.
        let _ = client.stream.get_mut().write_all(b"a: b\r\n").await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.rest().await, b"");
    // No later than the last drop; an idle connection would have had until second 100.
    assert_eq!(start.elapsed().as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_lie_idle_between_requests_but_not_for_ever() {
    let mut client = Client::connect(1024, hello);
    client.send(GET).await;
    assert_eq!(client.answer().await.1, "hello\n");
    tokio::time::advance(Duration::from_mins(1)).await;
    client.send(GET).await;
    assert_eq!(client.answer().await.1, "hello\n");
    let start = Instant::now();
    assert_eq!(client.rest().await, b"");
    assert_eq!(start.elapsed().as_secs(), 100);
    assert_eq!(client.counts.connection_errors.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_its_answer_is_cut_off() {
    let mut client =
        Client::connect(64, |_| async { reply::bytes(StatusCode::OK, "text/plain", vec![b'x'; 100_000].into()) });
    client.send(GET).await;
    // Also on the paused clock: without the bound this would wait for ever.
    tokio::time::timeout(Duration::from_hours(1), client.served).await.unwrap().unwrap();
    assert_eq!(client.counts.connection_errors.get(), 1);
}

#[tokio::test]
async fn a_pipelined_request_gets_its_own_answer() {
    let mut client =
        Client::connect(
            1024,
            |request: Request<Incoming>| async move { reply::text(StatusCode::OK, request.uri().path()) },
        );
    client.send(b"GET /a HTTP/1.1\r\nhost: x\r\n\r\nGET /b HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(client.answer().await.1, "/a\n");
    assert_eq!(client.answer().await.1, "/b\n");
}

#[tokio::test]
async fn a_handler_that_panics_is_counted_and_answered() {
    let mut client = Client::connect(1024, |_| async { panic!("on purpose") });
    client.send(GET).await;
    let (head, body) = client.answer().await;
    assert!(head.starts_with("HTTP/1.1 500 "), "{head}");
    assert!(!body.contains("purpose"), "{body}");
    assert_eq!(client.counts.panics.get(), 1);
}

#[tokio::test]
async fn garbage_gets_a_well_formed_answer_and_a_close() {
    let mut client = Client::connect(1024, hello);
    client.send(b"\x16\x03\x01\x02\x00 garbage\r\n\r\n").await;
    assert!(client.rest().await.starts_with(b"HTTP/1.1 400 "));
}

#[tokio::test]
async fn a_retiring_server_answers_and_asks_its_client_to_move_on() {
    let mut client = Client::connect(1024, hello);
    client.phases.retire.cancel();
    client.send(GET).await;
    let (head, _) = client.answer().await;
    assert!(head.contains("connection: close\r\n"), "{head}");
    assert_eq!(client.rest().await, b"");
}

#[tokio::test]
async fn closing_ends_an_idle_connection() {
    let mut client = Client::connect(1024, hello);
    client.send(GET).await;
    client.answer().await;
    client.phases.close.cancel();
    assert_eq!(client.rest().await, b"");
}

#[tokio::test(start_paused = true)]
async fn closing_lets_a_new_connection_ask_once() {
    let mut asks = Client::connect(1024, hello);
    let mut is_silent = Client::connect(1024, hello);
    for client in [&asks, &is_silent] {
        client.phases.retire.cancel();
        client.phases.close.cancel();
    }
    tokio::time::advance(FIRST_REQUEST_GRACE / 2).await;
    asks.send(GET).await;
    assert_eq!(asks.answer().await.1, "hello\n");
    assert_eq!(asks.rest().await, b"");
    assert_eq!(is_silent.rest().await, b"");
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_say_nothing_for_as_long_as_it_likes_and_the_next_request_begins_afresh() {
    let (mut client, feed) = streaming(1024);
    client.send(GET).await;
    assert!(client.head().await.contains("transfer-encoding: chunked\r\n"));
    // The client may have begun its next request by then; nobody looks at it before the stream has ended.
    client.send(b"GET / HT").await;
    tokio::time::sleep(Duration::from_hours(24)).await;
    feed.send("late").unwrap();
    assert_eq!(client.chunk().await, "late");
    drop(feed);
    assert_eq!(client.chunk().await, "");
    client.send(b"TP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(client.answer().await.1, "whole\n");
    let start = Instant::now();
    client.send(b"GET").await;
    assert_eq!(client.rest().await, b"");
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn after_a_stream_a_head_has_its_deadline_again() {
    let (mut client, feed) = streaming(1024);
    client.send(GET).await;
    client.head().await;
    drop(feed);
    assert_eq!(client.chunk().await, "");
    let start = Instant::now();
    client.send(b"GET").await;
    assert_eq!(client.rest().await, b"");
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_its_client_does_not_read_is_cut_off() {
    let (mut client, feed) = streaming(64);
    client.send(GET).await;
    for _ in 0..100 {
        feed.send("0123456789").unwrap();
    }
    tokio::time::timeout(Duration::from_hours(1), client.served).await.unwrap().unwrap();
    assert_eq!(client.counts.connection_errors.get(), 1);
    assert!(feed.is_closed());
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_ends_it_and_that_is_no_fault() {
    let (mut client, feed) = streaming(1024);
    client.send(GET).await;
    client.head().await;
    drop(client.stream);
    feed.closed().await;
    client.served.await.unwrap();
    assert_eq!(client.counts.connection_errors.get(), 0);
}

#[tokio::test]
async fn a_stream_that_panics_is_counted_and_broken_off() {
    struct Panics;

    impl Body for Panics {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            panic!("on purpose")
        }
    }

    let mut client = Client::connect(1024, |_| async { reply::streamed(StatusCode::OK, "text/plain", Panics) });
    client.send(GET).await;
    let rest = String::from_utf8(client.rest().await).unwrap();
    assert!(!rest.ends_with("0\r\n\r\n"), "{rest}");
    client.served.await.unwrap();
    assert_eq!((client.counts.panics.get(), client.counts.connection_errors.get()), (1, 1));
}

const SWITCH: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";

/// Switches to a protocol that sends back what it gets, what came early too.
async fn echo(_: Request<Incoming>) -> Reply {
    let reply = reply::switching(|mut upgraded: Upgraded| async move {
        upgraded.stream.write_all(&upgraded.read_ahead).await.unwrap();
        let mut bytes = [0; 16];
        while let Ok(count @ 1..) = upgraded.stream.read(&mut bytes).await {
            upgraded.stream.write_all(&bytes[..count]).await.unwrap();
        }
    });
    reply::with_header(reply, UPGRADE, "echo")
}

#[tokio::test(start_paused = true)]
async fn another_protocol_has_the_connection_for_as_long_as_it_likes() {
    let mut client = Client::connect(1024, echo);
    client.phases.retire.cancel();
    client.send(&[SWITCH, b"early"].concat()).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("connection: upgrade\r\n"), "{head}");
    let mut bytes = [0; 5];
    client.stream.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"early");
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_hours(1)).await;
        client.send(b"later").await;
        client.stream.read_exact(&mut bytes).await.unwrap();
        assert_eq!(&bytes, b"later");
    }
    drop(client.stream);
    client.served.await.unwrap();
    assert_eq!(client.counts.connection_errors.get(), 0);
}

#[tokio::test]
async fn another_protocol_that_panics_is_counted() {
    let mut client = Client::connect(1024, |_| async { reply::switching(|_| async { panic!("on purpose") }) });
    client.send(SWITCH).await;
    client.head().await;
    assert_eq!(client.rest().await, b"");
    client.served.await.unwrap();
    assert_eq!(client.counts.panics.get(), 1);
}
