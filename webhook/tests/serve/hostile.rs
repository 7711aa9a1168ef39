//! What bad clients send, and that the next good one does not notice.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::client::{Secure, plain_pod, plain_review, post, review_of, review_of_update};
use crate::program::{PROGRAM, Program, exchange};

/// The memory that the manifests give the container.
const CONTAINER_MEBIBYTES: u64 = 128;

const JSON: &str = "application/json";
const PATH: &str = "/mutate/enforced";

#[tokio::test]
async fn a_question_that_is_none_gets_an_answer_and_the_connection_goes_on() {
    let program = Program::start(&[]).await;
    let mut connection = program.connect().await;
    let good = plain_review();
    let deep = format!("{}1{}", r#"{"a":"#.repeat(20_000), "}".repeat(20_000));
    for (body, status) in [
        ("{".to_owned(), 400),
        (String::new(), 400),
        (good[..good.len() - 1].to_owned(), 400),
        ("\0\u{1}\u{7f}".to_owned(), 400),
        (deep.clone(), 400),
        (good.replace("admission.k8s.io/v1", "admission.k8s.io/v1beta1"), 400),
        (good.replace("AdmissionReview", "Pod"), 400),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#.to_owned(), 400),
        (good.replace("u-1", ""), 400),
        (good.replace("\"oldObject\":null", &format!("\"oldObject\":{deep}")), 200),
    ] {
        let answer = connection.post(PATH, JSON, body.as_bytes()).await;
        assert_eq!(answer.status, status, "{answer:?}");
        assert!(status == 200 || answer.body.lines().count() == 1, "{answer:?}");
        connection.good_request().await;
    }
    let nested = review_of(&json!("DEEP")).replace("\"DEEP\"", &deep);
    let answer = connection.post(PATH, JSON, nested.as_bytes()).await;
    assert_eq!(answer.response()["uid"], "u-1");
    assert_eq!(answer.response()["allowed"], false);
    connection.good_request().await;
}

#[tokio::test]
async fn a_request_that_is_none_is_answered_and_its_connection_closed() {
    let program = Program::start(&[]).await;
    let good = plain_review();
    for (request, status) in [
        (post(PATH, "text/plain", good.as_bytes()), 415),
        (post("/mutate", JSON, good.as_bytes()), 404),
        (format!("GET {PATH} HTTP/1.1\r\nhost: x\r\n\r\n").into_bytes(), 405),
        (b"garbage\r\n\r\n".to_vec(), 400),
        (b"\x00\x01\x02\x03\r\n\r\n".to_vec(), 400),
        (format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000)).into_bytes(), 431),
        ([format!("POST {PATH} HTTP/1.1\r\n").as_bytes(), &b"a: b\r\n".repeat(20_000)].concat(), 431),
    ] {
        let mut connection = program.connect().await;
        connection.send(&request).await;
        let answer = connection.answer().await;
        let described = String::from_utf8_lossy(&request[..request.len().min(40)]).into_owned();
        // A head that is too long may be too long in its first line, which has a status of its own.
        assert!(answer.status == status || (status, answer.status) == (431, 414), "{described}: {answer:?}");
        assert_eq!(connection.rest().await, b"", "{described}");
        program.connect().await.good_request().await;
    }
}

#[tokio::test]
async fn a_pipelined_second_request_is_answered_second() {
    let program = Program::start(&[]).await;
    let mut connection = program.connect().await;
    let (first, second) = (plain_review(), plain_review().replace("u-1", "u-2"));
    connection.send(&[post(PATH, JSON, first.as_bytes()), post(PATH, JSON, second.as_bytes())].concat()).await;
    assert_eq!(connection.answer().await.response()["uid"], "u-1");
    assert_eq!(connection.answer().await.response()["uid"], "u-2");
}

#[tokio::test]
async fn a_body_of_100_mb_is_refused_and_its_sender_can_read_that() {
    const LENGTH: usize = 100_000_000;
    let program = Program::start(&[]).await;
    program.connect().await.good_request().await;
    let before = program.peak_mebibytes();

    let mut declared = program.connect().await;
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\ncontent-length: {LENGTH}\r\n\r\n");
    declared.send(head.as_bytes()).await;
    // The client sends everything before it reads a byte.
    let piece = vec![b' '; 1_000_000];
    for _ in 0..LENGTH / piece.len() {
        declared.send(&piece).await;
    }
    assert_eq!(declared.answer().await.status, 413);

    let mut chunked = program.connect().await;
    let head = format!("POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: {JSON}\r\ntransfer-encoding: chunked\r\n\r\n");
    chunked.send(head.as_bytes()).await;
    for _ in 0..LENGTH / piece.len() {
        chunked.send(b"f4240\r\n").await;
        chunked.send(&piece).await;
        chunked.send(b"\r\n").await;
    }
    chunked.send(b"0\r\n\r\n").await;
    assert_eq!(chunked.answer().await.status, 413);

    // One body as far as it is allowed to come, and what belongs to two connections.
    let grown = program.peak_mebibytes() - before;
    assert!(grown <= 10, "memory grew by {grown} MiB");
    program.connect().await.good_request().await;
}

#[tokio::test]
async fn heavy_pods_stay_within_the_memory_of_the_container() {
    let program = Program::start(&[]).await;
    let with = |member: &str, value: Value| {
        let mut pod = plain_pod();
        pod["spec"][member] = value;
        review_of(&pod)
    };
    // The last one is 3 MB of text and would be half a gigabyte of tree.
    for (body, denied) in [
        (with("x", json!("x".repeat(3_000_000))), None),
        (with("x", vec![0; 60_000].into()), None),
        (with("x", vec![json!({"": 0}); 6_500].into()), None),
        (with("containers", vec![json!({"name": "c"}); 6_500].into()), Some(403)),
        (with("x", vec![json!({"": 0}); 400_000].into()), Some(413)),
    ] {
        let response = program.connect().await.post(PATH, JSON, body.as_bytes()).await.response();
        assert_eq!(response["status"].get("code").and_then(Value::as_u64), denied);
    }
    let peak = program.peak_mebibytes();
    assert!(peak < CONTAINER_MEBIBYTES, "{peak} MiB");
    program.connect().await.good_request().await;
}

#[tokio::test]
async fn an_old_object_is_no_way_around_the_bounds() {
    let program = Program::start(&[]).await;
    let mut connection = program.connect().await;
    let new = plain_pod();
    let mut large = plain_pod();
    large["spec"]["x"] = vec![json!({"": 0}); 400_000].into();
    let mut legal = plain_pod();
    legal["metadata"]["annotations"] = json!({"a": "x".repeat(2_900_000)});
    let deep = format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
    let nested = review_of_update("resize", &new, &json!("DEEP")).replace("\"DEEP\"", &deep);
    for (path, body, denied) in [
        (PATH, review_of_update("resize", &new, &large), Some(413)),
        (PATH, review_of_update("ephemeralcontainers", &new, &large), Some(413)),
        ("/validate/enforced", review_of_update("", &new, &large), Some(413)),
        (PATH, nested, Some(400)),
        (PATH, review_of_update("resize", &new, &json!([1])), None),
        (PATH, review_of_update("ephemeralcontainers", &new, &json!({"spec": {"ephemeralContainers": 5}})), None),
        (PATH, review_of_update("resize", &new, &Value::Null), Some(400)),
        // What an API server may send: two objects of the largest size that it takes.
        ("/validate/enforced", review_of_update("", &legal, &legal), None),
    ] {
        let answer = connection.post(path, JSON, body.as_bytes()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let response = answer.response();
        let code = response["status"].get("code").and_then(Value::as_u64);
        assert_eq!(response["uid"], "u-1");
        assert!(code == denied || (denied.is_none() && code == Some(403)), "{path}: {code:?} is not {denied:?}");
        connection.good_request().await;
    }
    let peak = program.peak_mebibytes();
    assert!(peak < CONTAINER_MEBIBYTES, "{peak} MiB");
}

#[tokio::test]
async fn many_large_bodies_at_once_stay_within_the_memory_of_the_container() {
    let program = Program::start(&[]).await;
    let mut pod = plain_pod();
    pod["metadata"]["annotations"] = json!({"a": "x".repeat(7_000_000)});
    let request = post(PATH, JSON, review_of(&pod).as_bytes());
    let (all_but_one, last) = request.split_at(request.len() - 1);
    let mut clients = Vec::new();
    for _ in 0..24 {
        let mut connection = program.connect().await;
        connection.send(all_but_one).await;
        clients.push(connection);
    }
    let mut turned_away = 0;
    for connection in &mut clients {
        connection.send(last).await;
        let status = connection.answer().await.status;
        assert!([200, 503].contains(&status), "{status}");
        turned_away += usize::from(status == 503);
    }
    // 24 times 7 MB is more than there is for them.
    assert!(turned_away > 0);
    let peak = program.peak_mebibytes();
    assert!(peak < CONTAINER_MEBIBYTES, "{peak} MiB");
    program.connect().await.good_request().await;
}

#[tokio::test]
async fn slow_clients_hold_up_nobody_and_are_sent_away() {
    let program = Program::start(&[]).await;
    let request = post(PATH, JSON, plain_review().as_bytes());
    let mut silent = program.tcp().await.unwrap();
    let mut half_a_hello = program.tcp().await.unwrap();
    half_a_hello.write_all(&client_hello(3, 3)[..20]).await.unwrap();
    let (mut heads, mut bodies) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let mut head = program.connect().await;
        head.send(&request[..20]).await;
        heads.push(head);
        let mut body = program.connect().await;
        body.send(&request[..request.len() - 1]).await;
        bodies.push(body);
    }
    program.connect().await.good_request().await;

    // Every bound is at most 10 s, and all run at the same time.
    for mut body in bodies {
        assert_eq!(body.answer().await.status, 408);
        assert_eq!(body.rest().await, b"");
    }
    for mut head in heads {
        assert_eq!(head.rest().await, b"");
    }
    for stream in [&mut silent, &mut half_a_hello] {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"");
    }
    program.connect().await.good_request().await;
}

#[tokio::test]
async fn an_old_version_of_tls_gets_an_alert_and_a_close() {
    let program = Program::start(&[]).await;
    for minor in [1, 2] {
        let answer = exchange(program.tcp().await.unwrap(), &client_hello(3, minor)).await;
        // An alert of two bytes: fatal, and handshake_failure or protocol_version (RFC 8446, section 6).
        let (alert, length, fatal, reason) = (answer[0], &answer[3..5], answer[5], answer[6]);
        assert_eq!((alert, length, fatal, answer.len()), (21, &[0, 2][..], 2, 7), "TLS 1.{}", minor - 1);
        assert!([40, 70].contains(&reason), "{reason}");
    }
    program.connect().await.good_request().await;
}

#[tokio::test]
async fn what_is_no_tls_gets_an_alert_or_nothing_and_a_clean_close() {
    let program = Program::start(&[]).await;
    let plain = format!("POST {PATH} HTTP/1.1\r\nhost: x\r\n\r\n");
    let much: Vec<u8> = (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in [plain.as_bytes(), b"\0", &[0xff; 3000], &much, &client_hello(3, 3)[..9]] {
        let mut stream = program.tcp().await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty() || answer[0] == 21, "{answer:?}");
    }
    drop(program.tcp().await.unwrap());
    program.connect().await.good_request().await;
    assert!(program.metric("panics_total{listener=\"reviews\"}").await < 0.5);
}

#[tokio::test]
async fn a_process_without_file_descriptors_recovers() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 40 && exec \"$0\" \"$@\"", PROGRAM]);
    let mut program = Program::start_by(command, &[]).await;
    let mut crowd = Vec::new();
    for _ in 0..60 {
        crowd.push(program.tcp().await.unwrap());
    }
    program.logged("cannot accept a connection").await;
    drop(crowd);
    program.connect().await.good_request().await;
}

#[tokio::test]
async fn a_client_that_offers_http_2_gets_http_1() {
    let program = Program::start(&[]).await;
    let connection: Secure = program.connect().await;
    let (_, session) = connection.stream.get_ref().get_ref();
    assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
}

/// A `ClientHello` that offers no more than TLS `major.minor` and one cipher suite of that time (RFC 5246, 7.4.1.2).
fn client_hello(major: u8, minor: u8) -> Vec<u8> {
    let mut hello = vec![major, minor];
    hello.extend([7; 32]); // random
    hello.push(0); // no session
    hello.extend([0, 2, 0xc0, 0x13]); // ECDHE_RSA_WITH_AES_128_CBC_SHA
    hello.extend([1, 0]); // no compression
    hello.extend([0, 0]); // no extensions
    let length = u8::try_from(hello.len()).unwrap();
    let handshake = [&[1, 0, 0, length][..], &hello].concat();
    [&[22, 3, 1, 0, length + 4][..], &handshake].concat()
}
