use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_runtime::http::{Limits, Phases};
use futures_util::StreamExt as _;
use http::Request;
use hyper::body::Incoming;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use super::super::call::query_value;
use super::super::testing::{Client, serve};
use super::super::websocket::Asked;
use super::*;
use crate::session::hub::{Limits as Kept, Stream};
use crate::wire::TerminalSize;

/// Serves a hub's terminal on every path; gives what clients type.
async fn served(hub: &Arc<Hub>, limits: Limits) -> (SocketAddr, Phases, mpsc::Receiver<TerminalInput>) {
    served_as(Io::Tty, hub, limits).await
}

async fn served_as(io: Io, hub: &Arc<Hub>, limits: Limits) -> (SocketAddr, Phases, mpsc::Receiver<TerminalInput>) {
    let (input, typed) = mpsc::channel(8);
    let close = CancellationToken::new();
    let (hub, its_close) = (Arc::clone(hub), close.clone());
    let (address, phases) = serve(limits, move |request: Request<Incoming>| {
        let (head, _) = request.into_parts();
        let after = query_value(head.uri.query(), "lastSeq").map_or(0, |seq| seq.parse().unwrap());
        let reply = match Asked::by(&head) {
            Err(refusal) => refusal.reply(),
            Ok(asked) => match Terminal::read(&hub, after) {
                None => asked.refuse(Close::Over),
                Some(terminal) => {
                    let (input, close) = (input.clone(), its_close.clone());
                    asked.answer(move |socket| async move { talk(socket, terminal, "app", io, input, close).await })
                }
            },
        };
        std::future::ready(reply)
    })
    .await;
    let closing = phases.close.clone();
    tokio::spawn(async move {
        closing.cancelled().await;
        close.cancel();
    });
    (address, phases, typed)
}

async fn connect(address: SocketAddr, path: &str) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    tokio_tungstenite::client_async(format!("ws://x{path}"), stream).await.unwrap().0
}

async fn next(client: &mut WebSocketStream<TcpStream>) -> Message {
    client.next().await.unwrap().unwrap()
}

async fn closed(client: &mut WebSocketStream<TcpStream>) -> u16 {
    loop {
        if let Message::Close(Some(CloseFrame { code, .. })) = next(client).await {
            return code.into();
        }
    }
}

fn frame(seq: u32, stream: u8, text: &str) -> Message {
    Message::binary([&seq.to_be_bytes()[..], &[stream], text.as_bytes()].concat())
}

fn seq(number: u32) -> Message {
    Message::text(format!(r#"{{"type":"seq","seq":{number},"app":"app","io":"tty"}}"#))
}

#[tokio::test]
async fn buf_05_bytes_are_replayed_and_then_come_as_they_are_written_until_the_end() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    hub.output(Stream::Tty, b"one");
    let (address, _, _typed) = served(&hub, Limits::default()).await;
    let mut client = connect(address, "/").await;
    assert_eq!(next(&mut client).await, seq(0));
    assert_eq!(next(&mut client).await, frame(1, 0, "one"));
    hub.output(Stream::Stdout, b"two");
    assert_eq!(next(&mut client).await, frame(2, 1, "two"));
    let mut later = connect(address, "/?lastSeq=1").await;
    assert_eq!(next(&mut later).await, seq(1));
    assert_eq!(next(&mut later).await, frame(2, 1, "two"));
    hub.output(Stream::Stderr, b"three");
    hub.finish();
    for client in [&mut client, &mut later] {
        assert_eq!(next(client).await, frame(3, 2, "three"));
        assert_eq!(closed(client).await, 1000);
    }
}

#[tokio::test]
async fn a_terminal_that_is_over_is_replayed_and_closed_with_4410_where_there_is_nothing() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    hub.output(Stream::Tty, b"one");
    hub.finish();
    let (address, _, _typed) = served(&hub, Limits::default()).await;
    let mut client = connect(address, "/").await;
    assert_eq!(next(&mut client).await, seq(0));
    assert_eq!(next(&mut client).await, frame(1, 0, "one"));
    assert_eq!(closed(&mut client).await, 1000);
    assert_eq!(closed(&mut connect(address, "/?lastSeq=1").await).await, 4410);
    // A number of another process, whose clock was ahead: all there is, and the client is told to begin again.
    assert_eq!(next(&mut connect(address, "/?lastSeq=9").await).await, seq(0));
}

#[tokio::test]
async fn what_is_not_kept_any_more_is_told_as_a_gap() {
    let hub = Arc::new(Hub::new(Kept { events: 1, bytes: 1 }, 1));
    hub.output(Stream::Tty, b"one");
    hub.output(Stream::Tty, b"two");
    let (address, _, _typed) = served(&hub, Limits::default()).await;
    let mut client = connect(address, "/").await;
    assert_eq!(next(&mut client).await, seq(0));
    assert_eq!(next(&mut client).await, Message::text(r#"{"type":"gap","reason":"buffer_evicted"}"#));
    assert_eq!(next(&mut client).await, frame(2, 0, "two"));
}

#[tokio::test]
async fn what_is_typed_arrives_in_order_and_of_sizes_only_the_last_and_nonsense_is_ignored() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    let (address, _, mut typed) = served(&hub, Limits::default()).await;
    let mut client = connect(address, "/").await;
    for text in ["nonsense", "{}", r#"{"type":"resize"}"#, r#"{"type":"resize","cols":"8","rows":9}"#] {
        client.send(Message::text(text)).await.unwrap();
    }
    client.send(Message::binary(&b"ls\r"[..])).await.unwrap();
    assert_eq!(typed.recv().await, Some(TerminalInput::Bytes(Bytes::from_static(b"ls\r"))));
    for columns in 1..=200 {
        client.send(Message::text(format!(r#"{{"type":"resize","cols":{columns}.9,"rows":1e9}}"#))).await.unwrap();
    }
    let mut sizes = 0;
    loop {
        let Some(TerminalInput::Size(TerminalSize { columns, rows })) = typed.recv().await else { panic!() };
        assert_eq!(rows, 10_000);
        sizes += 1;
        if columns == 200 {
            break;
        }
    }
    assert!(sizes < 100, "{sizes}");
    // A terminal that has ended takes nothing, and the client is told nothing of it.
    drop(typed);
    client.send(Message::binary(&b"exit\r"[..])).await.unwrap();
    hub.output(Stream::Tty, b"still there");
    assert_eq!(next(&mut client).await, seq(0));
    assert_eq!(next(&mut client).await, frame(1, 0, "still there"));
}

#[tokio::test]
async fn pty_04_a_size_is_refused_where_output_is_told_apart() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    let (address, _, mut typed) = served_as(Io::Streams, &hub, Limits::default()).await;
    let mut client = connect(address, "/").await;
    assert_eq!(next(&mut client).await, Message::text(r#"{"type":"seq","seq":0,"app":"app","io":"streams"}"#));
    client.send(Message::text(r#"{"type":"resize","cols":80,"rows":24}"#)).await.unwrap();
    let refused = r#"{"type":"error","error":"resize_unsupported","io":"streams"}"#;
    assert_eq!(next(&mut client).await, Message::text(refused));
    client.send(Message::binary(&b"on\n"[..])).await.unwrap();
    assert_eq!(typed.recv().await, Some(TerminalInput::Bytes(Bytes::from_static(b"on\n"))));
}

#[tokio::test]
async fn a_client_that_types_and_does_not_read_is_heard() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    let (address, _, mut typed) = served(&hub, Limits::default()).await;
    let mut client = connect(address, "/").await;
    // More than all buffers between the two hold.
    for _ in 0..200 {
        hub.output(Stream::Tty, &vec![b'x'; 64 * 1024]);
    }
    for _ in 0..20 {
        client.send(Message::binary(&b"\x03"[..])).await.unwrap();
        assert_eq!(typed.recv().await, Some(TerminalInput::Bytes(Bytes::from_static(b"\x03"))));
    }
}

#[tokio::test]
async fn a_socket_that_takes_nothing_is_closed() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    let limits = Limits { write: Duration::from_millis(100), ..Limits::default() };
    let (address, _, _typed) = served(&hub, limits).await;
    let client = connect(address, "/").await;
    assert_eq!(hub.readers(), 1);
    while hub.readers() > 0 {
        hub.output(Stream::Tty, &vec![b'x'; 64 * 1024]);
        tokio::task::yield_now().await;
    }
    drop(client);
}

#[tokio::test]
async fn a_client_that_leaves_is_a_reader_no_more_and_a_server_that_closes_says_so() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    let (address, phases, _typed) = served(&hub, Limits::default()).await;
    let mut leaves = connect(address, "/").await;
    let mut stays = connect(address, "/").await;
    assert_eq!(next(&mut leaves).await, seq(0));
    assert_eq!(next(&mut stays).await, seq(0));
    leaves.close(None).await.unwrap();
    while hub.readers() > 1 {
        tokio::task::yield_now().await;
    }
    phases.close.cancel();
    // Not one of those after which a client of the contract stays away: 1000, 1001, 1005, 4403, 4404, 4410.
    assert_eq!(closed(&mut stays).await, 1012);
}

#[tokio::test]
async fn what_asks_for_no_websocket_is_told_so() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    let (address, _, _typed) = served(&hub, Limits::default()).await;
    let good = "connection: keep-alive, Upgrade\r\nupgrade: WebSocket\r\nsec-websocket-version: 13\r\n\
                sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (from, to) in [
        ("keep-alive, Upgrade", "keep-alive"),
        ("WebSocket", "h2c"),
        (": 13", ": 8"),
        ("dGhlIHNhbXBsZSBub25jZQ==", "short"),
        ("sec-websocket-key", "x-other"),
        ("upgrade:", "content-length: 0\r\nupgrade:"),
    ] {
        let head = Client::get(address, "/", &good.replace(from, to)).await.head().await;
        assert!(head.starts_with("HTTP/1.1 426 ") && head.contains("upgrade: websocket\r\n"), "{head}");
    }
    // What answers GET answers HEAD, and a WebSocket cannot follow that.
    let mut client = Client::connect(address).await;
    client.send(format!("HEAD / HTTP/1.1\r\nhost: x\r\n{good}\r\n").as_bytes()).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 426 "), "{head}");
    let head = Client::get(address, "/", good).await.head().await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    // The example of RFC 6455.
    assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
}

#[tokio::test]
async fn frames_that_break_the_rules_and_messages_without_end_close_the_socket() {
    let hub = Arc::new(Hub::new(Kept::default(), 1));
    let (address, _, mut typed) = served(&hub, Limits::default()).await;
    let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                   sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for bad in [
        // Not masked; of a kind that is not there; of more than a message may have.
        &b"\x82\x01x"[..],
        b"\x8f\x80\0\0\0\0",
        b"\x82\xff\0\0\0\0\x7f\xff\xff\xff\0\0\0\0",
    ] {
        let mut client = Client::get(address, "/", upgrade).await;
        client.head().await;
        client.send(bad).await;
        while hub.readers() > 0 {
            tokio::task::yield_now().await;
        }
    }
    assert!(typed.try_recv().is_err());
}
