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

    async fn close(self) -> Result<Drained, Undrained> {
        self.phases.retire.cancel();
        self.phases.close.cancel();
        self.task.await.map_err(|_| Undrained::Failed)
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
        let mut cut_off = 0;
        for one in serving {
            cut_off += one.close().await?.cut_off;
        }
        Ok(cut_off)
    };
    let cut_off = tokio::select! {
        () = stop.aborted() => return Err(Undrained::CutOff),
        drained = drained => drained?,
    };
    if admin.close().await.is_err() {
        tracing::warn!("the admin listener failed while it was closing");
    }
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "cut off what was still in flight");
        return Err(Undrained::CutOff);
    }
    tracing::info!("drained");
    Ok(())
}
