//! Tokens: where they go, and where not.

use std::fs;

use crate::fetch::{Pod, body, served};
use crate::server::{Answer, End, Server, sha256};

struct Tokens {
    pod: Pod,
    flags: [String; 2],
}

fn tokens() -> Tokens {
    let pod = Pod::new();
    let token = pod.file("token", "hush-token\n");
    let identity = pod.file("identity", "hush-identity");
    Tokens { flags: [format!("--token-file={token}"), format!("--identity-file={identity}")], pod }
}

impl Tokens {
    fn flags(&self) -> Vec<&str> {
        self.flags.iter().map(String::as_str).collect()
    }
}

#[test]
fn both_tokens_are_shown_and_the_body_is_acknowledged() {
    let body = body();
    let server = Server::start(vec![Answer::whole(&body).told()]);
    let tokens = tokens();
    let ended = tokens.pod.fetch_with(&server.url("/bodies/x?a=b"), &body, &tokens.flags());
    ended.well();
    let asked = server.asked();
    assert_eq!(server.methods(), ["GET", "DELETE"]);
    for asked in &asked {
        assert_eq!(asked.target, "/bodies/x?a=b");
        assert_eq!(asked.header("authorization"), Some("Bearer hush-token"));
        assert_eq!(asked.header("x-cofferdam-identity"), Some("hush-identity"));
    }
    assert!(!ended.log.contains("hush"), "{}", ended.log);
}

#[test]
fn without_a_token_nothing_is_acknowledged() {
    let body = body();
    let server = Server::start(vec![Answer::whole(&body).told()]);
    Pod::new().fetch(&server.url("/body"), &body).well();
    assert_eq!(server.methods(), ["GET"]);
    assert_eq!(server.asked()[0].header("authorization"), None);
}

#[test]
fn who_does_not_ask_for_an_acknowledgement_keeps_the_body() {
    let body = body();
    let answers = [Answer::whole(&body), Answer::whole(&body).header("x-cofferdam-acknowledge", "no")];
    for answer in answers {
        let server = Server::start(vec![answer]);
        let tokens = tokens();
        tokens.pod.fetch_with(&server.url("/body"), &body, &tokens.flags()).well();
        assert_eq!(server.methods(), ["GET"]);
    }
}

#[test]
fn who_sent_the_end_of_the_body_says_whether_to_acknowledge() {
    let body = body();
    let begun = || Answer::begun(&body, 3000, End::Cut);
    let server = Server::start(vec![begun(), Answer::rest(&body, 3000).told()]);
    let tokens = tokens();
    tokens.pod.fetch_with(&server.url("/body"), &body, &tokens.flags()).well();
    assert_eq!(server.methods(), ["GET", "GET", "DELETE"]);
    let server = Server::start(vec![begun().told(), Answer::rest(&body, 3000)]);
    let tokens = self::tokens();
    tokens.pod.fetch_with(&server.url("/body"), &body, &tokens.flags()).well();
    assert_eq!(server.methods(), ["GET", "GET"]);
}

#[test]
fn a_body_that_this_run_did_not_fetch_is_not_acknowledged() {
    let body = body();
    let server = Server::start(vec![Answer::whole(&body).told()]);
    let tokens = tokens();
    fs::create_dir(tokens.pod.app().join(format!(".cofferdam-verified-{}", sha256(&body)))).unwrap();
    tokens.pod.fetch_with(&server.url("/body"), &body, &tokens.flags()).well();
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn another_origin_gets_no_token_and_then_nobody_an_acknowledgement() {
    let body = body();
    let elsewhere = Server::start(vec![Answer::whole(&body).told()]);
    let to = elsewhere.url("/signed?key=hush");
    let away = Answer::new(307).header("location", &to).told();
    let server = Server::start(vec![Answer::new(302).header("location", "/on"), away]);
    let tokens = tokens();
    let ended = tokens.pod.fetch_with(&server.url("/body"), &body, &tokens.flags());
    ended.well();
    assert_eq!(server.methods(), ["GET", "GET"]);
    assert!(server.asked().iter().all(|asked| asked.header("authorization") == Some("Bearer hush-token")));
    assert_eq!(elsewhere.methods(), ["GET"]);
    let asked = &elsewhere.asked()[0];
    assert_eq!((asked.header("authorization"), asked.header("x-cofferdam-identity")), (None, None));
    assert!(!ended.log.contains("hush"), "{}", ended.log);
}

#[test]
fn who_is_led_back_by_another_origin_shows_nothing_there() {
    let body = body();
    // One server is two origins by two names.
    let server = Server::start_with(|address| {
        let to = |location: String| Answer::new(302).header("location", &location);
        let (away, back) = (format!("http://localhost:{}/", address.port()), format!("http://{address}/chosen"));
        vec![to(away), to(back), Answer::whole(&body).told()]
    });
    let tokens = tokens();
    tokens.pod.fetch_with(&server.url("/body"), &body, &tokens.flags()).well();
    assert_eq!(server.methods(), ["GET"; 3]);
    let asked = server.asked();
    assert_eq!(asked.iter().map(|asked| &*asked.target).collect::<Vec<_>>(), ["/body", "/", "/chosen"]);
    for (asked, (token, identity)) in
        asked.iter().zip([(Some("Bearer hush-token"), Some("hush-identity")), (None, None), (None, None)])
    {
        assert_eq!((asked.header("authorization"), asked.header("x-cofferdam-identity")), (token, identity));
    }
}

#[test]
fn redirects_end_somewhere() {
    let server = Server::start(vec![Answer::new(302).header("location", "/again?hush")]);
    let ended = Pod::new().fetch(&server.url("/"), &body());
    ended.failed(11, "more than 5 redirects");
    assert_eq!(server.asked().len(), 6);
    let long = format!("http://{}/", "a.".repeat(10_000));
    for location in ["file:///etc/passwd", "http://user:hush@127.0.0.1/", &long] {
        let server = Server::start(vec![Answer::new(302).header("location", location)]);
        let ended = Pod::new().fetch(&server.url("/"), &body());
        ended.failed(11, "a redirect to what is no URL");
        assert!(!ended.log.contains("hush"), "{}", ended.log);
    }
}

#[test]
fn who_refuses_learns_nothing_that_is_repeated() {
    let server = Server::start(vec![Answer::new(401).body(b"hush-token is wrong")]);
    let tokens = tokens();
    let ended = tokens.pod.fetch_with(&server.url("/?hush"), b"", &tokens.flags());
    ended.failed(11, "401");
    assert!(!ended.log.contains("hush"), "{}", ended.log);
    assert_eq!(server.methods(), ["GET"]);
}

#[test]
fn a_token_that_no_header_can_hold_is_no_token() {
    let (body, server) = served();
    let pod = Pod::new();
    for text in ["", "\n", "hush\nhush", "hush\u{7f}"] {
        let file = pod.file("token", text);
        let ended = pod.fetch_with(&server.url("/"), &body, &[&format!("--token-file={file}")]);
        ended.failed(2, "the file of --token-file holds no token");
        assert!(!ended.log.contains("hush"), "{}", ended.log);
    }
    assert_eq!(server.asked().len(), 0);
}

#[test]
fn b87_a_clock_that_differs_is_told() {
    let body = body();
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let server = Server::start(vec![Answer::whole(&body).header("date", date)]);
    let ended = Pod::new().fetch(&server.url("/"), &body);
    ended.well();
    assert!(ended.log.contains("this node's clock is ") && ended.log.contains("ahead of"), "{}", ended.log);
    let (body, server) = served();
    assert!(!Pod::new().fetch(&server.url("/"), &body).log.contains("clock"));
}
