//! Watches nodes and agents, and tells what is wrong with them.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::cluster::{Resource, Selection};
use crate::elected::Context;
use crate::elected::nodes::{Agent, Assessment, Limits, Memory, Node};
use crate::json::name;
use crate::watch::{Collected, Lookout};

/// The pods of the agents, in Cofferdam's namespace.
const AGENTS: &str = "app.kubernetes.io/name=cofferdam,app.kubernetes.io/component=agent";

/// Time alone makes an agent silent.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct Seen {
    nodes: Collected<Node>,
    agents: Collected<Agent>,
}

/// Tells every change of the assessment. Ends when it has to begin anew.
pub(super) async fn run(context: &Context, tell: &watch::Sender<Assessment>) {
    let mut lookout = Lookout::new(context.cluster.clone(), context.metrics.watches.clone(), Seen::default());
    lookout.watch("elected_nodes", Resource::core("nodes"), Selection::default(), move |seen, change| {
        seen.nodes.take(change, |node| (name(node).to_owned(), Node::read(node))).is_some()
    });
    let agents = Selection {
        namespace: Some(context.identity.namespace.clone()),
        labels: AGENTS.to_owned(),
        ..Selection::default()
    };
    lookout.watch("elected_agents", Resource::core("pods"), agents, move |seen, change| {
        seen.agents.take(change, |pod| (name(pod).to_owned(), Agent::read(pod))).is_some()
    });
    let limits =
        Limits { lost_node_share: context.options.lost_node_share, silent_agent: context.options.silent_agent };
    let mut memory = Memory::default();
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            goes_on = lookout.changed() => if !goes_on { return },
            _ = ticks.tick() => {}
        }
        let Some(assessment) = assess(&mut memory, &lookout.seen(), limits) else { continue };
        context.metrics.assessed(&assessment);
        tell.send_if_modified(|told| {
            let is_new = *told != assessment;
            *told = assessment;
            is_new
        });
    }
}

/// None before all was listed: half of it would make nodes look deleted, and agents missing.
fn assess(memory: &mut Memory, seen: &Seen, limits: Limits) -> Option<Assessment> {
    let (nodes, agents) = (seen.nodes.all()?, seen.agents.all()?);
    let nodes = nodes.iter().map(|(name, node)| (name.as_str(), *node)).collect();
    Some(memory.assess(&nodes, agents.values(), limits, Instant::now()))
}
