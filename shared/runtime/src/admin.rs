//! The admin port: `/livez`, `/readyz`, `/metrics`, for GET and HEAD.

use http::header::ALLOW;
use http::{Method, Request, StatusCode};

use crate::http::Reply;
use crate::http::reply;
use crate::metrics::Metrics;
use crate::ready::Readiness;

/// Answers one request.
///
/// `/livez` touches nothing: a process that can answer it is alive, and restarting it would cure nothing else.
/// `/readyz` is 200 when no gate is shut, else 503 with the names of those that are; it names what is degraded, too.
/// `/metrics` is the Prometheus text
/// format.
#[must_use]
pub fn answer<B>(request: &Request<B>, readiness: &Readiness, metrics: &Metrics) -> Reply {
    let known = ["/livez", "/readyz", "/metrics"].contains(&request.uri().path());
    if known && ![Method::GET, Method::HEAD].contains(request.method()) {
        let reply = reply::text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
        return reply::with_header(reply, ALLOW, "GET, HEAD");
    }
    match request.uri().path() {
        "/livez" => reply::text(StatusCode::OK, "ok"),
        "/readyz" => ready(readiness),
        "/metrics" => scrape(metrics),
        _ => reply::text(StatusCode::NOT_FOUND, "there are /livez, /readyz and /metrics here"),
    }
}

fn ready(readiness: &Readiness) -> Reply {
    let (pending, troubles) = (readiness.pending(), readiness.troubles());
    let (status, mut text) = match pending.as_slice() {
        [] => (StatusCode::OK, "ok".to_owned()),
        pending => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}", pending.join(", "))),
    };
    if !troubles.is_empty() {
        text.push_str("; degraded: ");
        text.push_str(&troubles.join(", "));
    }
    reply::text(status, &text)
}

fn scrape(metrics: &Metrics) -> Reply {
    match metrics.encode() {
        Ok(text) => reply::bytes(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text.into()),
        Err(error) => {
            tracing::error!(%error, "cannot encode metrics");
            reply::text(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be encoded; the log says why")
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Response;
    use http_body_util::BodyExt;

    use super::*;

    async fn ask(method: Method, path: &str, readiness: &Readiness) -> (StatusCode, String) {
        let metrics = Metrics::new("some_program", "1.2.3").unwrap();
        let request = Request::builder().method(method).uri(path).body(()).unwrap();
        let (parts, body) = Response::into_parts(answer(&request, readiness, &metrics));
        let body = body.collect().await.unwrap().to_bytes();
        (parts.status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readyz_lists_the_gates_that_are_shut() {
        let readiness = Readiness::new();
        let (policy, listener) = (readiness.gate("policy"), readiness.gate("listener"));
        let (status, text) = ask(Method::GET, "/readyz", &readiness).await;
        assert_eq!((status, text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "not ready: listener, policy\n"));
        policy.open();
        listener.open();
        assert_eq!(ask(Method::GET, "/readyz", &readiness).await, (StatusCode::OK, "ok\n".to_owned()));
    }

    #[tokio::test]
    async fn readyz_names_what_is_degraded_and_stays_ready() {
        let readiness = Readiness::new();
        readiness.degraded("policy", true);
        assert_eq!(
            ask(Method::GET, "/readyz", &readiness).await,
            (StatusCode::OK, "ok; degraded: policy\n".to_owned())
        );
        readiness.withdraw("draining");
        let (status, text) = ask(Method::GET, "/readyz", &readiness).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(text, "not ready: draining; degraded: policy\n");
    }

    #[tokio::test]
    async fn livez_does_not_care_about_readiness() {
        let readiness = Readiness::new();
        readiness.withdraw("draining");
        assert_eq!(ask(Method::GET, "/livez", &readiness).await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn only_reading_is_allowed_and_only_here() {
        let readiness = Readiness::new();
        assert_eq!(ask(Method::HEAD, "/livez", &readiness).await.0, StatusCode::OK);
        assert_eq!(ask(Method::POST, "/livez", &readiness).await.0, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(ask(Method::POST, "/mutate", &readiness).await.0, StatusCode::NOT_FOUND);
        let (status, text) = ask(Method::GET, "/metrics", &readiness).await;
        assert_eq!(status, StatusCode::OK);
        assert!(text.contains("some_program_build_info"));
    }
}
