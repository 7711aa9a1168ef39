use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cofferdam_kubernetes::Failed;
use cofferdam_runtime::http::{self as listener, Limits, Phases, Server, bind};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prometheus::Registry;
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::super::archive::Archive;
use super::super::claims::LIFETIME;
use super::super::identity::PodIdentity;
use super::super::testing::{age, archive_of, base64, file_store, utf8};
use super::*;
use crate::token::Token;

const ID: &str = "abcdefghijkl";

type Told = (StatusCode, HeaderMap, Bytes);

/// A program that serves bodies from a directory, as another may as well.
struct Program {
    address: SocketAddr,
    store: BodyStore,
    phases: Phases,
    reviews: Arc<AtomicUsize>,
    registry: Registry,
}

impl Program {
    /// One that knows the token `<namespace>/<name>/<uid>` as that pod's, and cannot say whose `?` is.
    async fn start(directory: &Path) -> Self {
        let reviews = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reviews);
        let identify: Identify = Arc::new(move |token| {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(async move {
                if token == "?" {
                    return Err(Unidentified::Unavailable(Failed::timed_out()));
                }
                let mut parts = token.split('/').map(str::to_owned);
                let mut next = || parts.next().ok_or(Unidentified::Refused);
                Ok(PodIdentity { namespace: next()?, name: next()?, uid: next()? })
            })
        });
        let redeemers = Redeemers::Pods { namespace: "sessions".to_owned(), identify };
        Self::serve(directory, redeemers, reviews).await
    }

    async fn serve(directory: &Path, redeemers: Redeemers, reviews: Arc<AtomicUsize>) -> Self {
        let (store, registry) = (file_store(directory), Registry::new());
        let bodies = Bodies::new(store.clone(), redeemers, Counts::register(&registry).unwrap());
        let phases = Phases::default();
        let counts = listener::Counts::register(&Registry::new()).unwrap().of("bodies");
        let server = Server { tls: None, limits: Limits::default(), counts, phases: phases.clone() };
        let (socket, address) = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        tokio::spawn(server.serve(socket, move |request| {
            let bodies = bodies.clone();
            async move { bodies.answer(&request).await }
        }));
        Self { address, store, phases, reviews, registry }
    }

    /// Asks with these headers.
    async fn ask(&self, method: Method, path: &str, headers: &[(HeaderName, &str)]) -> Told {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let answer = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
        let (parts, body) = answer.into_parts();
        (parts.status, parts.headers, body.collect().await.unwrap().to_bytes())
    }

    /// Asks as the pod with this uid would.
    async fn as_pod(&self, method: Method, token: &Token, uid: &str) -> Told {
        let authorization = format!("Bearer {}", token.secret());
        let identity = format!("sessions/run-{ID}/{uid}");
        self.ask(method, &url("", ID), &[(AUTHORIZATION, &authorization), (IDENTITY, &identity)]).await
    }

    fn counted(&self, outcome: &str) -> u64 {
        let families = self.registry.gather();
        let family = families.iter().find(|family| family.name() == "body_requests_total").unwrap();
        let of = family.get_metric().iter().find(|metric| metric.get_label()[0].value() == outcome).unwrap();
        // Counters hold whole numbers in floats.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
        let count = of.get_counter().get_value() as u64;
        count
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.phases.close.cancel();
    }
}

fn archive() -> Archive {
    archive_of(vec![utf8("app.yaml", "kind: App"), utf8("src/main.ts", "main()")])
}

/// A program, and a body that waits there.
async fn staged() -> (TempDir, Program, Token) {
    let directory = tempfile::tempdir().unwrap();
    let program = Program::start(directory.path()).await;
    let token = program.store.stage(ID, archive()).await.unwrap();
    (directory, program, token)
}

fn is_not_found(told: &Told) -> bool {
    let (status, headers, body) = told;
    let headers: Vec<_> = headers.iter().filter(|(name, _)| *name != http::header::DATE).collect();
    let expected = [("content-type", "application/json"), ("cache-control", "no-store"), ("content-length", "21")];
    *status == StatusCode::NOT_FOUND
        && body == r#"{"error":"not_found"}"#
        && headers.len() == expected.len()
        && expected.iter().all(|(name, value)| headers.iter().any(|header| header.0 == name && *header.1 == **value))
}

#[tokio::test]
async fn a_pod_fetches_its_body_and_says_so_and_then_there_is_none() {
    let (_directory, program, token) = staged().await;
    let (status, headers, body) = program.as_pod(Method::GET, &token, "1").await;
    assert_eq!((status, body), (StatusCode::OK, archive().pieces.concat().into()));
    for (name, value) in [
        ("content-type", "application/gzip"),
        ("cache-control", "no-store"),
        ("accept-ranges", "bytes"),
        ("x-cofferdam-acknowledge", "delete"),
        ("etag", &format!("\"{}\"", archive().sha256())),
        ("content-length", &archive().bytes().to_string()),
    ] {
        assert_eq!(headers[name], *value, "{name}");
    }

    for _ in 0..2 {
        let (status, _, body) = program.as_pod(Method::DELETE, &token, "1").await;
        assert_eq!((status, body), (StatusCode::NO_CONTENT, Bytes::new()));
        assert!(is_not_found(&program.as_pod(Method::GET, &token, "1").await));
    }
    for (outcome, times) in [("sent", 1), ("acknowledged", 2), ("refused", 2), ("resumed", 0), ("unavailable", 0)] {
        assert_eq!(program.counted(outcome), times, "{outcome}");
    }
}

#[tokio::test]
async fn who_gets_nothing_is_not_told_why() {
    let (directory, program, token) = staged().await;
    let (right, pod) = (format!("Bearer {}", token.secret()), format!("sessions/run-{ID}/1"));
    let (unknown, wrong) = (url("", "bbbbbbbbbbbb"), format!("Bearer {}", "0".repeat(48)));
    let mine = url("", ID);
    for method in [Method::GET, Method::DELETE] {
        for (what, path, headers) in [
            ("an unknown session", unknown.as_str(), vec![(AUTHORIZATION, right.as_str()), (IDENTITY, pod.as_str())]),
            ("no token", &mine, vec![(IDENTITY, &pod)]),
            ("a wrong token", &mine, vec![(AUTHORIZATION, &wrong), (IDENTITY, &pod)]),
            ("another scheme", &mine, vec![(AUTHORIZATION, "Basic YTpi"), (IDENTITY, &pod)]),
            ("an identity in place of the token", &mine, vec![(AUTHORIZATION, &pod), (IDENTITY, &pod)]),
            ("something below it", &format!("{mine}/body"), vec![(AUTHORIZATION, &right), (IDENTITY, &pod)]),
            ("no session", PATH, vec![(AUTHORIZATION, &right), (IDENTITY, &pod)]),
            ("a way out", &format!("{PATH}../{ID}"), vec![(AUTHORIZATION, &right), (IDENTITY, &pod)]),
            ("another page", "/v1/sessions", vec![(AUTHORIZATION, &right), (IDENTITY, &pod)]),
            ("d10: a token in the URL", &format!("{mine}?token={}", token.secret()), vec![(IDENTITY, &pod)]),
        ] {
            assert!(is_not_found(&program.ask(method.clone(), path, &headers).await), "{method}: {what}");
        }
        assert_eq!(program.reviews.swap(0, Ordering::Relaxed), 0, "the API server was asked for a stranger");
        for identity in [
            "",
            "nobody",
            "sessions/run-bbbbbbbbbbbb/1",
            &format!("other/run-{ID}/1"),
            &format!("sessions/watch-{ID}/1"),
            &format!("sessions/run-{ID}-2/1"),
        ] {
            let told = program.ask(method.clone(), &mine, &[(AUTHORIZATION, &right), (IDENTITY, identity)]).await;
            assert!(is_not_found(&told), "{method}: {identity}");
        }
        assert!(is_not_found(&program.ask(method, &mine, &[(AUTHORIZATION, &right)]).await));
        program.reviews.store(0, Ordering::Relaxed);
    }
    // None of that has claimed it; and then another pod, a lost one, and a late one look the same.
    assert_eq!(program.as_pod(Method::GET, &token, "1").await.0, StatusCode::OK);
    assert!(is_not_found(&program.as_pod(Method::GET, &token, "2").await));
    assert!(is_not_found(&program.as_pod(Method::DELETE, &token, "2").await));
    age(directory.path(), ID, "claim", LIFETIME);
    assert!(is_not_found(&program.as_pod(Method::GET, &token, "1").await));
    assert!(is_not_found(&program.as_pod(Method::DELETE, &token, "1").await));
}

#[tokio::test]
async fn b77_a_pod_whose_init_container_runs_again_gets_its_body_again_until_it_has_it() {
    let (directory, program, token) = staged().await;
    for _ in 0..3 {
        assert_eq!(program.as_pod(Method::GET, &token, "1").await.0, StatusCode::OK);
    }
    age(directory.path(), ID, "claim", LIFETIME.checked_sub(Duration::from_secs(30)).unwrap());
    assert_eq!(program.as_pod(Method::GET, &token, "1").await.0, StatusCode::OK);
    assert_eq!(program.as_pod(Method::DELETE, &token, "1").await.0, StatusCode::NO_CONTENT);
    // From here on the marker in its volume is all that it needs.
    assert!(is_not_found(&program.as_pod(Method::GET, &token, "1").await));
}

#[tokio::test]
async fn b79_once_a_pod_has_its_body_nothing_here_is_needed() {
    let (directory, program, token) = staged().await;
    program.as_pod(Method::GET, &token, "1").await;
    program.as_pod(Method::DELETE, &token, "1").await;
    assert!(!directory.path().join(ID).join("body").exists());
    let later = SystemTime::now() + Duration::from_hours(3);
    program.store.sweep(later, |_| true).await.unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn d18_a_body_outlives_the_program_that_staged_it_and_the_one_that_served_it() {
    let (directory, program, token) = staged().await;
    drop(program);
    let program = Program::start(directory.path()).await;
    assert_eq!(program.as_pod(Method::GET, &token, "1").await.0, StatusCode::OK);
    drop(program);
    let program = Program::start(directory.path()).await;
    assert!(is_not_found(&program.as_pod(Method::GET, &token, "2").await));
    assert_eq!(program.as_pod(Method::GET, &token, "1").await.0, StatusCode::OK);
    assert_eq!(program.as_pod(Method::DELETE, &token, "1").await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn what_was_begun_is_gone_on_with() {
    let (_directory, program, token) = staged().await;
    let (right, pod) = (format!("Bearer {}", token.secret()), format!("sessions/run-{ID}/1"));
    let whole = archive().pieces.concat();
    let etag = format!("\"{}\"", archive().sha256());
    let ask = async |range: &str, if_range: &str| {
        let headers = [(AUTHORIZATION, right.as_str()), (IDENTITY, &pod), (RANGE, range), (IF_RANGE, if_range)];
        program.ask(Method::GET, &url("", ID), &headers).await
    };
    let (status, headers, body) = ask("bytes=100-", &etag).await;
    assert_eq!((status, &body[..]), (StatusCode::PARTIAL_CONTENT, &whole[100..]));
    assert_eq!(headers[CONTENT_RANGE], format!("bytes 100-{}/{}", whole.len() - 1, whole.len()));
    assert_eq!(headers[ETAG], etag);
    assert_eq!(headers[CONTENT_LENGTH], (whole.len() - 100).to_string());

    let (status, _, body) = ask("bytes=100-", "\"another\"").await;
    assert_eq!((status, &body[..]), (StatusCode::OK, &whole[..]));

    let (status, headers, _) = ask(&format!("bytes={}-", whole.len()), &etag).await;
    assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(headers[CONTENT_RANGE], format!("bytes */{}", whole.len()));
    assert_eq!((program.counted("resumed"), program.counted("sent")), (1, 1));
}

#[tokio::test]
async fn who_cannot_be_identified_now_tries_again_and_has_claimed_nothing() {
    let (_directory, program, token) = staged().await;
    let right = format!("Bearer {}", token.secret());
    for method in [Method::GET, Method::DELETE] {
        let told = program.ask(method, &url("", ID), &[(AUTHORIZATION, &right), (IDENTITY, "?")]).await;
        let (status, headers, body) = told;
        assert_eq!((status, &body[..]), (StatusCode::SERVICE_UNAVAILABLE, &br#"{"error":"unavailable"}"#[..]));
        assert_eq!(headers[RETRY_AFTER], "1");
    }
    assert_eq!(program.counted("unavailable"), 2);
    let record = program.store.record(ID).await.unwrap().unwrap();
    assert_eq!(program.store.standing(ID, &record).await.unwrap().claim, None);
}

#[tokio::test]
async fn a_store_that_does_not_work_is_no_refusal() {
    let (directory, program, token) = staged().await;
    std::fs::write(directory.path().join(ID).join("record"), "?").unwrap();
    assert_eq!(program.as_pod(Method::GET, &token, "1").await.0, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn where_nobody_may_ask_who_a_pod_is_the_token_is_all_that_counts() {
    let directory = tempfile::tempdir().unwrap();
    let program = Program::serve(directory.path(), Redeemers::Bearers, Arc::default()).await;
    let token = program.store.stage(ID, archive()).await.unwrap();
    let right = format!("bearer {}", token.secret());
    let wrong = format!("Bearer {}", "0".repeat(48));
    for (authorization, method, status) in [
        (&wrong, Method::GET, StatusCode::NOT_FOUND),
        (&right, Method::DELETE, StatusCode::NOT_FOUND),
        (&right, Method::GET, StatusCode::OK),
        (&right, Method::GET, StatusCode::OK),
        (&wrong, Method::DELETE, StatusCode::NOT_FOUND),
        (&right, Method::DELETE, StatusCode::NO_CONTENT),
        (&right, Method::GET, StatusCode::NOT_FOUND),
    ] {
        let told = program.ask(method.clone(), &url("", ID), &[(AUTHORIZATION, authorization)]).await;
        assert_eq!(told.0, status, "{method}");
    }
}

#[tokio::test]
async fn only_two_methods_mean_something() {
    let (_directory, program, token) = staged().await;
    for method in [Method::HEAD, Method::POST, Method::PUT, Method::OPTIONS] {
        let (status, headers, _) = program.as_pod(method, &token, "1").await;
        assert_eq!(
            (status, &headers[ALLOW]),
            (StatusCode::METHOD_NOT_ALLOWED, &HeaderValue::from_static("GET, DELETE"))
        );
    }
}

#[tokio::test]
async fn d16_a_body_over_a_mebibyte_arrives() {
    let directory = tempfile::tempdir().unwrap();
    let program = Program::start(directory.path()).await;
    let noise: String = std::iter::repeat_with(fastrand::alphanumeric).take(4 << 20).collect();
    let archive = archive_of(vec![base64("noise", &noise)]);
    assert!(archive.bytes() > 3 << 20);
    let whole = archive.pieces.concat();
    let token = program.store.stage(ID, archive).await.unwrap();
    assert_eq!(program.as_pod(Method::GET, &token, "1").await.2, whole);
}

#[test]
fn a_body_is_below_our_own_address() {
    for base in ["http://api.cofferdam-system.svc:8063", "http://api.cofferdam-system.svc:8063/"] {
        assert_eq!(url(base, ID), format!("http://api.cofferdam-system.svc:8063/internal/bundles/{ID}"));
    }
}
