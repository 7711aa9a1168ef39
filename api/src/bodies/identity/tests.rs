use http::{Request, Response};
use kube::client::Body;
use prometheus::Registry;
use serde_json::{Value, json};

use super::*;

const AUDIENCE: &str = "cofferdam-bodies";

/// What Kubernetes 1.37 was seen to answer of a projected token.
fn answer() -> Value {
    json!({"status": {
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
    }})
}

/// Which pod a token is of, by an API server that answers so.
async fn identify(answer: Option<Value>) -> Result<PodIdentity, Unidentified> {
    let service = tower::service_fn(move |_: Request<Body>| {
        let answer = answer.clone().ok_or_else(|| tower::BoxError::from("connection refused"));
        async move { answer.map(|answer| Response::new(Body::from(answer.to_string().into_bytes()))) }
    });
    let cluster = Cluster::new(kube::Client::new(service, "default"), "tests", &Registry::new()).unwrap();
    token_review(cluster, AUDIENCE.to_owned())("jwt".to_owned()).await
}

#[tokio::test]
async fn a_pods_token_says_which_pod_it_is_of() {
    let (namespace, name, uid) = ("cofferdam-sessions", "run-abcdefghijkl", "7d9f");
    let pod = PodIdentity { namespace: namespace.to_owned(), name: name.to_owned(), uid: uid.to_owned() };
    assert_eq!(identify(Some(answer())).await, Ok(pod));
}

#[tokio::test]
async fn what_is_no_pods_token_for_this_audience_is_nobodys() {
    let extra = "/status/user/extra";
    for (path, value) in [
        ("/status/authenticated", json!(false)),
        ("/status/audiences", json!(["cofferdam-api"])),
        ("/status/user/username", json!("alice")),
        ("/status/user/username", json!("system:serviceaccount:cofferdam-sessions")),
        (extra, json!({})),
        (extra, json!({ POD_NAME: ["run-abcdefghijkl"] })),
        (extra, json!({ POD_NAME: ["run-abcdefghijkl"], POD_UID: [] })),
        (extra, json!({ POD_NAME: ["run-abcdefghijkl"], POD_UID: ["a", "b"] })),
        (extra, json!({ POD_NAME: [""], POD_UID: ["a"] })),
    ] {
        let mut answer = answer();
        *answer.pointer_mut(path).unwrap() = value;
        assert_eq!(identify(Some(answer.clone())).await, Err(Unidentified::Refused), "{answer}");
    }
}

#[tokio::test]
async fn an_api_server_that_cannot_be_asked_is_no_refusal() {
    assert!(matches!(identify(None).await, Err(Unidentified::Unavailable(_))));
}
