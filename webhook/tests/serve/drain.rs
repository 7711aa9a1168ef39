//! How the program ends.

use crate::client::{plain_review, post};
use crate::program::Program;

#[tokio::test]
async fn asked_to_stop_it_turns_unready_and_goes_on_serving() {
    let mut program = Program::start(&["--drain-delay=1h"]).await;
    let mut open = program.connect().await;
    open.good_request().await;
    program.terminate().await;
    program.logged("unready, still serving").await;
    assert_eq!(program.admin("/readyz").await.status, 503);
    assert_eq!(program.admin("/readyz").await.body, "not ready: draining\n");
    assert_eq!(program.admin("/livez").await.status, 200);

    for connection in [&mut open, &mut program.connect().await] {
        let answer = connection.post("/mutate/enforced", "application/json", plain_review().as_bytes()).await;
        assert_eq!(answer.status, 200);
        assert!(answer.head.contains("connection: close\r\n"), "{}", answer.head);
        assert_eq!(connection.rest().await, b"");
    }

    program.terminate().await;
    assert_eq!(program.end().await.code(), Some(1));
}

#[tokio::test]
async fn what_is_in_flight_when_the_listener_closes_is_answered_and_the_end_is_orderly() {
    let mut program = Program::start(&["--drain-delay=0s"]).await;
    let mut connection = program.connect().await;
    let body = plain_review();
    let request = post("/mutate/enforced", "application/json", body.as_bytes());
    let head = String::from_utf8(request[..request.len() - body.len()].to_vec()).unwrap();
    connection.send(head.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n").as_bytes()).await;
    // Now the request is being handled.
    assert!(connection.head().await.starts_with("HTTP/1.1 100 "));

    program.terminate().await;
    while program.tcp().await.is_ok() {
        tokio::task::yield_now().await;
    }
    connection.send(body.as_bytes()).await;
    let answer = connection.answer().await;
    assert_eq!(answer.response()["allowed"], true);
    assert_eq!(connection.rest().await, b"");
    drop(connection);
    assert_eq!(program.end().await.code(), Some(0));
    assert!(program.lines.iter().any(|line| line.contains("\"drained\"")));
}

#[tokio::test]
async fn what_outlives_the_drain_is_cut_off_and_the_end_says_so() {
    let mut program = Program::start(&["--drain-delay=0s", "--drain-timeout=0s"]).await;
    let mut connection = program.connect().await;
    let request = post("/mutate/enforced", "application/json", plain_review().as_bytes());
    connection.send(&request[..request.len() - 1]).await;
    // Without this answer the last request could still be unread.
    let mut other = program.connect().await;
    other.good_request().await;
    program.terminate().await;
    assert_eq!(program.end().await.code(), Some(1));
    assert!(program.lines.iter().any(|line| line.contains("cut off")));
}
