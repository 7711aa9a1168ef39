//! Watches nodes and agents, and tells what is wrong with them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Node as NodeObject, Pod};
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::elected::Context;
use crate::elected::kept::Kept;
use crate::elected::nodes::{Agent, Assessment, Limits, Memory, Node};

/// The pods of the agents, in Cofferdam's namespace.
const AGENTS: &str = "app.kubernetes.io/name=cofferdam,app.kubernetes.io/component=agent";

/// Time alone makes an agent silent.
const LOOK: Duration = Duration::from_secs(1);

const NODES: &str = "watching nodes";
const PODS: &str = "watching the pods of agents";

/// Tells every change of the assessment. Never ends.
pub(super) async fn run(context: &Context, tell: &watch::Sender<Assessment>) {
    let pods: Api<Pod> = Api::namespaced(context.client(), &context.identity.namespace);
    let nodes: Api<NodeObject> = Api::all(context.client());
    // A Node lists its images, and all of a page is read at once.
    let config = || watcher::Config::default().page_size(50);
    let mut node_events = pin!(watcher(nodes, config()).default_backoff());
    let mut pod_events = pin!(watcher(pods, config().labels(AGENTS)).default_backoff());
    let (mut nodes, mut agents) = (Kept::default(), Kept::default());
    let limits =
        Limits { lost_node_share: context.options.lost_node_share, silent_agent: context.options.silent_agent };
    let mut memory = Memory::default();
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            Some(event) = node_events.next() => match event {
                Ok(event) => {
                    context.troubles.over(NODES);
                    nodes.take(event, Node::read);
                }
                Err(error) => context.troubles.watch_broke(NODES, error),
            },
            Some(event) = pod_events.next() => match event {
                Ok(event) => {
                    context.troubles.over(PODS);
                    agents.take(event, Agent::read);
                }
                Err(error) => context.troubles.watch_broke(PODS, error),
            },
            _ = ticks.tick() => {}
        }
        // Half a list would make nodes look deleted, and agents missing.
        let (Some(nodes), Some(agents)) = (nodes.all(), agents.all()) else { continue };
        let by_name: BTreeMap<_, _> = nodes.iter().map(|((_, name), node)| (name.as_str(), *node)).collect();
        let assessment = memory.assess(&by_name, agents.values(), limits, Instant::now());
        context.metrics.assessed(&assessment);
        tell.send_if_modified(|told| {
            let is_new = *told != assessment;
            *told = assessment;
            is_new
        });
    }
}
