//! The real program, its life and its clients.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a helper fails the test")]

mod cluster;
mod load;
mod program;
mod sessions;

use std::fs;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use program::{Program, get, run};

const TOKEN: &str = "token-0123456789-0123456789";
const GOOD: &str = "HTTP/1.1 200 OK\r\n";

#[tokio::test]
async fn it_serves_until_it_is_asked_to_stop_and_says_so() {
    let mut program = Program::start(&["--auth=none", "--drain-delay=0s"]).await;
    assert!(program.get("/v1/health", "").await.starts_with(GOOD));
    assert!(program.admin("/livez").await.starts_with(GOOD));
    assert!(program.admin("/readyz").await.starts_with(GOOD));
    let metrics = program.admin("/metrics").await;
    assert!(metrics.contains("cofferdam_api_requests_total{code=\"200\",route=\"/v1/health\"} 1"), "{metrics}");
    assert!(program.lines.iter().any(|line| line.contains("--auth=none")), "said loudly");
    program.terminate().await;
    assert!(program.end().await.success());
    assert!(program.lines.iter().any(|line| line.contains("\"drained\"")));
}

#[tokio::test]
async fn a_start_that_cannot_be_meant_is_refused_in_words() {
    let (code, said) = run(&["--default-image=i"]).await;
    assert_eq!(code, 64);
    assert!(said.contains("--token-file"), "{said}");
    let (code, said) = run(&["--default-image=i", "--token-file=/nowhere/token"]).await;
    assert_eq!(code, 64);
    assert!(said.contains("/nowhere/token"), "{said}");
}

#[tokio::test]
async fn b101_tokens_are_taken_up_when_their_file_changes_and_are_in_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, TOKEN).unwrap();
    let flag = format!("--token-file={}", path.display());
    let mut program =
        Program::start(&[&flag, "--token-poll-interval=10ms", "--log-filter=trace", "--drain-delay=0s"]).await;
    assert!(program.get("/v1/health", "").await.starts_with(GOOD));
    program.get(&format!("/v1/health?access_token={TOKEN}"), &format!("authorization: Bearer {TOKEN}\r\n")).await;
    fs::write(&path, "another-0123456789-0123456789").unwrap();
    program.logged("new tokens are accepted").await;
    fs::write(&path, "short").unwrap();
    program.logged("the tokens were not replaced, the old ones are still accepted").await;
    assert!(program.admin("/readyz").await.contains("ok; degraded: tokens"));
    program.terminate().await;
    assert!(program.end().await.success());
    for secret in [TOKEN, "another-0123456789", "short"] {
        let line = program.lines.iter().find(|line| line.contains(secret));
        assert_eq!(line, None);
    }
}

#[tokio::test]
async fn bad_clients_are_answered_and_the_next_good_one_does_not_notice() {
    let program = Program::start(&["--auth=none"]).await;
    for (request, status) in [
        (b"garbage\r\n\r\n".to_vec(), "400"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n".to_vec(), "400"),
        (format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(100_000)).into_bytes(), "414"),
        ([&b"GET / HTTP/1.1\r\n"[..], &b"a: b\r\n".repeat(20_000)].concat(), "431"),
        (get("/%ff%00", "").into_bytes(), "404"),
        (get("/v1/health", &format!("origin: {}\r\n", "x".repeat(10_000))).into_bytes(), "200"),
        (get("/v1/health", "authorization: \u{1}\r\n").into_bytes(), "400"),
        (b"POST /v1/health HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{}".to_vec(), "404"),
    ] {
        let answer = program.exchange(&request).await;
        let described = String::from_utf8_lossy(&request[..request.len().min(40)]).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{described}: {answer}");
        assert!(program.get("/v1/health", "").await.starts_with(GOOD), "{described}");
    }
}

#[tokio::test]
async fn connections_that_are_held_keep_nobody_out_and_cost_little() {
    let program = Program::start(&["--auth=none", "--connections=64"]).await;
    let mut held = Vec::new();
    for number in 0..500 {
        let mut stream = TcpStream::connect(program.address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET /v1/health HTTP/1.1\r\n").await.unwrap();
        }
        held.push(stream);
    }
    assert!(program.get("/v1/health", "").await.starts_with(GOOD));
    assert!(program.peak_mebibytes() < 64, "{} MiB", program.peak_mebibytes());
}

#[tokio::test]
async fn the_quota_is_made_of_the_policy_that_is_named() {
    let (code, said) = run(&["quota", "--policy=/nowhere/policy.yaml"]).await;
    assert_eq!(code, 64);
    assert!(said.contains("/nowhere/policy.yaml"), "{said}");
    let (code, _) = run(&["quota", "--sessions=3"]).await;
    assert_eq!(code, 0);
}
