//! Watches nodes and agents, and tells what is wrong with them.

use tokio::sync::watch;
use tokio::time::Instant;

use crate::cluster::{Resource, Selection};
use crate::elected::Context;
use crate::elected::nodes::{Agent, Assessment, Limits, Memory, Node, Outages};
use crate::events::Tone;
use crate::json::name;
use crate::until::until;
use crate::watch::{Collected, Lookout};

/// The pods of the agents, in Cofferdam's namespace.
const AGENTS: &str = "app.kubernetes.io/name=cofferdam,app.kubernetes.io/component=agent";

#[derive(Debug, Default)]
struct Seen {
    nodes: Collected<Node>,
    agents: Collected<Agent>,
}

/// Tells every change of what something is to be done about, and nothing else: whoever is told does it at once. Ends when it has
/// to begin anew.
pub(super) async fn run(context: &Context, tell: &watch::Sender<Outages>) {
    let mut lookout = Lookout::new(context.cluster.clone(), context.metrics.watches.clone(), Seen::default());
    lookout.watch("elected_nodes", Resource::core("nodes"), Selection::default(), move |seen, change| {
        seen.nodes.take(change, |node| (name(node).to_owned(), Node::read(node))).is_some()
    });
    lookout.watch("elected_agents", Resource::core("pods"), agents(context), move |seen, change| {
        seen.agents.take(change, |pod| (name(pod).to_owned(), Agent::read(pod))).is_some()
    });
    let mut memory = Memory::default();
    let (mut next, mut is_braked) = (None, false);
    loop {
        tokio::select! {
            goes_on = lookout.changed() => if !goes_on { return },
            () = until(next) => {}
        }
        let Some((assessment, again)) = assess(&mut memory, &lookout.seen(), context.limits) else { continue };
        next = again;
        context.metrics.assessed(&assessment);
        if assessment.is_braked != is_braked {
            is_braked = assessment.is_braked;
            tell_brake(context, &assessment);
        }
        tell.send_if_modified(|told| {
            let is_new = *told != assessment.outages;
            *told = assessment.outages;
            is_new
        });
    }
}

/// The pods of all agents.
pub(super) fn agents(context: &Context) -> Selection {
    let namespace = Some(context.identity.namespace.clone());
    Selection { namespace, labels: AGENTS.to_owned(), ..Selection::default() }
}

/// None before all was listed: half of it would make nodes look deleted, and agents missing.
fn assess(memory: &mut Memory, seen: &Seen, limits: Limits) -> Option<(Assessment, Option<Instant>)> {
    let (nodes, agents) = (seen.nodes.all()?, seen.agents.all()?);
    let nodes = nodes.iter().map(|(name, node)| (name.as_str(), *node)).collect();
    Some(memory.assess(&nodes, agents.values(), limits, Instant::now()))
}

/// An Event on the agent's own pod, since there is no other object that it is about.
fn tell_brake(context: &Context, assessment: &Assessment) {
    let not_ready = assessment.not_ready_count;
    if !assessment.is_braked {
        tracing::info!(not_ready, "few enough nodes are lost to do something about them");
        return;
    }
    tracing::warn!(not_ready, "too many nodes seem lost at once, so nothing is done about any of them");
    let note = format!(
        "{not_ready} nodes are not Ready at once, a larger share than --lost-node-share allows. That may as well be a fault \
         of the control plane, so sessions stay in service. Look at the nodes' conditions."
    );
    context.events.tell_own(Tone::Warning, "TooManyNodesLost", &note);
}
