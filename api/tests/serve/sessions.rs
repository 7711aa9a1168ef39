//! Sessions, from a client's first request to their end, in a cluster that a test plays.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::TOKEN;
use crate::program::{Program, exchange, get};

pub(crate) fn wanted() -> String {
    json!({
        "bundle": {"entryRelativePath": "app.yaml", "files": [{"relativePath": "app.yaml", "contents": "kind: App"}]},
        "env": {"KEY": "hunter2"},
        "ports": [],
        "inspect": true,
        "config": {"image": "i", "pullPolicy": "missing"},
    })
    .to_string()
}

/// A session that was asked for: its id, and its pod.
pub(crate) async fn begun(program: &Program) -> (String, String) {
    let (status, created) = program.ask("POST", "/v1/sessions", &wanted()).await;
    assert_eq!(status, 201, "{created}");
    let id = created["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(created["streamUrl"], format!("/v1/sessions/{id}/events"));
    let pod = format!("pods/run-{id}");
    (id, pod)
}

/// Reads a session's events from the last one that is known, up to one that holds `text`.
pub(crate) async fn events_until(program: &Program, id: &str, last: u64, text: &str) -> String {
    read_until(program, &format!("/v1/sessions/{id}/events?lastEventId={last}"), text).await
}

/// Reads a stream up to `text`.
async fn read_until(program: &Program, path: &str, text: &str) -> String {
    let mut stream = TcpStream::connect(program.address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    loop {
        let length = stream.read_buf(&mut read).await.unwrap();
        let so_far = String::from_utf8_lossy(&read);
        if so_far.contains(text) {
            return so_far.into_owned();
        }
        assert!(length > 0, "no {text} in {so_far}");
    }
}

/// The next binary frame of a terminal: its number, and what was written.
pub(crate) async fn frame<S>(terminal: &mut tokio_tungstenite::WebSocketStream<S>) -> (u32, Bytes)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        if let Message::Binary(bytes) = terminal.next().await.unwrap().unwrap() {
            assert_eq!(bytes[4], 0, "it is a terminal's");
            return (u32::from_be_bytes(bytes[..4].try_into().unwrap()), bytes.slice(5..));
        }
    }
}

#[tokio::test]
async fn a_session_from_its_request_to_the_end_of_its_retention() {
    let mut program = Program::start(&["--auth=none", "--retention=1s", "--drain-delay=0s"]).await;
    assert_eq!(
        program.ask("POST", "/v1/probe", r#"{"config": {"image": "i", "pullPolicy": "missing"}}"#).await.1["status"],
        "ready"
    );
    let (id, pod) = begun(&program).await;
    let made = program.cluster.object(&pod).unwrap();
    assert_eq!(made["spec"]["containers"][0]["env"][0]["valueFrom"]["secretKeyRef"]["key"], "env-0");
    assert!(!made.to_string().contains("hunter2"), "{made}");
    let secret = program.cluster.object(&format!("secrets/s-{id}")).unwrap();
    let token = String::from_utf8(STANDARD.decode(secret["data"]["token"].as_str().unwrap()).unwrap()).unwrap();

    // The pod fetches its body, and another one does not.
    let path = format!("/internal/bundles/{id}");
    for (name, status) in [(format!("run-{id}"), "200"), ("run-other".to_owned(), "404")] {
        let headers = format!("authorization: Bearer {token}\r\nx-cofferdam-identity: {name}\r\n");
        let request = get(&path, &headers);
        let mut stream = TcpStream::connect(program.bodies_address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(format!("HTTP/1.1 {status} ").as_bytes()), "{name}");
    }
    assert!(exchange(program.bodies_address, get("/v1/health", "").as_bytes()).await.starts_with("HTTP/1.1 404 "));

    // It runs, and writes and reads.
    program.cluster.logs("before\n");
    program.cluster.merge(&pod, &json!({"status": {"phase": "Running"}}));
    let told = events_until(&program, &id, 0, "\"running\"").await;
    assert!(
        told.contains("id: 1\nevent: status\ndata: {\"type\":\"status\",\"status\":{\"kind\":\"starting\"}}"),
        "{told}"
    );
    let stream = TcpStream::connect(program.address).await.unwrap();
    let url = format!("ws://x/v1/sessions/{id}/io?lastSeq=0");
    let (mut terminal, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    assert_eq!(frame(&mut terminal).await, (1, Bytes::from_static(b"before\r\n")));
    let mut attached = program.cluster.attached.recv().await.unwrap();
    attached.send(Message::Binary(Bytes::from_static(b"\x01> "))).await.unwrap();
    assert_eq!(frame(&mut terminal).await, (2, Bytes::from_static(b"> ")));
    terminal.send(Message::Binary(Bytes::from_static(b"hi"))).await.unwrap();
    let typed = loop {
        if let Message::Binary(bytes) = attached.next().await.unwrap().unwrap() {
            break bytes;
        }
    };
    assert_eq!(&typed[..], b"\x00hi");
    let (status, session) = program.ask("GET", &format!("/v1/sessions/{id}"), "").await;
    assert_eq!((status, &session["status"]["kind"]), (200, &json!("running")));

    // It is stopped, and kept for a second.
    assert_eq!(program.ask("DELETE", &format!("/v1/sessions/{id}"), "").await.0, 204);
    assert_eq!(program.cluster.object(&pod), None);
    events_until(&program, &id, 0, "\"stopped\"").await;
    loop {
        if let Message::Close(Some(frame)) = terminal.next().await.unwrap().unwrap() {
            break assert_eq!(u16::from(frame.code), 1000);
        }
    }
    while program.ask("GET", &format!("/v1/sessions/{id}"), "").await.0 != 404 {
        tokio::task::yield_now().await;
    }
    while program.cluster.object(&format!("secrets/s-{id}")).is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(program.ask("DELETE", &format!("/v1/sessions/{id}"), "").await.0, 204);
    program.terminate().await;
    assert!(program.end().await.success());
    let line = program.lines.iter().find(|line| line.contains("hunter2") || line.contains(&token));
    assert_eq!(line, None);
}

#[tokio::test]
async fn d29_sessions_outlive_the_program_and_its_next_one_goes_on_with_them() {
    let program = Program::start(&["--auth=none"]).await;
    let (id, pod) = begun(&program).await;
    program.cluster.merge(&pod, &json!({"metadata": {"creationTimestamp": "2026-01-02T03:04:05Z"}}));
    program.cluster.merge(&pod, &json!({"status": {"phase": "Running"}}));
    events_until(&program, &id, 0, "\"running\"").await;
    let cluster = program.kill().await;
    cluster.logs("written meanwhile\n");

    let program = Program::start_in(cluster, &["--auth=none", "--drain-delay=0s"]).await;
    let told = events_until(&program, &id, 2, "\"running\"").await;
    assert!(told.contains("event: gap\n"), "{told}");
    let stream = TcpStream::connect(program.address).await.unwrap();
    let url = format!("ws://x/v1/sessions/{id}/io?lastSeq=0");
    let (mut terminal, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    let (number, written) = frame(&mut terminal).await;
    assert_eq!((number > 1_000_000, written), (true, Bytes::from_static(b"written meanwhile\r\n")));
    program.terminate().await;
    loop {
        if let Message::Close(Some(frame)) = terminal.next().await.unwrap().unwrap() {
            break assert_eq!(u16::from(frame.code), 1012);
        }
    }
    assert!(program.cluster.object(&pod).is_some(), "it goes on");
}

#[tokio::test]
async fn pty_04_output_that_is_told_apart_stays_so_and_a_next_program_knows_it() {
    let mut program = Program::start(&["--auth=none"]).await;
    let mut wanted: Value = serde_json::from_str(&wanted()).unwrap();
    wanted["apps"] = json!([{"name": "web", "entryRelativePath": "app.yaml", "io": "streams"}]);
    let (status, created) = program.ask("POST", "/v1/sessions", &wanted.to_string()).await;
    assert_eq!(status, 201, "{created}");
    let id = created["sessionId"].as_str().unwrap();
    let (pod, path) = (format!("pods/run-{id}"), format!("/v1/sessions/{id}"));
    let container = program.cluster.object(&pod).unwrap()["spec"]["containers"][0].clone();
    assert_eq!((&container["tty"], &container["stdin"]), (&json!(false), &json!(true)));
    program.cluster.merge(&pod, &json!({"status": {"phase": "Running"}}));
    let mut attached = program.cluster.attached.recv().await.unwrap();
    let url = format!("ws://x{path}/io?app=web");
    let stream = TcpStream::connect(program.address).await.unwrap();
    let (mut terminal, _) = tokio_tungstenite::client_async(&url, stream).await.unwrap();
    assert_eq!(terminal.next().await.unwrap().unwrap(), told_apart(0));
    for (sent, came) in [(b"\x01one", b"\x01one"), (b"\x02two", b"\x02two")] {
        attached.send(Message::Binary(Bytes::from_static(sent))).await.unwrap();
        let Message::Binary(frame) = terminal.next().await.unwrap().unwrap() else { panic!("it is no output") };
        assert_eq!(&frame[4..], came);
    }
    let cluster = program.kill().await;
    cluster.logs("one\ntwo\n");
    let program = Program::start_in(cluster, &["--auth=none"]).await;
    let (_, session) = program.ask("GET", &path, "").await;
    assert_eq!((&session["apps"][0]["name"], &session["apps"][0]["io"]), (&json!("web"), &json!("streams")));
    let stream = TcpStream::connect(program.address).await.unwrap();
    let (mut terminal, _) = tokio_tungstenite::client_async(&url, stream).await.unwrap();
    assert_eq!(terminal.next().await.unwrap().unwrap(), told_apart(0));
    loop {
        if let Message::Binary(frame) = terminal.next().await.unwrap().unwrap() {
            // The log does not tell one from the other.
            break assert_eq!(&frame[4..], b"\x01one\ntwo\n");
        }
    }
}

/// The first frame of output that is told apart.
fn told_apart(seq: u32) -> Message {
    Message::text(format!(r#"{{"type":"seq","seq":{seq},"app":"web","io":"streams"}}"#))
}

#[tokio::test]
async fn dbg_01_events_of_a_programs_inspector_are_events_of_its_session() {
    let program = Program::start(&["--auth=none"]).await;
    // An address of this machine that nobody else listens at.
    let pod_address = "127.92.30.1";
    let inspector = TcpListener::bind((pod_address, 9230)).await.unwrap();
    let (id, pod) = begun(&program).await;
    program.cluster.merge(&pod, &json!({"status": {"phase": "Running", "podIP": pod_address}}));
    let (mut stream, _) = inspector.accept().await.unwrap();
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        assert!(stream.read_buf(&mut asked).await.unwrap() > 0, "no request");
    }
    let frames = "data: {\"kind\":\"log\",\"line\":\"no\"}\n\ndata: {\"event\":\"Kernel.Starting\"}\n\n";
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{frames}");
    stream.write_all(answer.as_bytes()).await.unwrap();
    let told = events_until(&program, &id, 0, "Kernel.Starting\"}}\n\n").await;
    let expected =
        "event: debug\ndata: {\"type\":\"debug\",\"app\":\"app\",\"frame\":{\"event\":\"Kernel.Starting\"}}\n\n";
    assert!(told.contains(expected) && !told.contains("line"), "{told}");
    assert_eq!(program.ask("DELETE", &format!("/v1/sessions/{id}"), "").await.0, 204);
    // It is let go of.
    assert_eq!(stream.read_to_end(&mut Vec::new()).await.unwrap(), 0);
}

#[tokio::test]
async fn dbg_01_nobody_is_asked_at_an_address_that_may_be_another_pods_by_now() {
    let program = Program::start(&["--auth=none"]).await;
    let (before, after) = ("127.92.30.2", "127.92.30.3");
    let stranger = TcpListener::bind((before, 9230)).await.unwrap();
    let inspector = TcpListener::bind((after, 9230)).await.unwrap();
    let (_, pod) = begun(&program).await;
    program.cluster.merge(&pod, &json!({"status": {"phase": "Running", "podIP": before}}));
    let (stream, _) = stranger.accept().await.unwrap();
    program.cluster.breaks(true);
    while !program.admin("/readyz").await.contains("sessions") {}
    drop(stream);
    assert!(timeout(Duration::from_secs(3), stranger.accept()).await.is_err(), "a stranger was asked");
    program.cluster.merge(&pod, &json!({"status": {"podIP": after}}));
    program.cluster.breaks(false);
    inspector.accept().await.unwrap();
}

#[tokio::test]
async fn d11_what_the_cluster_refuses_is_told_as_a_sentence_of_ours() {
    let program = Program::start(&["--auth=none"]).await;
    program.cluster.refuses("pods \"run-a\" is forbidden: exceeded quota: sessions, used: pods=32 of team-b");
    let (_, probed) = program.ask("POST", "/v1/probe", r#"{"config": {"image": "i", "pullPolicy": "missing"}}"#).await;
    let (id, _) = begun(&program).await;
    let told = events_until(&program, &id, 0, " (reference ").await;
    assert_eq!(probed["status"], "unavailable");
    for told in [probed["message"].as_str().unwrap(), &told] {
        assert!(told.contains("a ResourceQuota of the namespace of sessions does not allow it"), "{told}");
        assert!(!told.contains("team-b"), "{told}");
    }
    assert_eq!(program.ask("DELETE", &format!("/v1/sessions/{id}"), "").await.0, 204);
}

#[tokio::test]
async fn d11_an_end_that_the_cluster_does_not_take_is_told_and_can_be_asked_for_again() {
    let program = Program::start(&["--auth=none"]).await;
    let (id, pod) = begun(&program).await;
    program.cluster.breaks(true);
    let (status, refused) = program.ask("DELETE", &format!("/v1/sessions/{id}"), "").await;
    assert_eq!((status, &refused["error"]), (500, &json!("stop_failed")));
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.starts_with("the Kubernetes API server does not answer") && !message.contains("team-b"),
        "{message}"
    );
    program.cluster.breaks(false);
    assert!(program.cluster.object(&pod).is_some());
    assert_eq!(program.ask("DELETE", &format!("/v1/sessions/{id}"), "").await.0, 204);
    assert_eq!(program.cluster.object(&pod), None);
}

#[tokio::test]
async fn who_begins_a_session_may_give_its_streams_to_a_browser_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, TOKEN).unwrap();
    let program = Program::start(&[&format!("--token-file={}", path.display())]).await;
    for (method, path) in [("POST", "/v1/sessions"), ("POST", "/v1/probe"), ("DELETE", "/v1/sessions/abcdefghijkl")] {
        assert_eq!(program.ask(method, path, "").await.0, 401, "{path}");
    }
    let (wanted, bearer) = (wanted(), format!("authorization: Bearer {TOKEN}\r\n"));
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         {bearer}content-length: {}\r\n\r\n",
        wanted.len()
    );
    let answer = exchange(program.address, format!("{head}{wanted}").as_bytes()).await;
    let created: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let (id, token) = (created["sessionId"].as_str().unwrap(), created["streamToken"].as_str().unwrap());
    read_until(&program, &format!("/v1/sessions/{id}/events?access_token={token}"), "\"starting\"").await;
    let answer = program.get(&format!("/v1/sessions/{id}?access_token={token}"), "").await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(program.get(&format!("/v1/sessions/{id}"), &bearer).await.starts_with("HTTP/1.1 200 "));

    for object in [format!("pods/run-{id}"), format!("secrets/s-{id}")] {
        let object = program.cluster.object(&object).unwrap().to_string();
        assert!(!object.contains(token), "{object}");
    }
    std::fs::write(&path, "another-0123456789-0123456789").unwrap();
    let another = Program::start_in(program.kill().await, &[&format!("--token-file={}", path.display())]).await;
    read_until(&another, &format!("/v1/sessions/{id}/events?access_token={token}"), "\"starting\"").await;
    let answer = another.get(&format!("/v1/sessions/{id}/events?access_token={}", &token[1..]), "").await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[tokio::test]
async fn what_is_wrong_is_told_before_anything_is_begun() {
    let apps = tempfile::tempdir().unwrap();
    let file = apps.path().join("apps.yaml");
    std::fs::write(&file, "notebook: {image: private/notebook, env: {LICENSE: hunter2}}").unwrap();
    let apps_file = format!("--apps={}", file.display());
    let program = Program::start(&["--auth=none", "--sessions=1", &apps_file, "--terms-body=Be kind."]).await;
    let accepts = |request: &str| request.replace("content-type:", "x-telo-accepted-terms: TERMS\r\ncontent-type:");
    let terms = program.ask("POST", "/v1/sessions", &wanted()).await;
    assert_eq!((terms.0, &terms.1["error"]), (428, &json!("terms_required")));
    let version = terms.1["terms"]["version"].as_str().unwrap().to_owned();
    let ask = async |path: &str, body: String| -> (u16, Value) {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        let request = accepts(&head).replace("TERMS", &version) + &body;
        let answer = exchange(program.address, request.as_bytes()).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap_or_default())
    };
    let with = |change: &dyn Fn(&mut Value)| {
        let mut wanted: Value = serde_json::from_str(&wanted()).unwrap();
        change(&mut wanted);
        wanted.to_string()
    };
    for (body, status, code) in [
        ("{}".to_owned(), 400, "FST_ERR_VALIDATION"),
        (with(&|it| it["bundle"]["files"][0]["relativePath"] = json!("../a")), 400, "invalid_bundle"),
        (with(&|it| it["bundle"]["entryRelativePath"] = json!("other")), 400, "invalid_bundle"),
        (with(&|it| it["config"]["image"] = json!("other")), 400, "invalid_config"),
        (with(&|it| it["mode"] = json!("watch")), 400, "watch_disabled"),
        (with(&|it| it["env"]["BIG"] = json!("x".repeat(200_000))), 400, "FST_ERR_VALIDATION"),
        (with(&|it| it["env"]["a=b"] = json!("x")), 400, "FST_ERR_VALIDATION"),
        (with(&|it| it["extra"] = json!("x".repeat(17 << 20))), 413, "FST_ERR_CTP_BODY_TOO_LARGE"),
    ] {
        let (answered, error) = ask("/v1/sessions", body).await;
        let word = if error["code"].is_string() { &error["code"] } else { &error["error"] };
        assert_eq!((answered, word), (status, &json!(code)), "{error}");
    }
    assert_eq!(program.ask("POST", "/v1/apps/other/sessions", "{}").await.1["error"], "unknown_app");
    let (status, created) = ask("/v1/apps/notebook/sessions", r#"{"env": {"LICENSE": "mine"}}"#.to_owned()).await;
    assert_eq!(status, 201, "{created}");
    let id = created["sessionId"].as_str().unwrap();
    let pod = program.cluster.object(&format!("pods/run-{id}")).unwrap();
    assert_eq!(pod["spec"]["containers"][0]["image"], "private/notebook");
    assert_eq!(pod["metadata"]["labels"]["cofferdam.dev/profile"], "app");
    let secret = program.cluster.object(&format!("secrets/s-{id}")).unwrap();
    assert_eq!(secret["data"]["env-0"], STANDARD.encode("hunter2"));
    let (status, error) = ask("/v1/sessions", wanted()).await;
    assert_eq!((status, &error["error"]), (409, &json!("too_many_sessions")));
}
