use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use prometheus::Registry;
use serde_json::json;

use super::*;

/// What an API server that always answers the same was asked: the request's line, what it takes, and its body.
type Asked = Arc<Mutex<Vec<(String, String, Value)>>>;

fn server(answer: &'static str) -> (Cluster, Asked) {
    server_of(200, answer)
}

fn server_of(status: u16, answer: &'static str) -> (Cluster, Asked) {
    let asked = Asked::default();
    let its_asked = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let asked = Arc::clone(&its_asked);
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let accept = parts.headers.get(ACCEPT).map(|accept| accept.to_str().unwrap().to_owned());
            let line = format!("{} {}", parts.method, parts.uri.path());
            let body = serde_json::from_slice(&body).unwrap_or_default();
            asked.lock().unwrap().push((line, accept.unwrap_or_default(), body));
            let answer = Response::builder().status(status).body(Body::from(answer.as_bytes().to_vec()));
            Ok::<_, Infallible>(answer.unwrap())
        }
    });
    (Cluster::new(Client::new(service, "n"), "tests", &Registry::new()).unwrap(), asked)
}

#[tokio::test]
async fn of_what_only_its_metadata_is_read_nothing_else_is_sent_whatever_is_done_to_it() {
    let (cluster, asked) = server(r#"{"metadata": {"name": "s"}}"#);
    let (secrets, object) = (Resource::core("secrets").metadata(), json!({"metadata": {"name": "s"}}));
    cluster.create(&secrets, "n", &object).await.unwrap();
    cluster.get(&secrets, Some("n"), "s").await.unwrap();
    cluster.merge(&secrets, "n", "s", &object).await.unwrap();
    cluster.apply(&secrets, "n", "s", &object).await.unwrap();
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 4);
    for (line, accept, _) in &*asked {
        assert_eq!(accept, METADATA, "{line}");
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_told_without_a_word_of_it() {
    let (cluster, _) = server(r#"{"data": {"token": "hunter2"}, hunter2"#);
    let failed = cluster.get(&Resource::core("secrets"), Some("n"), "s").await.unwrap_err();
    assert_eq!((failed.class, failed.to_string().contains("hunter2")), (Class::Other, false), "{failed}");
}

#[tokio::test]
async fn the_end_of_a_pod_has_its_time() {
    let (cluster, asked) = server("{}");
    cluster.delete_pod("n", "p", 2).await.unwrap();
    let (line, _, options) = asked.lock().unwrap().remove(0);
    assert_eq!((line.as_str(), &options["gracePeriodSeconds"]), ("DELETE /api/v1/namespaces/n/pods/p", &json!(2)));
}

#[tokio::test]
async fn what_is_reviewed_has_no_namespace_and_a_failure_repeats_none_of_it() {
    let reviews = Resource::of("tokenreviews", "authentication.k8s.io/v1");
    let review = json!({"spec": {"token": "hunter2"}});
    let (cluster, asked) = server(r#"{"status": {"authenticated": true}}"#);
    assert_eq!(cluster.review(&reviews, &review).await.unwrap()["status"]["authenticated"], true);
    let (line, _, sent) = asked.lock().unwrap().remove(0);
    assert_eq!((line.as_str(), sent), ("POST /apis/authentication.k8s.io/v1/tokenreviews", review.clone()));

    let (cluster, _) = server_of(
        403,
        r#"{"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden",
            "message": "admission webhook \"w\" denied the request: hunter2"}"#,
    );
    let failed = cluster.review(&reviews, &review).await.unwrap_err();
    assert_eq!((failed.class, failed.detail.as_str()), (Class::Admission, "403 Forbidden"));
}
