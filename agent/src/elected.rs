//! What one agent of the cluster does for all: lost nodes, silent agents, network policies, and what belongs to nobody.
//!
//! ```text
//! Lease ─▶ decide() ─▶ leads ─┬▶ nodes, agents ────────▶ assess() ─▶ withdrawn(), is_released(), marked() ─▶ apply, delete, patch
//!                             ├▶ namespaces, sessions ─▶ due() ─────▶ network_policy() ─────▶ apply, delete
//!                             └▶ our objects, pods ────▶ suspicion() ───────────────────────▶ delete
//! ```
//!
//! Every agent takes part in the election. The duties run while the Lease is held and are dropped where they stand when
//! it is not, but for writes that have begun: each is repeated by the next leader from what the cluster says, none keeps
//! anything that must survive. What the API server lets an agent write for other nodes hangs on the Lease as well, so that a
//! leader of yesterday that does not know it yet is refused.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cofferdam_kubernetes::Cluster;
use cofferdam_model::policy::Policy;
use cofferdam_runtime::stop::Stop;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::events::Events;

mod duties;
mod election;
mod lease;
mod metrics;
mod networks;
mod nodes;
mod orphans;
mod outage;
mod trouble;

pub(crate) use metrics::Metrics;
pub(crate) use nodes::Limits;
use trouble::Troubles;

/// How long writes that have begun may keep the Lease from being given away at the end: an agent that waits for it may have
/// more to do.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// How long the end may take, once it is asked for.
pub(crate) const ENDING: Duration = LAST_WRITES.saturating_add(election::RELEASE);

/// Who this agent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The name of its pod: the Lease's `holderIdentity`.
    pub pod: String,
    /// The namespace that Cofferdam is installed in: the pod's and the Lease's.
    pub namespace: String,
}

/// What all duties know.
#[derive(Clone)]
struct Context {
    cluster: Cluster,
    identity: Arc<Identity>,
    policy: Arc<ArcSwap<Policy>>,
    limits: Limits,
    metrics: Metrics,
    events: Events,
    troubles: Arc<Troubles>,
    /// The writes that have begun.
    writes: TaskTracker,
}

/// Takes part in the election, and does what the elected agent does while it is this one. Ends when `stop` drains, what had
/// begun being done and the Lease released, so that another agent need not wait for it to run out; that takes no longer than
/// [`ENDING`]. Never fails: what goes wrong is logged once for each kind, counted with all other errors of `cluster`, and
/// tried again.
pub(crate) async fn run(
    cluster: Cluster,
    identity: Identity,
    policy: Arc<ArcSwap<Policy>>,
    limits: Limits,
    metrics: Metrics,
    events: Events,
    stop: Stop,
) {
    let (identity, troubles) = (Arc::new(identity), Arc::default());
    let context = Context { cluster, identity, policy, limits, metrics, events, troubles, writes: TaskTracker::new() };
    let (leading, is_leading) = watch::channel(false);
    let mut candidate = election::Candidate::new(&context, leading);
    tokio::select! {
        () = candidate.stand() => {}
        () = while_leading(&context, is_leading) => {}
        () = stop.draining() => {}
    }
    // The duties are dropped by now, and begin no write. One that is on its way needs the Lease to be taken.
    context.writes.close();
    if timeout(LAST_WRITES, context.writes.wait()).await.is_err() {
        tracing::warn!(
            "writes for other nodes are on their way still; the next elected agent looks what became of them"
        );
    }
    context.metrics.not_leading();
    candidate.release().await;
}

/// Runs the duties whenever this agent leads. Never ends.
async fn while_leading(context: &Context, mut is_leading: watch::Receiver<bool>) {
    // A term does not begin with a look at the whole cluster that the one before had just taken.
    let next_sweep = Mutex::new(Instant::now());
    // A closed channel means that the election is over, and everything with it.
    while is_leading.wait_for(|leads| *leads).await.is_ok() {
        context.metrics.leading();
        tokio::select! {
            biased;
            _ = is_leading.wait_for(|leads| !*leads) => {}
            () = duties::all(context, &next_sweep) => {}
        }
        context.metrics.not_leading();
    }
    std::future::pending::<()>().await;
}

#[cfg(test)]
mod tests;
