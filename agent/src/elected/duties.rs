//! The duties of the elected agent: thin loops around what decides.

use std::time::Duration;

use cofferdam_runtime::panics;
use kube::Client;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Context;
use super::nodes::Assessment;
use super::trouble::is_outdated;

mod network;
mod nodes;
mod outages;
mod sweep;

/// No call may take longer. The API server itself gives up after a minute, but a duty has more to do.
const CALL: Duration = Duration::from_secs(10);

/// After a panic in a duty, before it begins anew.
const AFTER_A_PANIC: Duration = Duration::from_secs(5);

/// So many writes at a time: after the loss of a node there are hundreds, and the API server has other clients.
const WRITES: usize = 8;

/// All duties, side by side. Never ends; dropping it stops them where they stand.
pub(super) async fn all(context: &Context) {
    let (tell, told) = watch::channel(Assessment::default());
    tokio::join!(
        again("nodes", || nodes::run(context, &tell)),
        again("outages", || outages::run(context, told.clone())),
        again("network", || network::run(context)),
        again("sweep", || sweep::run(context)),
    );
}

/// Begins a duty anew when it panics, since the others and the agent's own node must not suffer. Never ends.
async fn again<F: Future<Output = ()>>(duty: &'static str, begin: impl Fn() -> F) {
    loop {
        if panics::catch(begin()).await.is_err() {
            tracing::error!(duty, "a duty of the elected agent panicked; it begins anew");
        }
        sleep(AFTER_A_PANIC).await;
    }
}

/// A call failed; it was told already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Failed;

impl Context {
    /// Waits for an answer, not too long. What goes wrong is told.
    async fn ask<T>(&self, doing: &'static str, call: impl Future<Output = kube::Result<T>>) -> Result<T, Failed> {
        match timeout(CALL, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                self.troubles.failed(doing, &error);
                Err(Failed)
            }
            Err(_) => {
                self.troubles.timed_out(doing);
                Err(Failed)
            }
        }
    }

    /// The same, for a write that holds for one version of an object: where that is not the newest, nothing is wrong, and
    /// the next look shows what is to be done. Whether it was written.
    async fn write<T>(&self, doing: &'static str, call: impl Future<Output = kube::Result<T>>) -> Result<bool, Failed> {
        let outdated_is_none = async {
            match call.await {
                Ok(answer) => Ok(Some(answer)),
                Err(error) if is_outdated(&error) => Ok(None),
                Err(error) => Err(error),
            }
        };
        Ok(self.ask(doing, outdated_is_none).await?.is_some())
    }

    fn client(&self) -> Client {
        self.cluster.client()
    }
}
