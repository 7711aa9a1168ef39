use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use prometheus::Registry;
use serde_json::{Value, json};

use super::*;

/// A cluster that knows `known`, who may do what its role says, until its token is taken back.
#[derive(Default)]
struct Rights {
    is_taken_back: AtomicBool,
    is_broken: AtomicBool,
    asked: AtomicUsize,
}

impl Rights {
    fn answer(&self, path: &str, review: &Value) -> Response<Body> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.is_broken.load(Ordering::Relaxed) {
            return Response::builder().status(500).body(Body::from(b"hunter2".to_vec())).unwrap();
        }
        let status = if path.ends_with("/tokenreviews") {
            let is_known = review["spec"]["token"] == "known" && !self.is_taken_back.load(Ordering::Relaxed);
            json!({"authenticated": is_known, "audiences": review["spec"]["audiences"], "user": {"username": "alice"}})
        } else {
            let (spec, asked) = (&review["spec"], &review["spec"]["resourceAttributes"]);
            let is_hers = spec["user"] == "alice" && asked["namespace"] == "n" && asked["resource"] == "pods";
            json!({"allowed": is_hers && asked["verb"] == "get" && asked["subresource"].is_null()})
        };
        Response::new(Body::from(json!({"status": status}).to_string().into_bytes()))
    }
}

fn reviewer() -> (Arc<Reviewer>, Arc<Rights>) {
    let rights = Arc::new(Rights::default());
    let its_rights = Arc::clone(&rights);
    let service = tower::service_fn(move |request: Request<Body>| {
        let rights = Arc::clone(&its_rights);
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            Ok::<_, tower::BoxError>(rights.answer(&path, &serde_json::from_slice(&body).unwrap()))
        }
    });
    let cluster = Cluster::new(kube::Client::new(service, "default"), "tests", &Registry::new()).unwrap();
    let metrics = Metrics::register(&Registry::new()).unwrap();
    (Arc::new(Reviewer::new(cluster, "n".to_owned(), "cofferdam-api".to_owned(), metrics)), rights)
}

/// Status and code of a refusal; 200 where there is none.
async fn outcome(reviewer: &Reviewer, token: &str, act: Act) -> (u16, &'static str) {
    match reviewer.review(token, act).await {
        Ok(()) => (200, ""),
        Err(refusal) => (refusal.status().as_u16(), refusal.code().unwrap()),
    }
}

#[tokio::test]
async fn a_caller_may_do_what_its_role_says_and_nobody_else_may_anything() {
    let (reviewer, rights) = reviewer();
    assert_eq!(outcome(&reviewer, "known", Act::Read).await, (200, ""));
    for act in [Act::Create, Act::Attach, Act::Change, Act::Delete] {
        assert_eq!(outcome(&reviewer, "known", act).await, (403, "forbidden"), "{act:?}");
    }
    assert_eq!(outcome(&reviewer, "guess", Act::Read).await, (401, "unauthenticated"));
    let asked = rights.asked.load(Ordering::Relaxed);
    assert_eq!(outcome(&reviewer, &"x".repeat(1024 * 1024), Act::Read).await, (401, "unauthenticated"));
    assert_eq!(rights.asked.load(Ordering::Relaxed), asked, "nobody has such a token");
}

#[tokio::test(start_paused = true)]
async fn a_verdict_is_believed_for_a_moment_and_a_token_that_was_taken_back_opens_nothing_after_it() {
    let (reviewer, rights) = reviewer();
    assert_eq!(outcome(&reviewer, "known", Act::Read).await.0, 200);
    rights.is_taken_back.store(true, Ordering::Relaxed);
    assert_eq!(outcome(&reviewer, "known", Act::Read).await.0, 200);
    tokio::time::advance(BELIEVED).await;
    assert_eq!(outcome(&reviewer, "known", Act::Read).await.0, 401);
    rights.is_taken_back.store(false, Ordering::Relaxed);
    assert_eq!(outcome(&reviewer, "known", Act::Read).await.0, 401);
    tokio::time::advance(BELIEVED).await;
    assert_eq!(outcome(&reviewer, "known", Act::Read).await.0, 200);
}

#[tokio::test]
async fn a_cluster_that_cannot_be_asked_says_yes_to_nobody_and_what_it_says_is_not_repeated() {
    let (reviewer, rights) = reviewer();
    rights.is_broken.store(true, Ordering::Relaxed);
    let refusal = reviewer.review("known", Act::Read).await.unwrap_err();
    assert_eq!((refusal.status().as_u16(), refusal.code()), (503, Some("review_unavailable")));
    assert!(!refusal.message().contains("hunter2") && !refusal.message().contains("known"), "{refusal:?}");
    rights.is_broken.store(false, Ordering::Relaxed);
    assert_eq!(outcome(&reviewer, "known", Act::Read).await.0, 200, "that is not believed for a moment");
}

#[tokio::test]
async fn many_calls_at_once_with_one_token_ask_a_few_times() {
    let (reviewer, rights) = reviewer();
    let calls: Vec<_> = (0..200)
        .map(|_| {
            let reviewer = Arc::clone(&reviewer);
            tokio::spawn(async move { outcome(&reviewer, "known", Act::Read).await.0 })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    assert!(rights.asked.load(Ordering::Relaxed) <= 2 * AT_A_TIME, "{:?}", rights.asked);
}
