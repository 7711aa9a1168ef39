//! Many sessions at once, many clients, and such as take nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::program::Program;
use crate::sessions::{begun, events_until, frame, wanted};

/// How many places there are where nobody says otherwise.
const PLACES: usize = 32;

/// So many are begun at a time, and so many wait for that; whoever comes beyond is sent away.
const TURNS: usize = 8 + 64;

/// How often it is looked at what has to come about.
const POLL: Duration = Duration::from_millis(20);

/// Asks for that many sessions at the same time: the ids of those that were promised, and the whole answers to others.
async fn at_once(program: &Program, count: usize) -> (BTreeSet<String>, Vec<String>) {
    let wanted = wanted();
    let request = format!(
        "POST /v1/sessions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{wanted}",
        wanted.len()
    );
    let answers = join_all((0..count).map(|_| program.exchange(request.as_bytes()))).await;
    let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.starts_with("HTTP/1.1 201 "));
    let id = |answer: &String| {
        let created: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        created["sessionId"].as_str().unwrap().to_owned()
    };
    let ids: Vec<String> = made.iter().map(id).collect();
    let set: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(set.len(), ids.len(), "no two have one id");
    (set, refused)
}

/// The terminal of a session from that number on.
async fn terminal(program: &Program, id: &str, last: u32) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(program.address).await.unwrap();
    let url = format!("ws://x/v1/sessions/{id}/io?lastSeq={last}");
    tokio_tungstenite::client_async(url, stream).await.unwrap().0
}

/// How many streams of a kind are open.
async fn open(program: &Program, stream: &str) -> String {
    let metrics = program.admin("/metrics").await;
    let sample = format!("cofferdam_api_open_streams{{stream=\"{stream}\"}} ");
    metrics.lines().find_map(|line| line.strip_prefix(&sample)).unwrap().to_owned()
}

/// A program writes that.
async fn writes(attached: &mut crate::cluster::Terminal, bytes: &[u8]) {
    attached.send(Message::Binary([b"\x01", bytes].concat().into())).await.unwrap();
}

#[tokio::test]
async fn of_fifty_sessions_at_once_as_many_as_there_are_places_are_made_and_none_twice() {
    let program = Program::start(&["--auth=none"]).await;
    let (made, refused) = at_once(&program, 50).await;
    assert_eq!((made.len(), refused.len()), (PLACES, 50 - PLACES));
    for answer in &refused {
        assert!(answer.starts_with("HTTP/1.1 409 ") && answer.contains("\"too_many_sessions\""), "{answer}");
    }
    for id in &made {
        let pod = format!("pods/run-{id}");
        assert!(program.cluster.object(&pod).is_some() && program.cluster.object(&format!("secrets/s-{id}")).is_some());
        program.cluster.merge(&pod, &json!({"status": {"phase": "Running"}}));
        events_until(&program, id, 0, "\"running\"").await;
    }
    assert_eq!(program.cluster.count("pods"), PLACES);
}

#[tokio::test]
async fn who_asks_when_too_much_is_begun_is_told_to_come_again_and_what_was_promised_is_made() {
    let program = Program::start(&["--auth=none"]).await;
    // Nothing is begun that fast that it is over before all have asked.
    program.cluster.breaks(true);
    let (made, refused) = at_once(&program, TURNS + 48).await;
    program.cluster.breaks(false);
    assert_eq!(made.len(), PLACES);
    let (full, overloaded): (Vec<_>, Vec<_>) = refused.iter().partition(|it| it.starts_with("HTTP/1.1 409 "));
    assert!(full.iter().all(|answer| answer.contains("\"too_many_sessions\"")), "{full:?}");
    assert!(!overloaded.is_empty());
    for answer in overloaded {
        assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("\"overloaded\""), "{answer}");
        assert!(answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    }
    while !made.iter().all(|id| program.cluster.object(&format!("pods/run-{id}")).is_some()) {
        sleep(POLL).await;
    }
    assert_eq!(program.cluster.count("pods"), PLACES);
}

#[tokio::test]
async fn a_client_that_comes_back_a_hundred_times_gets_each_event_and_each_byte_once() {
    const TIMES: u32 = 100;
    let mut program = Program::start(&["--auth=none"]).await;
    let (id, pod) = begun(&program).await;
    program.cluster.merge(&pod, &json!({"status": {"phase": "Running"}}));
    let mut attached = program.cluster.attached.recv().await.unwrap();
    let mut read = String::new();
    for last in 0..TIMES {
        // Sometimes it is there already, and sometimes it comes.
        let line = format!("line {last}\n");
        if last % 2 == 0 {
            writes(&mut attached, line.as_bytes()).await;
        }
        let mut terminal = terminal(&program, &id, last).await;
        if last % 2 == 1 {
            writes(&mut attached, line.as_bytes()).await;
        }
        let (number, bytes) = frame(&mut terminal).await;
        assert_eq!(number, last + 1);
        read.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    let written: Vec<_> = (0..TIMES).map(|line| format!("line {line}\n")).collect();
    assert_eq!(read, written.concat());

    assert_eq!(program.ask("DELETE", &format!("/v1/sessions/{id}"), "").await.0, 204);
    let ids =
        |text: &str| text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect::<Vec<u64>>();
    let all = ids(&events_until(&program, &id, 0, "\"stopped\"").await);
    assert!(all.len() > 2 && all.iter().copied().eq(1..=all.len() as u64), "{all:?}");
    for time in 0..u64::from(TIMES) {
        let last = time % all.len() as u64;
        let rest = ids(&events_until(&program, &id, last, "\"stopped\"").await);
        assert!(rest.iter().copied().eq(last + 1..=all.len() as u64), "after {last}: {rest:?}");
    }
}

#[tokio::test]
async fn d15_clients_that_never_read_are_cut_off_hold_nothing_and_others_are_served() {
    let mut program = Program::start(&["--auth=none", "--replay-bytes=2000000"]).await;
    let (id, pod) = begun(&program).await;
    program.cluster.merge(&pod, &json!({"status": {"phase": "Running"}}));
    let mut attached = program.cluster.attached.recv().await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..5 {
        let mut stream = TcpStream::connect(program.address).await.unwrap();
        let request = format!(
            "GET /v1/sessions/{id}/io HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    let mut events = TcpStream::connect(program.address).await.unwrap();
    let request = format!("GET /v1/sessions/{id}/events HTTP/1.1\r\nhost: x\r\n\r\n");
    events.write_all(request.as_bytes()).await.unwrap();
    while open(&program, "io").await != "5" || open(&program, "events").await != "1" {
        sleep(POLL).await;
    }

    // More than the sockets of a machine take on the way, as Linux has them, while one reads all of it.
    let mut other = terminal(&program, &id, 0).await;
    let part = Bytes::from(vec![b'x'; 32 * 1024]);
    for number in 1..=512 {
        writes(&mut attached, &part).await;
        assert_eq!(frame(&mut other).await, (number, part.clone()));
    }
    while open(&program, "io").await != "1" {
        sleep(POLL).await;
    }
    assert!(program.peak_mebibytes() < 64, "{} MiB", program.peak_mebibytes());
    for mut stream in silent {
        // What was on its way comes, and no farewell: the end of a connection that was reset is an end too.
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text).await;
        assert!(text.starts_with(b"HTTP/1.1 101 ") || text.is_empty());
    }

    // The events are not more than it could take, and it takes them now.
    assert_eq!(open(&program, "events").await, "1");
    assert_eq!(program.ask("DELETE", &format!("/v1/sessions/{id}"), "").await.0, 204);
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains("\"stopped\"") {
        assert!(events.read_buf(&mut text).await.unwrap() > 0);
    }
    let closed = loop {
        if let Message::Close(frame) = other.next().await.unwrap().unwrap() {
            break frame.unwrap();
        }
    };
    assert_eq!(u16::from(closed.code), 1000);
}
