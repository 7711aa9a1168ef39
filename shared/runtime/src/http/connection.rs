//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::counts::ListenerCounts;
use super::limits::{Limits, READ_BUFFER_BYTES};
use super::reply::{self, Reply};
use super::server::Phases;
use super::timed::{Progress, Timed};
use crate::panics;

/// How long a connection that has not asked anything yet may still do so once the listener is closed: its client
/// connected in good faith, and its request is probably on its way.
const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Serves requests on `stream` until the client leaves, a bound is passed or the phases say so.
pub(super) async fn serve<S, H, F>(stream: S, handler: &H, limits: &Limits, counts: &ListenerCounts, phases: &Phases)
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    let progress = Arc::new(Progress::default());
    let service = service_fn(|request| answer(request, handler, &progress, counts, phases));
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
    // hyper calls it a timeout when an idle connection reaches its bound: that is nobody's error.
    if let Err(error) = outcome
        && !error.is_timeout()
    {
        counts.connection_errors.inc();
        // hyper's errors name what went wrong on the wire and quote nothing of it.
        tracing::debug!(listener = counts.listener(), %error, "a connection ended badly");
    }
    linger(connection.into_parts().io.into_inner(), limits.linger).await;
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
    progress: &Progress,
    counts: &ListenerCounts,
    phases: &Phases,
) -> Result<Reply, Infallible>
where
    H: Fn(Request<Incoming>) -> F,
    F: Future<Output = Reply>,
{
    progress.head_complete();
    let reply = panics::catch(async { handler(request).await }).await.unwrap_or_else(|panics::Panicked| {
        counts.panics.inc();
        reply::closing(reply::text(StatusCode::INTERNAL_SERVER_ERROR, "an internal error; the log says where"))
    });
    progress.answered();
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
