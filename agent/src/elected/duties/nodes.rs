//! Watches nodes and agents, and tells what is wrong with them.

use cofferdam_kubernetes::json::name;
use cofferdam_kubernetes::watch::{Change, Collected, Lookout};
use cofferdam_kubernetes::{Resource, Selection, until};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::elected::Context;
use crate::elected::nodes::{Agent, Assessment, Joined, Limits, Memory, Node, Outages};
use crate::events::Tone;

/// The pods of the agents, in Cofferdam's namespace.
const AGENTS: &str = "app.kubernetes.io/name=cofferdam,app.kubernetes.io/component=agent";

#[derive(Debug, Default)]
struct Seen {
    nodes: Collected<Node>,
    joined: Joined,
    agents: Collected<Agent>,
}

impl Seen {
    /// Whether nodes may be others now.
    fn take_node(&mut self, change: Change) -> bool {
        let Self { nodes, joined, .. } = self;
        let is_listed = matches!(change, Change::Listed);
        let read = |node: &Value| (name(node).to_owned(), Node::read(node));
        let told = |name: &str, _: Option<&Node>, now: Option<&Node>| joined.told(name, now.map(|node| node.state));
        let are_others = nodes.take_each(change, read, told).is_some();
        if is_listed {
            joined.listed(nodes.all().into_iter().flatten());
        }
        are_others || is_listed
    }
}

/// Tells every change of what something is to be done about, and nothing else: whoever is told does it at once. Ends when it has
/// to begin anew.
pub(super) async fn run(context: &Context, tell: &watch::Sender<Outages>) {
    let mut lookout = Lookout::new(context.cluster.clone(), context.metrics.watches.clone(), Seen::default());
    lookout.watch("elected_nodes", Resource::core("nodes"), Selection::default(), move |seen, change| {
        seen.take_node(change)
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
    let nodes = nodes.iter().map(|(name, node)| (name.as_str(), seen.joined.seen(name, *node))).collect();
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    /// How many nodes are not Ready, after a watch told this of the only one: `(` a list begins, `)` is over, `.` it has joined,
    /// `+` it is Ready, `-` it is not.
    fn not_ready(told: &str) -> usize {
        let mut seen = Seen::default();
        for agents in [Change::Begun, Change::Listed] {
            seen.agents.take(agents, |_| unreachable!());
        }
        let node = |status| {
            let ready = json!({"type": "Ready", "status": status});
            json!({"metadata": {"name": "a"}, "status": {"conditions": [ready]}})
        };
        let mut is_news = false;
        for word in told.chars() {
            is_news = seen.take_node(match word {
                '(' => Change::Begun,
                ')' => Change::Listed,
                '.' => Change::Seen(json!({"metadata": {"name": "a"}})),
                '+' => Change::Seen(node("True")),
                _ => Change::Seen(node("Unknown")),
            });
        }
        assert!(is_news, "{told}: it is looked at");
        let limits = Limits { lost_node_share: 1.0, lost_node: Duration::ZERO, silent_agent: Duration::ZERO };
        assess(&mut Memory::default(), &seen, limits).unwrap().0.not_ready_count
    }

    #[test]
    fn b143_only_a_node_that_is_known_not_to_have_been_ready_since_it_joined_has_only_joined() {
        for (told, count) in [
            ("(.)", 0),
            ("(.)-", 0),
            ("().-", 0),
            ("(.)-+", 0),
            // Nobody has looked meanwhile.
            ("(.)+-", 1),
            ("().+-", 1),
            // Nor has a watch.
            ("(.)(-)", 1),
            ("(.)-(-)", 1),
            ("(-)", 1),
            ("(.)(.)-", 0),
            ("(+)(.)-", 0),
        ] {
            assert_eq!(not_ready(told), count, "{told}");
        }
    }
}
