use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_model::session::SessionId;
use cofferdam_runtime::http::Limits;
use futures_util::StreamExt as _;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CONNECTION, ORIGIN, WWW_AUTHENTICATE};
use http_body_util::{BodyExt as _, Full};
use k8s_openapi::jiff::Timestamp;
use prometheus::Registry;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::super::reviewer::Reviewer;
use super::super::testing::{Client, serve};
use super::super::tokens::Reloader;
use super::*;
use crate::http::body::Bodies;
use crate::session::hub::Stream as Output;
use crate::session::informer::{Seen, Told};
use crate::session::record::{App, Confidential, Record};
use crate::session::testing::Api;
use crate::token::Token;
use crate::wire::{Io, Mode};

const TOKEN: &str = "token-0123456789-0123456789";
const ID: &str = "abcdefghijkl";

fn shared(access: Access, origins: &str) -> Shared {
    let metrics = Metrics::register(&Registry::new()).unwrap();
    let origins = Origins::parse(origins).unwrap();
    let offers = Arc::new(Offers::of_test("runtime:1.0.0"));
    let intake = Arc::new(Intake::new(Bodies::new(1_000_000, Duration::from_secs(10))));
    let sessions = Sessions::of_test(Api::default().home(), 1);
    Shared { access, origins, offers, sessions, intake, metrics, close: CancellationToken::new() }
}

fn service(origins: &str) -> Service {
    Service::new(shared(Access::Everybody, origins)).unwrap()
}

/// A port on which there is one session, of which something was told; callers need a token. Gives its stream token too.
async fn port(origins: &str) -> (SocketAddr, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, TOKEN).unwrap();
    port_of(Access::Token(Reloader::load(path).unwrap().current()), origins).await
}

/// The same for those who may call so.
async fn port_of(access: Access, origins: &str) -> (SocketAddr, String) {
    let (id, token) = (SessionId::parse(ID).unwrap(), Token::random().unwrap());
    let shared = shared(access, origins);
    // Its pod is on its way.
    let app = App { name: "app".to_owned(), io: Io::Tty, ports: vec![] };
    let record = Record {
        created_at: Timestamp::MAX,
        mode: Mode::Run,
        inspect: false,
        image: None,
        stream_token: Some(token.digest()),
        apps: vec![app],
    };
    let secret = Some(Arc::new(record.secret(&id, "n", &Confidential::default())));
    shared.sessions.told(Told::Session(id.clone(), Seen { pod: None, secret }));
    shared.sessions.find(&id).unwrap().hub.output(Output::Tty, b"hello");
    let service = Arc::new(Service::new(shared).unwrap());
    let (address, _) = serve(Limits::default(), move |request| {
        let service = Arc::clone(&service);
        async move { service.answer(request).await }
    })
    .await;
    (address, token.secret().to_owned())
}

/// What a WebSocket is closed with; 0 where it begins with a frame of ours.
async fn closed_with(address: SocketAddr, path: &str, headers: &[(&'static str, &str)]) -> u16 {
    let mut request = format!("ws://x{path}").into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    match client.next().await.unwrap().unwrap() {
        Message::Close(Some(frame)) => frame.code.into(),
        Message::Text(_) => 0,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn events_are_for_callers_and_for_who_has_the_sessions_stream_token() {
    let (address, stream_token) = port("*").await;
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    let path = format!("/v1/sessions/{ID}/events");
    for (path, headers, status) in [
        (path.clone(), bearer.clone(), "200"),
        (format!("{path}?access_token={stream_token}"), String::new(), "200"),
        (path.clone(), String::new(), "401"),
        (format!("{path}?access_token={TOKEN}"), String::new(), "401"),
        (format!("/v1/sessions/abcdefghijkm/events?access_token={stream_token}"), String::new(), "401"),
        ("/v1/sessions/abcdefghijkm/events".to_owned(), bearer.clone(), "404"),
        ("/v1/sessions/not--an--id/events".to_owned(), bearer.clone(), "404"),
        ("/v1/sessions/not--an--id/events".to_owned(), String::new(), "401"),
        ("/v1/sessions/%C3%9CBER/events".to_owned(), bearer, "404"),
    ] {
        let mut client = Client::get(address, &path, &headers).await;
        let head = client.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {head}");
        assert!(head.contains("access-control-allow-origin: *\r\n"), "{head}");
        if status == "200" {
            assert!(client.chunk().await.starts_with("id: 1\nevent: status\n"));
        }
    }
}

/// A reviewer whose cluster knows `reader`, who may read pods, and nobody else; it cannot be asked about `lost`.
fn reviewed() -> Access {
    let service = tower::service_fn(|request: Request<kube::client::Body>| async move {
        let is_token_review = request.uri().path().ends_with("/tokenreviews");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let spec = serde_json::from_slice::<Value>(&body).unwrap()["spec"].clone();
        if spec["token"] == "lost" {
            return Err("connection refused");
        }
        let status = if is_token_review {
            json!({"authenticated": spec["token"] == "reader", "audiences": ["a"], "user": {"username": "reader"}})
        } else {
            json!({"allowed": spec["resourceAttributes"]["verb"] == "get"})
        };
        let answer = json!({"status": status}).to_string().into_bytes();
        Ok(http::Response::new(kube::client::Body::from(answer)))
    });
    let client = kube::Client::new(service, "n");
    let cluster = cofferdam_kubernetes::Cluster::new(client, "tests", &Registry::new()).unwrap();
    let metrics = Metrics::register(&Registry::new()).unwrap();
    Access::Review(Arc::new(Reviewer::new(cluster, "n".to_owned(), "a".to_owned(), metrics)))
}

#[tokio::test]
async fn whom_the_cluster_knows_may_do_here_what_it_may_do_there() {
    let (address, stream_token) = port_of(reviewed(), "*").await;
    let (session, events) = (format!("/v1/sessions/{ID}"), format!("/v1/sessions/{ID}/events"));
    for (method, path, token, status) in [
        ("GET", session.clone(), "reader", "200"),
        ("GET", events.clone(), "reader", "200"),
        ("GET", "/v1/capabilities".to_owned(), "reader", "200"),
        ("POST", "/v1/sessions".to_owned(), "reader", "403"),
        ("POST", "/v1/probe".to_owned(), "reader", "403"),
        ("DELETE", session.clone(), "reader", "403"),
        ("DELETE", "/v1/sessions/not--an--id".to_owned(), "reader", "403"),
        ("GET", session.clone(), "guess", "401"),
        ("GET", session.clone(), "lost", "503"),
        ("GET", format!("{session}?access_token=reader"), "", "401"),
        ("GET", format!("{session}?access_token={stream_token}"), "", "401"),
        ("GET", format!("{events}?access_token=reader"), "", "401"),
        ("GET", format!("{events}?access_token={stream_token}"), "", "200"),
        ("GET", format!("/v1/sessions/abcdefghijkm/events?access_token={stream_token}"), "", "401"),
        ("GET", session.clone(), stream_token.as_str(), "401"),
        ("DELETE", session.clone(), stream_token.as_str(), "401"),
        ("GET", "/v1/health".to_owned(), "guess", "200"),
    ] {
        let header = if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
        let mut client = Client::connect(address).await;
        client.send(format!("{method} {path} HTTP/1.1\r\nhost: x\r\n{header}\r\n").as_bytes()).await;
        let head = client.head().await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {path} by {token:?}: {head}");
        assert_eq!(head.contains("retry-after: 1\r\n"), status == "503", "{head}");
    }
    let terminal = format!("{session}/io");
    for (path, token, code) in [
        (format!("{terminal}?access_token={stream_token}"), "", 0),
        // To type into a terminal takes more than to read of a pod.
        (terminal.clone(), "reader", 4403),
        (terminal.clone(), "guess", 4401),
        (terminal.clone(), "lost", 1013),
        (format!("{terminal}?access_token=reader"), "", 4401),
    ] {
        let header = format!("Bearer {token}");
        let headers = [("authorization", header.as_str())];
        let headers = if token.is_empty() { &[][..] } else { &headers };
        assert_eq!(closed_with(address, &path, headers).await, code, "{path} by {token:?}");
    }
}

#[tokio::test]
async fn what_only_watch_sessions_have_is_refused_in_the_words_of_the_contract() {
    let (address, _) = port("*").await;
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    for (method, path, status, error) in [
        ("GET", format!("/v1/sessions/{ID}/workspace"), 409, "not_a_watch_session"),
        ("POST", format!("/v1/sessions/{ID}/workspace"), 409, "not_a_watch_session"),
        ("GET", format!("/v1/sessions/{ID}/workspace/file?path=a"), 409, "not_a_watch_session"),
        ("POST", format!("/v1/sessions/{ID}/reload?app=app"), 409, "not_a_watch_session"),
        ("PUT", format!("/v1/sessions/{ID}/apps"), 409, "not_a_watch_session"),
        ("POST", format!("/v1/sessions/{ID}/resume"), 404, "not_suspended"),
        ("PUT", "/v1/sessions/abcdefghijkm/apps".to_owned(), 404, "not_found"),
        ("GET", "/v1/sessions/a..b/workspace".to_owned(), 404, "not_found"),
    ] {
        let mut client = Client::connect(address).await;
        let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{bearer}\r\n");
        client.send(request.as_bytes()).await;
        let answer = client.rest().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
        assert!(answer.contains(&format!("\"error\":\"{error}\"")), "{path}: {answer}");
    }
    let mut client = Client::get(address, &format!("/v1/sessions/{ID}/workspace"), "").await;
    assert!(client.head().await.starts_with("HTTP/1.1 401 "));
}

#[tokio::test]
async fn l26_whoever_may_not_have_a_terminal_is_told_by_the_code_that_the_socket_is_closed_with() {
    let (address, stream_token) = port("https://a.example").await;
    let page = ("origin", "https://a.example");
    let path = format!("/v1/sessions/{ID}/io");
    let opened = format!("{path}?access_token={stream_token}");
    for (path, headers, code) in [
        (opened.as_str(), &[page][..], 0),
        (&format!("{opened}&app=app&lastSeq=0"), &[page], 0),
        (&path, &[page, ("authorization", &format!("Bearer {TOKEN}"))], 0),
        (&opened, &[("origin", "https://b.example")], 4403),
        (&opened, &[], 4403),
        (&path, &[page], 4401),
        (&format!("{path}?access_token={TOKEN}"), &[page], 4401),
        (&format!("{opened}&app=other"), &[page], 4404),
        ("/v1/sessions/abcdefghijkm/io", &[page, ("authorization", &format!("Bearer {TOKEN}"))], 4404),
        ("/v1/sessions/-x/io", &[page, ("authorization", &format!("Bearer {TOKEN}"))], 4404),
    ] {
        assert_eq!(closed_with(address, path, headers).await, code, "{path} {headers:?}");
    }
    let head = Client::get(address, &opened, "").await.head().await;
    assert!(head.starts_with("HTTP/1.1 426 "), "{head}");
}

fn request(method: Method, path: &str) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri(path).body(Full::default()).unwrap()
}

async fn ask(service: &Service, request: Request<Full<Bytes>>) -> (Reply, Value) {
    let (head, body) = service.answer(request).await.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    (Reply::from_parts(head, reply::empty(StatusCode::OK).into_body()), json)
}

#[tokio::test]
async fn health_is_told_to_everybody() {
    for (method, body) in [(Method::GET, json!({"ok": true, "version": env!("CARGO_PKG_VERSION")}))] {
        let (reply, answered) = ask(&service("*"), request(method, "/v1/health")).await;
        assert_eq!((reply.status(), answered), (StatusCode::OK, body));
        assert_eq!(reply.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
    }
    assert_eq!(ask(&service("*"), request(Method::HEAD, "/v1/health")).await.0.status(), StatusCode::OK);
}

#[tokio::test]
async fn capabilities_are_for_callers() {
    let (reply, answered) = ask(&service("*"), request(Method::GET, "/v1/capabilities")).await;
    assert_eq!(reply.status(), StatusCode::OK);
    assert_eq!(answered["config"]["schema"]["properties"]["image"]["default"], "runtime:1.0.0");
    let (address, _) = port("*").await;
    assert!(Client::get(address, "/v1/capabilities", "").await.head().await.starts_with("HTTP/1.1 401 "));
}

#[tokio::test]
async fn what_is_served_as_the_document_is_the_page() {
    let (reply, answered) = ask(&service("*"), request(Method::GET, "/v1/openapi.json")).await;
    assert_eq!(reply.status(), StatusCode::OK);
    assert_eq!(answered, serde_json::from_str::<Value>(&openapi::document()).unwrap());
}

#[tokio::test]
async fn a_route_that_is_not_there_is_told_as_clients_know_it() {
    for (method, path) in
        [(Method::GET, "/nothing?access_token=secret"), (Method::POST, "/v1/health"), (Method::PUT, "/")]
    {
        let (reply, answered) = ask(&service("*"), request(method.clone(), path)).await;
        assert_eq!(reply.status(), StatusCode::NOT_FOUND);
        let path = path.split('?').next().unwrap();
        let message = format!("Route {method}:{path} not found");
        assert_eq!(answered, json!({"statusCode": 404, "error": "Not Found", "message": message}));
    }
}

#[tokio::test]
async fn a_narrowed_list_of_origins_is_enforced() {
    let service = service("https://a.example");
    let from = |origin: &str, method: Method| {
        let mut request = request(method, "/v1/health");
        request.headers_mut().insert(ORIGIN, origin.parse().unwrap());
        request
    };
    let (reply, answered) = ask(&service, from("https://b.example", Method::GET)).await;
    assert_eq!((reply.status(), &answered["error"]), (StatusCode::FORBIDDEN, &json!("origin_not_allowed")));
    assert_eq!(reply.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN), None);
    let (reply, _) = ask(&service, from("https://b.example", Method::OPTIONS)).await;
    assert_eq!(reply.status(), StatusCode::FORBIDDEN);
    for (method, status) in [(Method::GET, StatusCode::OK), (Method::OPTIONS, StatusCode::NO_CONTENT)] {
        let (reply, _) = ask(&service, from("https://a.example", method)).await;
        assert_eq!(
            (reply.status(), &reply.headers()[ACCESS_CONTROL_ALLOW_ORIGIN]),
            (status, &"https://a.example".parse().unwrap())
        );
    }
    assert_eq!(ask(&service, request(Method::GET, "/v1/health")).await.0.status(), StatusCode::OK);
}

#[tokio::test]
async fn behind_a_body_that_nobody_read_there_is_no_next_request() {
    let mut unread = request(Method::POST, "/nothing");
    *unread.body_mut() = Full::new(Bytes::from_static(b"{}"));
    assert_eq!(ask(&service("*"), unread).await.0.headers()[CONNECTION], "close");
    assert_eq!(ask(&service("*"), request(Method::POST, "/nothing")).await.0.headers().get(CONNECTION), None);
}

#[test]
fn who_has_to_say_who_it_is_is_told_how() {
    let reply = Refusal::unauthenticated().reply();
    assert_eq!(
        (reply.status(), &reply.headers()[WWW_AUTHENTICATE]),
        (StatusCode::UNAUTHORIZED, &"Bearer".parse().unwrap())
    );
}
