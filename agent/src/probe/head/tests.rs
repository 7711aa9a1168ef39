use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::probe::testing::{answer, closed, header, listen, serve};

const HOST: &str = "3000-abc.example.com";

#[tokio::test]
async fn asks_as_it_should() {
    let via = Via::from(serve(|head| answer(200, &format!("server: {}\r\n", head.replace("\r\n", "|")))).await);
    let heard = ask(&with_proof(&via), WITHIN).await.unwrap();
    let expected = "HEAD / HTTP/1.1|host: 3000-abc.example.com|user-agent: cofferdam-agent|connection: close|\
                    x-cofferdam-probe: one||";
    assert_eq!(heard.looks.server.unwrap(), expected);
    let heard = ask(&plain(&via), WITHIN).await.unwrap();
    assert!(!heard.looks.server.unwrap().to_str().unwrap().contains("x-cofferdam"));
}

#[tokio::test]
async fn only_the_proof_that_was_asked_for_proves_and_only_once() {
    for (headers, proved) in [
        ("x-cofferdam-proof: two\r\n", true),
        ("X-Cofferdam-Proof:two\r\n", true),
        ("", false),
        ("x-cofferdam-proof: three\r\n", false),
        ("x-cofferdam-proof: two2\r\n", false),
        ("x-cofferdam-proof: \r\n", false),
        ("x-cofferdam-proof: one\r\n", false),
        ("x-cofferdam-proof: two, two\r\n", false),
        ("x-cofferdam-proof: two\r\nx-cofferdam-proof: two\r\n", false),
        ("x-cofferdam-proof: two\r\nx-cofferdam-proof: three\r\n", false),
    ] {
        let via = Via::from(serve(move |_| answer(200, headers)).await);
        let heard = ask(&with_proof(&via), WITHIN).await.unwrap();
        assert_eq!((heard.status, heard.proved), (200, proved), "{headers:?}");
        assert!(!ask(&plain(&via), WITHIN).await.unwrap().proved, "{headers:?}");
    }
}

#[tokio::test]
async fn a_program_that_echoes_all_headers_proves_nothing() {
    let echo = |head: &str| {
        let sent = header(head, "x-cofferdam-probe").unwrap();
        answer(200, &format!("x-cofferdam-probe: {sent}\r\nx-cofferdam-proof: {sent}\r\n"))
    };
    let via = Via::from(serve(echo).await);
    assert!(!ask(&with_proof(&via), WITHIN).await.unwrap().proved);
}

#[tokio::test]
async fn answers_that_are_none() {
    for (bytes, expected) in [
        (b"".to_vec(), Unanswered::Ended),
        (b"HTTP/1.1 200 OK\r\nserv".to_vec(), Unanswered::Ended),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), Unanswered::Garbage),
        (b"HTTP/2 200\r\n\r\n".to_vec(), Unanswered::Garbage),
        (b"HTTP/1.1 OK\r\n\r\n".to_vec(), Unanswered::Garbage),
        (b"HTTP/1.1 99 Low\r\n\r\n".to_vec(), Unanswered::Garbage),
        (b"\x00\x00\x12\x04\x00\x00\x00\x00\x00".to_vec(), Unanswered::Garbage),
        (answer(200, "no colon\r\n"), Unanswered::Garbage),
        (answer(200, &format!("x: {}\r\n", "y".repeat(20_000))), Unanswered::TooLarge),
        (answer(200, &"x: y\r\n".repeat(200)), Unanswered::TooLarge),
    ] {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        let via = Via::from(serve(move |_| bytes.clone()).await);
        assert_eq!(ask(&with_proof(&via), WITHIN).await, Err(expected), "{shown:?}");
    }
}

#[tokio::test]
async fn a_body_that_should_not_be_there_does_no_harm() {
    let via = Via::from(serve(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".to_vec()).await);
    assert_eq!(ask(&plain(&via), WITHIN).await.unwrap().status, 200);
}

#[tokio::test]
async fn an_answer_after_an_informational_one_counts() {
    let via = Via::from(serve(|_| [&b"HTTP/1.1 103 Early Hints\r\n\r\n"[..], &answer(404, "")].concat()).await);
    assert_eq!(ask(&plain(&via), WITHIN).await.unwrap().status, 404);
}

#[tokio::test]
async fn connections_that_do_not_come_about() {
    let via = Via::from(closed());
    assert_eq!(ask(&plain(&via), WITHIN).await, Err(Unanswered::Connect(Closed::Refused)));
    let via = Via { host: ProbeHost::Name("gateway.invalid.".to_owned()), port: 80 };
    assert_eq!(ask(&plain(&via), WITHIN).await, Err(Unanswered::Unresolved));
}

#[tokio::test]
async fn a_name_is_resolved_and_all_its_addresses_are_tried() {
    let address = serve(|_| answer(200, "")).await;
    let via = Via { host: ProbeHost::Name("localhost".to_owned()), port: address.port() };
    assert_eq!(ask(&plain(&via), WITHIN).await.unwrap().status, 200);
    let addresses = [closed(), address];
    let stream = connect(&addresses, Instant::now() + WITHIN).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), address);
    let none = connect(&[], Instant::now() + WITHIN).await.map(drop);
    assert_eq!(none, Err(Unanswered::Unresolved));
}

#[tokio::test(start_paused = true)]
async fn who_never_answers_and_who_trickles_are_given_up_in_time() {
    let (silent, address) = listen().await;
    let begun = Instant::now();
    assert_eq!(ask(&plain(&Via::from(address)), WITHIN).await, Err(Unanswered::TimedOut));
    assert_eq!(begun.elapsed().as_secs(), 2);
    drop(silent);

    let (listener, address) = listen().await;
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_u8().await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n").await.unwrap();
        // Ends by itself once nobody reads.
        while stream.write_all(b"x: y\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    });
    let begun = Instant::now();
    assert_eq!(ask(&plain(&Via::from(address)), WITHIN).await, Err(Unanswered::TimedOut));
    assert_eq!(begun.elapsed().as_secs(), 2);
}

#[test]
fn looks_hold_what_an_answerer_always_sends_alike() {
    let of = |headers: &[(&'static str, &'static str)], host| {
        let headers =
            headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value)));
        looks(&headers.collect(), host)
    };
    let plain = of(&[("date", "Mon"), ("x-request-id", "1")], HOST);
    assert_eq!(plain, of(&[("date", "Tue"), ("x-request-id", "2")], "a"));
    for other in [("server", "nginx"), ("content-type", "text/html"), ("content-length", "3"), ("location", "/a")] {
        assert_ne!(plain, of(&[other], HOST), "{other:?}");
    }
    let ours = of(&[("location", "https://3000-abc.example.com/")], HOST);
    assert_eq!(ours, of(&[("location", "https://nobody.example.com/")], "nobody.example.com"));
}

#[test]
fn a_host_that_is_none_is_not_asked_for() {
    let via = Via { host: ProbeHost::Address(Ipv4Addr::LOCALHOST.into()), port: 1 };
    let question = Question { via: &via, tls: None, host: "a\r\nb", proof: None };
    assert_eq!(request(&question).map(drop), Err(Unanswered::NotMade));
}

fn plain(via: &Via) -> Question<'_> {
    Question { via, tls: None, host: HOST, proof: None }
}

fn with_proof(via: &Via) -> Question<'_> {
    static PROOF: std::sync::LazyLock<Proof> =
        std::sync::LazyLock::new(|| Proof { probe: "one".to_owned(), proof: "two".to_owned() });
    Question { proof: Some(&PROOF), ..plain(via) }
}
