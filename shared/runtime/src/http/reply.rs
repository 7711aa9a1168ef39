//! Building answers.

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::Full;

/// A whole answer.
pub type Reply = Response<Full<Bytes>>;

/// An answer of one sentence. The sentence must quote nothing of the request.
#[must_use]
pub fn text(status: StatusCode, sentence: &str) -> Reply {
    let mut line = String::with_capacity(sentence.len() + 1);
    line.push_str(sentence);
    line.push('\n');
    bytes(status, "text/plain; charset=utf-8", line.into())
}

/// An answer of JSON.
#[must_use]
pub fn json(status: StatusCode, body: Vec<u8>) -> Reply {
    bytes(status, "application/json", body.into())
}

/// An answer of any type.
#[must_use]
pub fn bytes(status: StatusCode, content_type: &'static str, body: Bytes) -> Reply {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    with_header(reply, CONTENT_TYPE, content_type)
}

/// The same answer with one header more.
#[must_use]
pub fn with_header(mut reply: Reply, name: HeaderName, value: &'static str) -> Reply {
    reply.headers_mut().insert(name, HeaderValue::from_static(value));
    reply
}

/// The same answer, after which the connection is closed.
#[must_use]
pub fn closing(reply: Reply) -> Reply {
    with_header(reply, CONNECTION, "close")
}
