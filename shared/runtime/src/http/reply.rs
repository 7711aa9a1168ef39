//! Building answers.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, SizeHint};
use prometheus::IntCounter;

use super::timed::Progress;
use super::upgrade::{Next, Upgraded};
use crate::panics;

/// An answer.
pub type Reply = Response<Outgoing>;

/// Why a body that is made while it is sent does not come to its end; the connection is closed then, so that the
/// client notices.
pub type BrokenOff = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer. A whole one costs no allocation beside its bytes.
pub struct Outgoing(Content);

enum Content {
    Whole(Full<Bytes>),
    Streamed { body: UnsyncBoxBody<Bytes, BrokenOff>, until: Option<Streaming> },
    Switching(Option<Next>),
}

/// A body is on its way, until this is dropped.
struct Streaming {
    progress: Arc<Progress>,
    panics: IntCounter,
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.progress.answered();
    }
}

impl Outgoing {
    /// Says who has the connection from now on; `panics` counts those of a body that is made while it is sent.
    pub(super) fn begins(&mut self, progress: &Arc<Progress>, panics: &IntCounter) {
        match &mut self.0 {
            Content::Whole(_) => progress.answered(),
            Content::Streamed { until, .. } => {
                progress.streaming();
                *until = Some(Streaming { progress: Arc::clone(progress), panics: panics.clone() });
            }
            Content::Switching(_) => progress.streaming(),
        }
    }

    /// What follows the answer on its connection, if that is no HTTP any more.
    pub(super) fn take_next(&mut self) -> Option<Next> {
        match &mut self.0 {
            Content::Switching(next) => next.take(),
            Content::Whole(_) | Content::Streamed { .. } => None,
        }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match &mut self.0 {
            Content::Whole(body) => Pin::new(body).poll_frame(context).map_err(|never| match never {}),
            Content::Streamed { body, until } => {
                panics::caught(|| Pin::new(body).poll_frame(context)).unwrap_or_else(|panicked| {
                    if let Some(streaming) = until {
                        streaming.panics.inc();
                    }
                    Poll::Ready(Some(Err(panicked.into())))
                })
            }
            Content::Switching(_) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Content::Whole(body) => body.is_end_stream(),
            Content::Streamed { body, .. } => body.is_end_stream(),
            Content::Switching(_) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(body) => body.size_hint(),
            Content::Streamed { body, .. } => body.size_hint(),
            Content::Switching(_) => SizeHint::with_exact(0),
        }
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Content::Whole(_) => "Outgoing(whole)",
            Content::Streamed { .. } => "Outgoing(streamed)",
            Content::Switching(_) => "Outgoing(switching)",
        })
    }
}

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
    with_header(of(status, Content::Whole(Full::new(body))), CONTENT_TYPE, content_type)
}

/// An answer without a body.
#[must_use]
pub fn empty(status: StatusCode) -> Reply {
    of(status, Content::Whole(Full::default()))
}

/// An answer that is made while it is sent. Whoever makes it sees to it that it ends when the server closes; it is
/// dropped when its client leaves, or takes no byte of what there is for [`Limits::write`](super::Limits::write).
#[must_use]
pub fn streamed<B>(status: StatusCode, content_type: &'static str, body: B) -> Reply
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BrokenOff>,
{
    let body = UnsyncBoxBody::new(body.map_err(Into::into));
    with_header(of(status, Content::Streamed { body, until: None }), CONTENT_TYPE, content_type)
}

/// The answer 101, after which the connection is `next`'s. It has none of the headers that the new protocol wants, and
/// must answer a request that asked for one (`Upgrade`).
///
/// `next` counts as a request in flight: it is cut off when the server's drain is over.
#[must_use]
pub fn switching<N, F>(next: N) -> Reply
where
    N: FnOnce(Upgraded) -> F + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let next: Next = Box::new(move |upgraded| Box::pin(next(upgraded)));
    with_header(of(StatusCode::SWITCHING_PROTOCOLS, Content::Switching(Some(next))), CONNECTION, "upgrade")
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

fn of(status: StatusCode, content: Content) -> Reply {
    let mut reply = Response::new(Outgoing(content));
    *reply.status_mut() = status;
    reply
}
