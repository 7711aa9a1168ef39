//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::counts::ListenerCounts;
use super::limits::{Limits, READ_BUFFER_BYTES};
use super::places::Place;
use super::reply::{self, Reply};
use super::server::Phases;
use super::timed::{Progress, Timed};
use super::upgrade::{Next, Upgraded};
use crate::panics;

/// How long a connection that has not asked anything yet may still do so once the listener is closed: its client
/// connected in good faith, and its request is probably on its way.
const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Serves requests on `stream` until the client leaves, a bound is passed or the phases say so, and whatever protocol
/// it switches to until that ends.
pub(super) async fn serve<S, H, F>(
    stream: S,
    place: Option<Place>,
    handler: &H,
    limits: &Limits,
    counts: &ListenerCounts,
    phases: &Phases,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    let progress = Arc::new(Progress::new(place));
    let next = Mutex::new(None);
    let service = service_fn(|request| answer(request, handler, &progress, &next, counts, phases));
    let io = TokioIo::new(Timed::new(stream, Arc::clone(&progress), limits.head, limits.write));
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(READ_BUFFER_BYTES)
        .serve_connection(io, service);

    let outcome = {
        let mut closing = pin!(closing(phases, &progress));
        let before_closing = tokio::select! {
            biased;
            outcome = &mut connection => Some(outcome),
            () = &mut closing => None,
        };
        if let Some(outcome) = before_closing {
            outcome
        } else {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    if let Err(error) = &outcome
        && is_fault(error, &progress)
    {
        counts.connection_errors.inc();
        // hyper's errors name what went wrong on the wire and quote nothing of it.
        tracing::debug!(listener = counts.listener(), %error, "a connection ended badly");
    }
    let parts = connection.into_parts();
    let stream = parts.io.into_inner();
    let next = next.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Ok(()), Some(next)) = (outcome, next) {
        return switched(next, Upgraded { read_ahead: parts.read_buf, stream: Box::new(stream) }, counts).await;
    }
    linger(stream, limits.linger).await;
}

/// Whether somebody did something wrong. It is nobody's fault when an idle connection reaches its bound, which hyper
/// calls a timeout, or when a client has had enough of an answer that has no end.
fn is_fault(error: &hyper::Error, progress: &Progress) -> bool {
    let is_stalled = || {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
    };
    !error.is_timeout() && (!progress.is_streaming() || error.is_user() || is_stalled())
}

/// Lets another protocol have the connection.
async fn switched(next: Next, upgraded: Upgraded, counts: &ListenerCounts) {
    if panics::catch(async { next(upgraded).await }).await.is_err() {
        counts.panics.inc();
    }
}

/// Waits until this connection has to take no further request.
async fn closing(phases: &Phases, progress: &Progress) {
    phases.close.cancelled().await;
    if progress.heads() == 0 {
        // The answer to a first request that comes now says `connection: close` and ends the connection by itself.
        tokio::time::sleep(FIRST_REQUEST_GRACE).await;
    }
}

async fn answer<H, F>(
    request: Request<Incoming>,
    handler: &H,
    progress: &Arc<Progress>,
    next: &Mutex<Option<Next>>,
    counts: &ListenerCounts,
    phases: &Phases,
) -> Result<Reply, Infallible>
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    progress.head_complete();
    let mut reply = panics::catch(async { handler(request).await }).await.unwrap_or_else(|panics::Panicked| {
        counts.panics.inc();
        reply::closing(reply::text(StatusCode::INTERNAL_SERVER_ERROR, "an internal error; the log says where"))
    });
    reply.body_mut().begins(progress, &counts.panics);
    if let Some(follows) = reply.body_mut().take_next() {
        *next.lock().unwrap_or_else(PoisonError::into_inner) = Some(follows);
        return Ok(reply);
    }
    // Once this replica is on its way out, every answer sends its connection elsewhere.
    Ok(if phases.retire.is_cancelled() { reply::closing(reply) } else { reply })
}

/// Ends our side, then throws away what still comes until the peer ends its side too; see [`Limits::linger`].
pub(super) async fn linger<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, within: Duration) {
    let drained = async {
        stream.shutdown().await?;
        let mut scrap = vec![0; 16 * 1024];
        while stream.read(&mut scrap).await? > 0 {}
        Ok::<(), std::io::Error>(())
    };
    // Whatever went wrong here, the connection is over.
    let _ = tokio::time::timeout(within, drained).await;
}

#[cfg(test)]
mod tests;
