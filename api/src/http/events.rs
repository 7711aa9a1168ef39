//! A session's events as a stream of server-sent events.
//!
//! A stream is a reader of the [`Hub`](crate::session::hub::Hub) and what it has just read: a client that does not read
//! holds no more than that, and loses its place in time (it is told by a `gap`) or its connection.

use std::convert::Infallible;

use bytes::{BufMut as _, Bytes, BytesMut};
use cofferdam_runtime::http::{Reply, reply};
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONNECTION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::StreamBody;
use hyper::body::Frame;
use tokio_util::sync::CancellationToken;

use super::call;
use super::{BATCH_BYTES, QUIET};
use crate::session::hub::{Events, Next, Told};
use crate::wire::{Event, GAP_REASON};

/// A comment that keeps proxies from closing a stream on which nothing happens.
const HEARTBEAT: &[u8] = b": heartbeat\n\n";

/// The answer with what `events` reads, until a final status, or until `close`. `held` is dropped with it.
pub fn answer(events: Events, close: CancellationToken, held: impl Send + 'static) -> Reply {
    let source = Source { events, close, is_over: false, _held: held };
    let frames = stream::unfold(source, |mut source| async move {
        let bytes = source.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(bytes)), source))
    });
    let mut reply = reply::streamed(StatusCode::OK, "text/event-stream", StreamBody::new(frames));
    let headers = reply.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    reply
}

/// The id of the last event that the client has: what its browser remembers counts before what its page wrote into the
/// URL. What is no id is none, as 0: all that is kept.
#[must_use]
pub fn last_id(headers: &HeaderMap, query: Option<&str>) -> u64 {
    let remembered = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let written = || call::query_value(query, "lastEventId");
    remembered.map(ToOwned::to_owned).or_else(written).and_then(|id| id.trim().parse().ok()).unwrap_or(0)
}

struct Source<H> {
    events: Events,
    close: CancellationToken,
    is_over: bool,
    _held: H,
}

impl<H> Source<H> {
    /// What is sent next; nothing once it is over.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let first = tokio::select! {
            biased;
            () = self.close.cancelled() => return None,
            next = self.events.next() => next,
            () = tokio::time::sleep(QUIET) => return Some(Bytes::from_static(HEARTBEAT)),
        };
        let mut frames = BytesMut::new();
        let mut next = Some(first);
        while let Some(now) = next {
            match now {
                Next::Entry { id, entry } => put(&mut frames, Some(id), &entry),
                Next::Gap => put_gap(&mut frames),
                Next::End => {
                    self.is_over = true;
                    break;
                }
            }
            next = if frames.len() < BATCH_BYTES { self.events.try_next() } else { None };
        }
        (!frames.is_empty()).then(|| frames.freeze())
    }
}

fn put_gap(frames: &mut BytesMut) {
    let event = Event::Gap { reason: GAP_REASON.to_owned() };
    // No key of an event is anything but a string, so it can always be written.
    let json = serde_json::to_vec(&event).unwrap_or_default();
    put(frames, None, &Told { name: event.name(), json: json.into() });
}

/// JSON has no line ends, so one line is the whole of it.
fn put(frames: &mut BytesMut, id: Option<u64>, told: &Told) {
    frames.reserve(told.json.len() + 64);
    if let Some(id) = id {
        frames.put_slice(b"id: ");
        frames.put_slice(id.to_string().as_bytes());
        frames.put_u8(b'\n');
    }
    for part in [&b"event: "[..], told.name.as_bytes(), b"\ndata: ", &told.json, b"\n\n"] {
        frames.put_slice(part);
    }
}

#[cfg(test)]
mod tests;
