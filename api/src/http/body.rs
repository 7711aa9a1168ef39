//! Reading what a client sends: bounded in bytes, time and memory, checked, and made a type.

use std::time::Duration;

use cofferdam_runtime::http::budget::Share;
use cofferdam_runtime::http::{Budget, body};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use hyper::body::Body;
use serde::de::DeserializeOwned;

use super::document::{self, Document, DocumentError};
use super::refusal::Refusal;
use super::validation::Shape;

/// How many of the largest bodies all requests together may hold at a time, as text and as what it became.
const LARGEST_AT_ONCE: usize = 2;

/// How much is read on the spot, in bytes. What is larger takes so long that others would wait for it.
const ON_THE_SPOT: usize = 64 * 1024;

/// The bounds of request bodies; clones share their memory.
#[derive(Clone, Debug)]
pub struct Bodies {
    max_bytes: usize,
    within: Duration,
    memory: Budget,
}

/// What was sent, and the memory that it was granted: whoever goes on holding the one keeps the other.
#[derive(Debug)]
pub struct Sent<T> {
    /// What was sent.
    pub value: T,
    /// Its memory.
    pub share: Share,
}

impl Bodies {
    /// Bodies of at most `max_bytes` that arrive within a time.
    #[must_use]
    pub fn new(max_bytes: usize, within: Duration) -> Self {
        let most = max_bytes.saturating_add(document::most_memory(max_bytes));
        Self { max_bytes, within, memory: Budget::new(most.saturating_mul(LARGEST_AT_ONCE)) }
    }

    /// Reads a body of JSON.
    ///
    /// # Errors
    /// When it is no JSON, too large, too slow, or not what `shape` says.
    pub async fn read<T, B>(&self, shape: &Shape, headers: &HeaderMap, body: B) -> Result<Sent<T>, Refusal>
    where
        T: DeserializeOwned + Send + 'static,
        B: Body + Unpin,
    {
        if !is_plain_json(headers) {
            return Err(Refusal::wrong_type());
        }
        let mut whole = body::read(body, self.max_bytes, self.within, &self.memory).await?;
        whole.share.take(document::most_memory(whole.bytes.len())).map_err(|_| Refusal::overloaded())?;
        let body::Body { bytes, share } = whole;
        let value = if bytes.len() <= ON_THE_SPOT {
            parse(shape, &bytes)?
        } else {
            let shape = shape.clone();
            let parsed = tokio::task::spawn_blocking(move || parse(&shape, &bytes)).await;
            parsed.unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The process ends.
                Err(_) => Err(Refusal::overloaded()),
            })?
        };
        Ok(Sent { value, share })
    }
}

/// Makes a type of JSON that looks like `shape`.
///
/// # Errors
/// When it is no JSON, or looks otherwise.
pub fn parse<T: DeserializeOwned>(shape: &Shape, bytes: &[u8]) -> Result<T, Refusal> {
    // A byte order mark says nothing here, and some editors write it.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.is_empty() {
        return Err(Refusal::empty());
    }
    let mut document = Document::parse(bytes).map_err(|error| match error {
        DocumentError::Malformed => Refusal::malformed(),
        DocumentError::TooMany => Refusal::too_large(error.to_string()),
    })?;
    shape.check(&mut document).map_err(Refusal::invalid)?;
    // The shape is the type's own, so it takes what has passed; its own words could quote values.
    T::deserialize(document).map_err(|_| Refusal::invalid("body is not what this route takes".to_owned()))
}

fn is_plain_json(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).map(|value: &http::HeaderValue| value.to_str().unwrap_or("?"));
    let media_type = value(CONTENT_TYPE).and_then(|text| text.split(';').next()).unwrap_or_default();
    let encoding = value(CONTENT_ENCODING).unwrap_or("identity");
    media_type.trim().eq_ignore_ascii_case("application/json") && encoding.eq_ignore_ascii_case("identity")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::HeaderValue;
    use http_body_util::Full;

    use super::*;
    use crate::wire::CreateAppSession;

    async fn read(bodies: &Bodies, content_type: &str, text: &str) -> Result<Sent<CreateAppSession>, Refusal> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap())]);
        bodies.read(&Shape::of::<CreateAppSession>(), &headers, Full::new(Bytes::from(text.to_owned()))).await
    }

    #[tokio::test]
    async fn a_body_of_json_becomes_a_type_and_nothing_else_is_taken() {
        let bodies = Bodies::new(1000, Duration::from_secs(1));
        let sent = read(&bodies, "application/json; charset=utf-8", "\u{feff}{\"inspect\": \"true\"}").await.unwrap();
        assert!(sent.value.inspect);
        for (content_type, text, refusal) in [
            ("text/plain", "{}", Refusal::wrong_type()),
            ("", "{}", Refusal::wrong_type()),
            ("application/json", "", Refusal::empty()),
            ("application/json", "{", Refusal::malformed()),
            ("application/json", "[]", Refusal::invalid("body must be object".to_owned())),
            ("application/json", &" ".repeat(1001), Refusal::too_large("Request body is too large".to_owned())),
        ] {
            assert_eq!(read(&bodies, content_type, text).await.unwrap_err(), refusal, "{content_type} {text}");
        }
    }

    #[tokio::test]
    async fn all_bodies_together_hold_no_more_than_they_may() {
        let bodies = Bodies::new(1000, Duration::from_secs(1));
        let large = format!("{{\"x\": \"{}\"}}", "x".repeat(900));
        let mut held = Vec::new();
        let refusal = loop {
            match read(&bodies, "application/json", &large).await {
                Ok(sent) => held.push(sent),
                Err(refusal) => break refusal,
            }
            assert!(held.len() < 10);
        };
        assert_eq!(refusal, Refusal::overloaded());
        assert!(held.len() >= LARGEST_AT_ONCE - 1, "{}", held.len());
        held.clear();
        assert!(read(&bodies, "application/json", &large).await.is_ok());
    }
}
