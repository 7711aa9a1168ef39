//! For tests: what a stand-in for an API server answers.

use http::{Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};

/// That, with this code.
pub(crate) fn reply(code: u16, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string().into_bytes()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

/// That it went well.
pub(crate) fn answer(body: &Value) -> Response<Body> {
    reply(200, body)
}

/// That it did not.
pub(crate) fn failure(code: u16, reason: &str) -> Response<Body> {
    reply(code, &json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}))
}
