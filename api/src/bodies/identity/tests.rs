use http::{Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;

use super::*;

const AUDIENCE: &str = "cofferdam-bodies";

/// What Kubernetes 1.37 was seen to answer of a projected token.
fn answer() -> Value {
    json!({
        "kind": "TokenReview",
        "apiVersion": "authentication.k8s.io/v1",
        "spec": { "token": "jwt", "audiences": [AUDIENCE] },
        "status": {
            "authenticated": true,
            "user": {
                "username": "system:serviceaccount:cofferdam-sessions:default",
                "uid": "0c1d",
                "groups": ["system:serviceaccounts", "system:authenticated"],
                "extra": {
                    "authentication.kubernetes.io/credential-id": ["JTI=1"],
                    "authentication.kubernetes.io/node-name": ["node-1"],
                    POD_NAME: ["run-abcdefghijkl"],
                    POD_UID: ["7d9f"],
                },
            },
            "audiences": [AUDIENCE],
        },
    })
}

fn pod() -> PodIdentity {
    PodIdentity {
        namespace: "cofferdam-sessions".to_owned(),
        name: "run-abcdefghijkl".to_owned(),
        uid: "7d9f".to_owned(),
    }
}

/// A client whose API server answers so, after it has looked at what is asked.
fn client(answer: impl Fn() -> Response<Body> + Clone + Send + Sync + 'static) -> kube::Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let answer = answer.clone();
        async move {
            assert_eq!(request.method(), Method::POST);
            assert_eq!(request.uri().path(), TOKEN_REVIEWS);
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let review: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(review["spec"], json!({ "token": "jwt", "audiences": [AUDIENCE] }));
            Ok::<_, tower::BoxError>(answer())
        }
    });
    kube::Client::new(service, "default")
}

async fn identify(client: kube::Client) -> Result<PodIdentity, Unidentified> {
    token_review(client, AUDIENCE.to_owned())("jwt".to_owned()).await
}

fn told(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string().into_bytes()));
    *response.status_mut() = status;
    response
}

#[tokio::test]
async fn a_pods_token_says_which_pod_it_is_of() {
    assert_eq!(identify(client(|| told(StatusCode::CREATED, &answer()))).await, Ok(pod()));
}

#[test]
fn what_is_no_pods_token_for_this_audience_is_nobodys() {
    assert_eq!(reviewed(&answer(), AUDIENCE), Some(pod()));
    let extra = "/status/user/extra";
    for (path, value) in [
        ("/status/authenticated", json!(false)),
        ("/status/authenticated", json!("true")),
        ("/status/audiences", json!(["https://kubernetes.default.svc"])),
        ("/status/audiences", json!([])),
        ("/status/audiences", Value::Null),
        ("/status/user/username", json!("alice")),
        ("/status/user/username", json!("system:serviceaccount:cofferdam-sessions")),
        (extra, json!({})),
        (extra, json!({ POD_NAME: ["run-abcdefghijkl"] })),
        (extra, json!({ POD_NAME: ["run-abcdefghijkl"], POD_UID: [] })),
        (extra, json!({ POD_NAME: ["run-abcdefghijkl"], POD_UID: ["a", "b"] })),
        (extra, json!({ POD_NAME: [""], POD_UID: ["a"] })),
        ("/status", json!({ "error": "token expired" })),
        ("/status", Value::Null),
    ] {
        let mut answer = answer();
        *answer.pointer_mut(path).unwrap() = value;
        assert_eq!(reviewed(&answer, AUDIENCE), None, "{answer}");
    }
    assert_eq!(reviewed(&json!("TokenReview"), AUDIENCE), None);
}

#[tokio::test]
async fn an_api_server_that_cannot_be_asked_is_no_refusal_and_nothing_repeats_the_token() {
    let status = |code: u16, reason: &str| {
        let message = "the token jwt is bad";
        json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code })
    };
    let forbidden = status(403, "Forbidden");
    let throttled = status(429, "TooManyRequests");
    for client in [
        client(move || told(StatusCode::FORBIDDEN, &forbidden)),
        client(move || told(StatusCode::TOO_MANY_REQUESTS, &throttled)),
        client(|| Response::new(Body::from(b"jwt".to_vec()))),
        kube::Client::new(
            tower::service_fn(|_: http::Request<Body>| async {
                Err::<Response<Body>, tower::BoxError>("connection refused".into())
            }),
            "default",
        ),
    ] {
        let error = identify(client).await.unwrap_err();
        assert!(matches!(error, Unidentified::Unavailable(_)), "{error}");
        assert!(!error.to_string().contains("jwt"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_never_answers_is_given_up() {
    let service =
        tower::service_fn(|_: http::Request<Body>| std::future::pending::<Result<Response<Body>, tower::BoxError>>());
    let error = identify(kube::Client::new(service, "default")).await.unwrap_err();
    assert_eq!(error, Unidentified::Unavailable("no answer in time".to_owned()));
}
