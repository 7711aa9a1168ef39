//! Which nodes are lost, and which agents are silent (case B143).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::outage::Outage;
use crate::json::{condition, label, text};
use crate::node::State;

/// For how long a node that was deleted counts as lost: until then the cluster has deleted its pods.
const GONE: Duration = Duration::from_mins(10);

/// What matters of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// How it is.
    pub(super) state: State,
    /// Whether an agent ought to run there.
    pub(super) has_agent: bool,
}

/// What matters of an agent's pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Agent {
    /// Its node; empty before it has one.
    pub(super) node: String,
    /// Whether it is Ready.
    pub(super) is_ready: bool,
}

/// What seems to be wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Assessment {
    /// Nodes whose sessions are to be taken out of service.
    pub(super) lost: BTreeSet<String>,
    /// Ready nodes without an agent that works.
    pub(super) silent: BTreeSet<String>,
    /// How many nodes are not Ready and were, whether or not anything is done about it.
    pub(super) not_ready_count: usize,
    /// Too many nodes seem lost at once, which is more likely a mistake about them: nothing is done about any.
    pub(super) is_braked: bool,
}

impl Assessment {
    /// What is wrong with that node, as far as something is to be done about it.
    pub(super) fn outage(&self, node: &str) -> Option<Outage> {
        let silent = || self.silent.contains(node).then_some(Outage::Silent);
        self.lost.contains(node).then_some(Outage::Lost).or_else(silent)
    }
}

/// Where the judgement changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The share of the nodes above which they are not believed to be lost.
    pub(super) lost_node_share: f64,
    /// How long an agent may be unready or missing.
    pub(super) silent_agent: Duration,
}

/// What has to be remembered between two looks.
#[derive(Debug, Default)]
pub(super) struct Memory {
    known: BTreeSet<String>,
    gone: BTreeMap<String, Instant>,
    unheard: BTreeMap<String, Instant>,
}

impl Memory {
    /// Looks at all nodes, by name, and all agents.
    pub(super) fn assess<'a>(
        &mut self,
        nodes: &BTreeMap<&'a str, Node>,
        agents: impl IntoIterator<Item = &'a Agent>,
        limits: Limits,
        now: Instant,
    ) -> Assessment {
        let gone = self.gone(nodes, now);
        let in_state = |state| nodes.iter().filter(move |(_, node)| node.state == state).map(|(name, _)| *name);
        let not_ready: Vec<_> = in_state(State::NotReady).collect();
        let settled = not_ready.len() + in_state(State::Ready).count();
        // Nodes that were deleted are not counted: that was somebody's will, and half a cluster may go at night.
        #[expect(clippy::cast_precision_loss, reason = "no cluster has 2^53 nodes")]
        let is_braked = not_ready.len() > 1 && not_ready.len() as f64 > limits.lost_node_share * settled as f64;
        let not_ready_count = not_ready.len();
        let lost =
            if is_braked { BTreeSet::new() } else { not_ready.into_iter().map(str::to_owned).chain(gone).collect() };
        Assessment { lost, silent: self.silent(nodes, agents, limits, now), not_ready_count, is_braked }
    }

    /// Nodes that were there and are not any more.
    fn gone(&mut self, nodes: &BTreeMap<&str, Node>, now: Instant) -> Vec<String> {
        for name in self.known.iter().filter(|name| !nodes.contains_key(name.as_str())) {
            self.gone.entry(name.clone()).or_insert(now);
        }
        self.known = nodes.keys().map(|name| (*name).to_owned()).collect();
        self.gone.retain(|name, since| !nodes.contains_key(name.as_str()) && now.duration_since(*since) < GONE);
        self.gone.keys().cloned().collect()
    }

    /// Ready nodes whose agent has not been ready for too long. Of a node that is not Ready, it is no wonder.
    fn silent<'a>(
        &mut self,
        nodes: &BTreeMap<&str, Node>,
        agents: impl IntoIterator<Item = &'a Agent>,
        limits: Limits,
        now: Instant,
    ) -> BTreeSet<String> {
        let heard: BTreeSet<_> =
            agents.into_iter().filter(|agent| agent.is_ready).map(|agent| agent.node.as_str()).collect();
        let unheard: BTreeMap<_, _> = nodes
            .iter()
            .filter(|(name, node)| node.state == State::Ready && node.has_agent && !heard.contains(*name))
            .map(|(name, _)| ((*name).to_owned(), self.unheard.get(*name).copied().unwrap_or(now)))
            .collect();
        self.unheard = unheard;
        let is_silent = |since: &Instant| now.duration_since(*since) >= limits.silent_agent;
        self.unheard.iter().filter(|(_, since)| is_silent(since)).map(|(name, _)| name.clone()).collect()
    }
}

impl Node {
    /// Reads a Node.
    pub(super) fn read(node: &Value) -> Self {
        // Agents are Linux programs. A node without the label has a kubelet that never reported.
        let has_agent = label(node, "kubernetes.io/os").is_none_or(|os| os == "linux");
        Self { state: State::of(node), has_agent }
    }
}

impl Agent {
    /// Reads the pod of an agent.
    pub(super) fn read(pod: &Value) -> Self {
        let ready = condition(&pod["status"], "Ready");
        Self {
            node: text(&pod["spec"]["nodeName"]).to_owned(),
            is_ready: ready.is_some_and(|condition| condition["status"] == "True"),
        }
    }
}

#[cfg(test)]
mod tests;
