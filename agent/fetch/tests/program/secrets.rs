//! Tokens: where they go, and where not.

use crate::fetch::{Pod, body, served};
use crate::server::{Answer, Server};

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
    let (body, server) = served();
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
    let (body, server) = served();
    Pod::new().fetch(&server.url("/body"), &body).well();
    assert_eq!(server.methods(), ["GET"]);
    assert_eq!(server.asked()[0].header("authorization"), None);
}

#[test]
fn another_origin_gets_no_token_and_the_first_one_the_acknowledgement() {
    let (body, elsewhere) = served();
    let to = elsewhere.url("/signed?key=hush");
    let server =
        Server::start(vec![Answer::new(302).header("location", "/on"), Answer::new(307).header("location", &to)]);
    let tokens = tokens();
    let ended = tokens.pod.fetch_with(&server.url("/body"), &body, &tokens.flags());
    ended.well();
    assert_eq!(server.methods(), ["GET", "GET", "DELETE"]);
    assert!(server.asked().iter().all(|asked| asked.header("authorization") == Some("Bearer hush-token")));
    assert_eq!(elsewhere.methods(), ["GET"]);
    let asked = &elsewhere.asked()[0];
    assert_eq!((asked.header("authorization"), asked.header("x-cofferdam-identity")), (None, None));
    assert!(!ended.log.contains("hush"), "{}", ended.log);
}

#[test]
fn redirects_end_somewhere() {
    let server = Server::start(vec![Answer::new(302).header("location", "/again?hush")]);
    let ended = Pod::new().fetch(&server.url("/"), &body());
    ended.failed(11, "more than 5 redirects");
    assert_eq!(server.asked().len(), 6);
    for location in ["file:///etc/passwd", "http://user:hush@127.0.0.1/"] {
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
