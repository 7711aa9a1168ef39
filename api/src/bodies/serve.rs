//! The port that session pods may reach: a pod fetches its body, and says when it has it.
//!
//! ```text
//! GET    /internal/bundles/<id>   Authorization: Bearer <token of the body>
//! DELETE /internal/bundles/<id>   X-Cofferdam-Identity: <token of the pod>
//! ```
//!
//! The token is taken from the header alone. The predecessor took it from the URL (`?token=`); ours stands in the pod's
//! annotation, where everybody who sees the pod would read it (fault D10).
//!
//! Who gets nothing is not told why: unknown, wrong, used and somebody else's look alike.

use std::time::SystemTime;

use cofferdam_runtime::http::{Reply, reply};
use futures_util::TryStreamExt as _;
use http::header::{
    ACCEPT_RANGES, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, ETAG, IF_RANGE, RANGE,
    RETRY_AFTER,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::StreamBody;
use hyper::body::Frame;

use super::claims::{self, Redeemer, Refusal};
use super::counts::{Counts, Outcome};
use super::identity::{Identify, Unidentified};
use super::range::{self, Part};
use super::store::{BodyStore, Record, StoreError};

/// Where bodies are, before the session's id.
pub const PATH: &str = "/internal/bundles/";

/// The header with the token by which a pod proves who it is.
pub const IDENTITY: HeaderName = HeaderName::from_static("x-cofferdam-identity");

/// The header of an answer with a body's bytes that asks `cofferdam-fetch` to say, by a DELETE, that it has them all.
const ACKNOWLEDGE: HeaderName = HeaderName::from_static("x-cofferdam-acknowledge");

/// The only media type there is.
const GZIP: &str = "application/gzip";

/// Who may redeem a body.
#[derive(Clone)]
pub enum Redeemers {
    /// The session's pod, `run-<id>` in this namespace, as the API server says.
    Pods {
        /// Where sessions are.
        namespace: String,
        /// Says which pod a token is of.
        identify: Identify,
    },
    /// Whoever has the body's token: where we may not ask the API server who a pod is. All who have it are one then.
    Bearers,
}

/// Answers for bodies.
#[derive(Clone)]
pub struct Bodies {
    store: BodyStore,
    redeemers: Redeemers,
    counts: Counts,
}

/// Why there is no body in the answer.
enum Denied {
    Refused(Refusal),
    Unavailable,
    WrongMethod,
}

/// The address that a pod fetches its body from; `base` is ours, as pods reach it.
#[must_use]
pub fn url(base: &str, id: &str) -> String {
    format!("{}{PATH}{id}", base.trim_end_matches('/'))
}

impl Bodies {
    /// Serves what is in `store`.
    #[must_use]
    pub fn new(store: BodyStore, redeemers: Redeemers, counts: Counts) -> Self {
        Self { store, redeemers, counts }
    }

    /// Answers one request; its body is not looked at.
    pub async fn answer<B>(&self, request: &Request<B>) -> Reply {
        let reply = match self.respond(request).await {
            Ok(reply) => reply,
            Err(Denied::Refused(refusal)) => {
                tracing::debug!(%refusal, "a body was not given out");
                self.counts.request(Outcome::Refused);
                error(StatusCode::NOT_FOUND, "not_found")
            }
            Err(Denied::Unavailable) => {
                self.counts.request(Outcome::Unavailable);
                reply::with_header(error(StatusCode::SERVICE_UNAVAILABLE, "unavailable"), RETRY_AFTER, "1")
            }
            Err(Denied::WrongMethod) => {
                reply::with_header(error(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"), ALLOW, "GET, DELETE")
            }
        };
        reply::with_header(reply, CACHE_CONTROL, "no-store")
    }

    async fn respond<B>(&self, request: &Request<B>) -> Result<Reply, Denied> {
        let id = request.uri().path().strip_prefix(PATH).ok_or(Denied::Refused(Refusal::Unknown))?;
        if ![Method::GET, Method::DELETE].contains(request.method()) {
            return Err(Denied::WrongMethod);
        }
        let headers = request.headers();
        let record = claims::find(&self.store, id, bearer(headers).unwrap_or_default()).await??;
        // Only who has a body's token makes us ask the API server.
        let who = self.redeemer(id, headers).await?;
        let now = SystemTime::now();
        if request.method() == Method::DELETE {
            claims::acknowledge(&self.store, id, &record, &who, now).await??;
            self.counts.request(Outcome::Acknowledged);
            return Ok(reply::empty(StatusCode::NO_CONTENT));
        }
        claims::redeem(&self.store, id, &record, &who, now).await??;
        self.send(id, &record, headers).await
    }

    async fn redeemer(&self, id: &str, headers: &HeaderMap) -> Result<Redeemer, Denied> {
        let (namespace, identify) = match &self.redeemers {
            Redeemers::Pods { namespace, identify } => (namespace, identify),
            Redeemers::Bearers => return Ok(Redeemer { pod_uid: None }),
        };
        let token = text(headers, &IDENTITY).ok_or(Denied::Refused(Refusal::Stranger))?;
        match identify(token.to_owned()).await {
            Ok(pod) if pod.namespace == *namespace && pod.name.strip_prefix("run-") == Some(id) => {
                Ok(Redeemer { pod_uid: Some(pod.uid) })
            }
            Ok(_) | Err(Unidentified::Refused) => Err(Denied::Refused(Refusal::Stranger)),
            Err(error @ Unidentified::Unavailable(_)) => {
                tracing::warn!(session = id, %error, "a pod that fetches its body has to try again");
                Err(Denied::Unavailable)
            }
        }
    }

    /// The archive, or the part of it that is asked for.
    async fn send(&self, id: &str, record: &Record, headers: &HeaderMap) -> Result<Reply, Denied> {
        let (etag, length) = (format!("\"{}\"", record.sha256), record.bytes);
        let (part, status, outcome) = match range::asked(text(headers, &RANGE), text(headers, &IF_RANGE), &etag, length)
        {
            Part::Whole => (0..length, StatusCode::OK, Outcome::Sent),
            Part::Bytes(part) => (part, StatusCode::PARTIAL_CONTENT, Outcome::Resumed),
            Part::Unsatisfiable => {
                let reply = error(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable");
                return Ok(with(reply, CONTENT_RANGE, &format!("bytes */{length}")));
            }
        };
        let bytes = self.store.read_archive(id, part.clone()).await?.ok_or(Denied::Refused(Refusal::Unknown))?;
        // The connection breaks off then, and the pod asks for the rest.
        let frames = bytes.map_ok(Frame::data).inspect_err(|error| {
            tracing::warn!(%error, "the body store broke off in the middle of a body");
        });
        self.counts.request(outcome);
        let reply = reply::streamed(status, GZIP, StreamBody::new(frames));
        let reply = reply::with_header(reply, ACCEPT_RANGES, "bytes");
        let reply = reply::with_header(reply, ACKNOWLEDGE, "delete");
        let reply = with(with(reply, ETAG, &etag), CONTENT_LENGTH, &(part.end - part.start).to_string());
        Ok(if status == StatusCode::PARTIAL_CONTENT {
            with(reply, CONTENT_RANGE, &format!("bytes {}-{}/{length}", part.start, part.end - 1))
        } else {
            reply
        })
    }
}

impl From<StoreError> for Denied {
    fn from(error: StoreError) -> Self {
        let error = cofferdam_runtime::errors::with_causes(&error);
        tracing::warn!(error, "a body cannot be given out");
        Self::Unavailable
    }
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn error(status: StatusCode, code: &str) -> Reply {
    reply::json(status, format!(r#"{{"error":"{code}"}}"#).into_bytes())
}

/// The same answer with one header more, made of digits and what is in a digest.
fn with(mut reply: Reply, name: HeaderName, value: &str) -> Reply {
    // A digest that somebody else wrote into the store may hold anything; it is left out then.
    if let Ok(value) = HeaderValue::from_str(value) {
        reply.headers_mut().insert(name, value);
    }
    reply
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// The token of `Authorization: Bearer`, whose scheme is written in either case (RFC 9110).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests;
