//! The end of a process that serves: it turns unready, goes on until everybody knows, and then finishes.

use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::http::{Drained, Phases, Reply, Server};
use crate::ready::Readiness;
use crate::stop::Stop;

/// A server on its port, in a task of its own.
#[derive(Debug)]
pub struct Serving {
    phases: Phases,
    task: JoinHandle<Drained>,
}

/// Why the end was not orderly.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undrained {
    /// A second signal, or requests that took too long.
    #[error("stopped before all requests were answered")]
    CutOff,
    /// A listener was gone by then.
    #[error("a listener failed; what was in flight is lost")]
    Failed,
}

impl Serving {
    /// Begins to serve; see [`Server::serve`].
    pub fn begin<H, F>(server: Server, listener: TcpListener, handler: H) -> Self
    where
        H: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
        F: Future<Output = Reply> + Send + 'static,
    {
        Self { phases: server.phases.clone(), task: tokio::spawn(server.serve(listener, handler)) }
    }

    /// Waits until it has ended, which it does by itself only if it fails. Must not be used after that.
    pub async fn ended(&mut self) {
        // Whatever it ended with, it is gone.
        let _ = (&mut self.task).await;
    }

    /// None where it had failed.
    async fn close(self) -> Option<Drained> {
        self.phases.retire.cancel();
        self.phases.close.cancel();
        self.task.await.ok()
    }
}

/// Ends a process that serves.
///
/// It turns unready at once and goes on for `delay`, since others hear of it only after a while. Then all of `serving` take
/// no new connections and finish what is in flight. `admin` stays open to the end. Asked to abort, all end at once.
pub async fn drain(
    stop: &Stop,
    readiness: &Readiness,
    delay: Duration,
    serving: Vec<Serving>,
    admin: Serving,
) -> Result<(), Undrained> {
    readiness.withdraw("draining");
    for one in &serving {
        one.phases.retire.cancel();
    }
    tracing::info!(drain_delay = ?delay, "unready, still serving");
    let drained = async {
        tokio::time::sleep(delay).await;
        for one in &serving {
            one.phases.close.cancel();
        }
        // What one of them has lost is no reason for the others to break off.
        let (mut cut_off, mut failed) = (0, false);
        for one in serving {
            match one.close().await {
                Some(drained) => cut_off += drained.cut_off,
                None => failed = true,
            }
        }
        (cut_off, failed)
    };
    let (cut_off, failed) = tokio::select! {
        () = stop.aborted() => return Err(Undrained::CutOff),
        drained = drained => drained,
    };
    if admin.close().await.is_none() {
        tracing::warn!("the admin listener failed while it was closing");
    }
    if failed {
        return Err(Undrained::Failed);
    }
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "cut off what was still in flight");
        return Err(Undrained::CutOff);
    }
    tracing::info!("drained");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::StatusCode;
    use prometheus::Registry;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::sync::Notify;

    use super::*;
    use crate::http::{Counts, Limits, reply};

    fn server(name: &'static str) -> Server {
        let counts = Counts::register(&Registry::new()).unwrap().of(name);
        Server { tls: None, limits: Limits::default(), counts, phases: Phases::default() }
    }

    #[tokio::test]
    async fn what_one_listener_has_lost_is_no_reason_for_another_to_lose_more() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (has_begun, may_go_on) = (Arc::clone(&begun), Arc::clone(&goes_on));
        let works = Serving::begin(server("works"), listener, move |_| {
            let (begun, goes_on) = (Arc::clone(&begun), Arc::clone(&goes_on));
            async move {
                begun.notify_one();
                goes_on.notified().await;
                reply::text(StatusCode::OK, "whole")
            }
        });
        let failed = Serving { phases: Phases::default(), task: tokio::spawn(async { panic!("it fails") }) };
        let admin = Serving::begin(server("admin"), TcpListener::bind("127.0.0.1:0").await.unwrap(), |_| async {
            reply::text(StatusCode::OK, "admin")
        });
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        has_begun.notified().await;
        let closing = works.phases.close.clone();
        let drained = tokio::spawn(async move {
            let (stop, readiness) = (Stop::new(), Readiness::new());
            drain(&stop, &readiness, Duration::ZERO, vec![failed, works], admin).await
        });
        closing.cancelled().await;
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert!(!drained.is_finished(), "it does not end before the other's request has its answer");
        may_go_on.notify_one();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("\r\n\r\nwhole\n"), "{answer}");
        assert_eq!(drained.await.unwrap(), Err(Undrained::Failed));
    }
}
