//! Watches nodes and agents, and tells what is wrong with them.

use std::future::pending;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::cluster::{Resource, Selection};
use crate::elected::Context;
use crate::elected::nodes::{Agent, Assessment, Limits, Memory, Node};
use crate::json::name;
use crate::watch::{Collected, Lookout};

/// The pods of the agents, in Cofferdam's namespace.
const AGENTS: &str = "app.kubernetes.io/name=cofferdam,app.kubernetes.io/component=agent";

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
    let mut memory = Memory::default();
    let mut next = None;
    loop {
        tokio::select! {
            goes_on = lookout.changed() => if !goes_on { return },
            () = at(next) => {}
        }
        let Some((assessment, again)) = assess(&mut memory, &lookout.seen(), context.limits) else { continue };
        next = again;
        context.metrics.assessed(&assessment);
        tell.send_if_modified(|told| {
            let is_new = *told != assessment;
            *told = assessment;
            is_new
        });
    }
}

/// Waits until then; for ever, where there is no such time.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => pending().await,
    }
}

/// None before all was listed: half of it would make nodes look deleted, and agents missing.
fn assess(memory: &mut Memory, seen: &Seen, limits: Limits) -> Option<(Assessment, Option<Instant>)> {
    let (nodes, agents) = (seen.nodes.all()?, seen.agents.all()?);
    let nodes = nodes.iter().map(|(name, node)| (name.as_str(), *node)).collect();
    Some(memory.assess(&nodes, agents.values(), limits, Instant::now()))
}
