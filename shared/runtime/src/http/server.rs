//! The accept loop: nothing a client does ends it, only [`Phases::close`] does.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection;
use super::counts::{HandshakeFailure, ListenerCounts};
use super::limits::Limits;
use super::places::{Place, Places};
use super::reply::Reply;

/// First and longest pause after an accept error. Such errors (no file descriptor left) do not pass at once, and
/// trying again without a pause burns the processor that the open connections need to finish.
const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// How far the end has come. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Phases {
    /// Every answer says `connection: close`, so that clients move on without losing a request.
    pub retire: CancellationToken,
    /// No new connections; those that are open finish their request.
    pub close: CancellationToken,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections that were cut off because [`Limits::drain`] was over.
    pub cut_off: usize,
}

/// Where connections come from; tests put in one that fails.
pub(super) trait Accept {
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send;
}

impl Accept for TcpListener {
    fn accept(&self) -> impl Future<Output = io::Result<(TcpStream, SocketAddr)>> + Send {
        TcpListener::accept(self)
    }
}

/// A listener's settings; [`serve`](Server::serve) is the listener.
#[derive(Clone)]
pub struct Server {
    /// With it, only TLS is spoken.
    pub tls: Option<Arc<ServerConfig>>,
    /// The bounds.
    pub limits: Limits,
    /// What is counted.
    pub counts: ListenerCounts,
    /// When to stop.
    pub phases: Phases,
}

impl Server {
    /// Answers requests on `listener` with `handler` until [`Phases::close`], then until the last request in flight is
    /// answered or [`Limits::drain`] is over.
    ///
    /// A handler that panics is counted and answered 500. A handler, and a body that is made while it is sent, is
    /// dropped in the middle if its client leaves.
    pub async fn serve<H, F>(self, listener: TcpListener, handler: H) -> Drained
    where
        H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        self.serve_on(listener, handler).await
    }

    pub(super) async fn serve_on<A, H, F>(self, listener: A, handler: H) -> Drained
    where
        A: Accept,
        H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        let places = Places::new(&self.limits);
        let tasks = TaskTracker::new();
        let cut = CancellationToken::new();
        let drain = self.limits.drain;
        let phases = self.phases.clone();
        let shared = Arc::new((self, handler));
        let start = |stream, place: Place| {
            let (shared, cut) = (Arc::clone(&shared), cut.clone());
            tasks.spawn(async move {
                let (server, handler) = &*shared;
                let leave = place.leave.clone();
                // Dropping the connection's future closes its socket.
                let connection = Box::pin(server.connection(stream, place, handler));
                cut.run_until_cancelled(leave.run_until_cancelled(connection)).await;
            });
        };

        let mut pause = ACCEPT_PAUSE.0;
        loop {
            let accepted = tokio::select! {
                biased;
                () = phases.close.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    pause = ACCEPT_PAUSE.0;
                    start(stream, places.take(|| shared.0.counts.displaced.inc()).await);
                }
                Err(error) => {
                    shared.0.counts.accept_errors.inc();
                    tracing::warn!(listener = shared.0.counts.listener(), %error, "cannot accept a connection");
                    tokio::select! {
                        () = phases.close.cancelled() => break,
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = longer(pause);
                }
            }
        }
        // Who has connected already is in the kernel's queue, and closing the listener would reset them.
        loop {
            tokio::select! {
                biased;
                accepted = listener.accept() => match (accepted, places.try_take()) {
                    (Ok((stream, _)), Some(place)) => start(stream, place),
                    _ => break,
                },
                () = std::future::ready(()) => break,
            }
        }
        drop(listener);

        tasks.close();
        if tokio::time::timeout(drain, tasks.wait()).await.is_ok() {
            return Drained { cut_off: 0 };
        }
        let cut_off = tasks.len();
        cut.cancel();
        tasks.wait().await;
        Drained { cut_off }
    }

    async fn connection<H, F>(&self, stream: TcpStream, place: Place, handler: &H)
    where
        H: Fn(Request<Incoming>) -> F,
        F: Future<Output = Reply>,
    {
        let _open = self.counts.open();
        // Answers are small and written whole; waiting to fill a packet only costs time. Without it all still works.
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.tls else {
            return connection::serve(stream, Some(place), handler, &self.limits, &self.counts, &self.phases).await;
        };
        let handshake = TlsAcceptor::from(Arc::clone(tls)).accept(stream).into_fallible();
        let (failure, stream) = match tokio::time::timeout(self.limits.handshake, handshake).await {
            Ok(Ok(stream)) => {
                return connection::serve(stream, Some(place), handler, &self.limits, &self.counts, &self.phases).await;
            }
            Ok(Err((error, stream))) => (failure(&error), Some(stream)),
            Err(_) => (HandshakeFailure::Timeout, None),
        };
        self.counts.handshake_failed(failure);
        let (listener, reason) = (self.counts.listener(), failure.as_str());
        if failure == HandshakeFailure::RefusedByClient {
            tracing::warn!(listener, reason, "a client ended the TLS handshake; does it trust our certificate?");
        } else {
            tracing::debug!(listener, reason, "a TLS handshake failed");
        }
        if let Some(stream) = stream {
            connection::linger(stream, self.limits.linger).await;
        }
    }
}

fn longer(pause: Duration) -> Duration {
    pause.saturating_mul(2).min(ACCEPT_PAUSE.1)
}

fn failure(error: &io::Error) -> HandshakeFailure {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::AlertReceived(_)) => HandshakeFailure::RefusedByClient,
        Some(_) => HandshakeFailure::Protocol,
        None => HandshakeFailure::Closed,
    }
}

#[cfg(test)]
mod tests;
