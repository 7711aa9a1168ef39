use std::future::pending;
use std::sync::{Arc, Mutex};

use cofferdam_kubernetes::Class;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use prometheus::Registry;

use super::*;

const AUDIENCE: &str = "cofferdam-api";

/// What Kubernetes 1.37 was seen to answer of a ServiceAccount's token.
fn known() -> Value {
    json!({
        "authenticated": true,
        "user": {
            "username": "system:serviceaccount:people:alice",
            "uid": "0c1d",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]},
        },
        "audiences": [AUDIENCE],
    })
}

/// Path and body of each request.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A cluster that answers everything with that status, and what it was asked.
fn cluster(status: u16, answer: Value) -> (Cluster, Asked) {
    let asked = Asked::default();
    let its_asked = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let (asked, answer) = (Arc::clone(&its_asked), answer.clone());
        async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            asked.lock().unwrap().push((path, serde_json::from_slice(&body).unwrap()));
            let body = Body::from(answer.to_string().into_bytes());
            Ok::<_, tower::BoxError>(Response::builder().status(status).body(body).unwrap())
        }
    });
    (of(kube::Client::new(service, "default")), asked)
}

fn of(client: kube::Client) -> Cluster {
    Cluster::new(client, "tests", &Registry::new()).unwrap()
}

#[tokio::test]
async fn a_token_is_reviewed_for_our_audience() {
    let (cluster, asked) = cluster(201, json!({"status": known()}));
    let user = user_of(&cluster, "jwt", AUDIENCE).await.unwrap().unwrap();
    assert_eq!(user.name(), Some("system:serviceaccount:people:alice"));
    assert_eq!(user.extra("authentication.kubernetes.io/credential-id"), Some("JTI=1"));
    assert_eq!(format!("{user:?}"), "User");
    let (path, review) = asked.lock().unwrap().remove(0);
    assert_eq!(path, "/apis/authentication.k8s.io/v1/tokenreviews");
    assert_eq!(review["spec"], json!({"token": "jwt", "audiences": [AUDIENCE]}));
}

#[test]
fn what_is_not_plainly_a_user_of_our_audience_is_nobody() {
    assert!(authenticated(&known(), AUDIENCE).is_some());
    for (path, value) in [
        ("/authenticated", json!(false)),
        ("/authenticated", json!("true")),
        ("/authenticated", Value::Null),
        ("/audiences", json!(["https://kubernetes.default.svc"])),
        ("/audiences", json!(["cofferdam-api-2"])),
        ("/audiences", json!(AUDIENCE)),
        ("/audiences", json!([])),
        ("/audiences", Value::Null),
        ("/user/username", json!("")),
        ("/user/username", Value::Null),
        ("/user", Value::Null),
        ("", json!({"error": "token expired"})),
        ("", Value::Null),
    ] {
        let mut status = known();
        *status.pointer_mut(path).unwrap() = value;
        assert_eq!(authenticated(&status, AUDIENCE), None, "{status}");
    }
}

#[tokio::test]
async fn what_somebody_may_do_is_asked_for_with_all_that_roles_and_webhooks_may_judge_by() {
    let user = User(known()["user"].clone());
    for (status, is_yes) in [
        (json!({"allowed": true}), true),
        (json!({"allowed": true, "denied": true}), false),
        (json!({"allowed": false, "reason": "no"}), false),
        (json!({"allowed": "true"}), false),
        (json!({"evaluationError": "the role is gone"}), false),
        (Value::Null, false),
    ] {
        let (cluster, asked) = cluster(201, json!({"status": status}));
        let attach = PodAccess { verb: "create", subresource: "attach" };
        assert_eq!(is_allowed(&cluster, &user, "sessions", attach).await, Ok(is_yes), "{status}");
        let (path, review) = asked.lock().unwrap().remove(0);
        assert_eq!(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
        let spec = json!({
            "user": "system:serviceaccount:people:alice",
            "uid": "0c1d",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]},
            "resourceAttributes": {"namespace": "sessions", "verb": "create", "group": "", "version": "v1",
                "resource": "pods", "subresource": "attach"},
        });
        assert_eq!(review["spec"], spec);
    }
}

#[tokio::test]
async fn an_api_server_that_cannot_be_asked_says_neither_yes_nor_no_and_nothing_repeats_the_token() {
    let status = |code: u16, reason: &str| {
        let message = "admission webhook \"w\" denied the request: hunter2";
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code})
    };
    let refusing = tower::service_fn(|_: Request<Body>| async {
        Err::<Response<Body>, tower::BoxError>("connection refused".into())
    });
    for (cluster, class) in [
        (cluster(403, status(403, "Forbidden")).0, Class::Admission),
        (cluster(429, status(429, "TooManyRequests")).0, Class::Admission),
        (cluster(200, json!("hunter2")).0, Class::Other),
        (of(kube::Client::new(refusing, "default")), Class::Unreachable),
    ] {
        let failed = match user_of(&cluster, "hunter2", AUDIENCE).await {
            Err(failed) => failed,
            // What is no status is no yes.
            Ok(user) => {
                assert_eq!((user, class), (None, Class::Other));
                continue;
            }
        };
        assert_eq!(failed.class, class);
        assert!(!failed.to_string().contains("hunter2"), "{failed}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_never_answers_is_given_up() {
    let silent = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, tower::BoxError>>());
    let cluster = of(kube::Client::new(silent, "default"));
    assert_eq!(user_of(&cluster, "jwt", AUDIENCE).await, Err(Failed::timed_out()));
}
