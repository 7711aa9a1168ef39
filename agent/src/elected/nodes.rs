//! Which nodes are lost, and which agents are silent (case B143).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cofferdam_kubernetes::json::{condition, label, text};
use serde_json::Value;
use tokio::time::Instant;

use super::outage::Outage;
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
    /// What something is to be done about.
    pub(super) outages: Outages,
    /// How many nodes are not Ready and were, whether or not anything is done about it.
    pub(super) not_ready_count: usize,
    /// Too many nodes seem lost at once, or seemed so a while ago, which is more likely a mistake about them: nothing is done
    /// about any.
    pub(super) is_braked: bool,
}

/// The nodes that something is to be done about, with what is wrong with each, and since when, which tells an outage from
/// one that follows it. Lost are those that are not Ready for a while, or deleted; silent Ready ones without an agent that
/// works.
pub(super) type Outages = BTreeMap<String, (Outage, Instant)>;

/// Where the judgement changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The share of the nodes, 0 to 1, above which they are not believed to be lost.
    pub(crate) lost_node_share: f64,
    /// How long a node must not be Ready until it is lost, and how long few enough nodes must be lost until that is believed
    /// again. The cluster notices kubelets that lose the API server together, and come back together, group by group: whoever
    /// believed the first group would do so before it is seen that there are too many, and the last before it is back.
    pub(crate) lost_node: Duration,
    /// How long an agent of a Ready node may be unready or missing until it is silent.
    pub(crate) silent_agent: Duration,
}

/// The nodes that have joined and were not Ready since, whatever they say by now: where one falls silent before it is Ready,
/// no session is there. Goes by all that is told of each, since one may be Ready for a moment in which nobody looks at all.
#[derive(Debug, Default)]
pub(super) struct Joined(BTreeSet<String>);

impl Joined {
    /// A watch told how a node is; none for one that is gone.
    pub(super) fn told(&mut self, name: &str, now: Option<State>) {
        match now {
            Some(State::Starting) => {
                self.0.insert(name.to_owned());
            }
            Some(State::NotReady) => {}
            Some(State::Ready) | None => {
                self.0.remove(name);
            }
        }
    }

    /// A list told how all nodes are, and nothing of how they were since the last that was heard of them.
    pub(super) fn listed<'a>(&mut self, nodes: impl IntoIterator<Item = (&'a String, &'a Node)>) {
        let starting = nodes.into_iter().filter(|(_, node)| node.state == State::Starting);
        self.0 = starting.map(|(name, _)| name.clone()).collect();
    }

    /// The node, as what is known here makes it.
    pub(super) fn seen(&self, name: &str, node: Node) -> Node {
        let has_only_joined = node.state == State::NotReady && self.0.contains(name);
        Node { state: if has_only_joined { State::Starting } else { node.state }, ..node }
    }
}

/// What has to be remembered between two looks.
#[derive(Debug, Default)]
pub(super) struct Memory {
    known: BTreeSet<String>,
    /// Since when each node that is not Ready is not.
    not_ready: BTreeMap<String, Instant>,
    brake: Brake,
    gone: BTreeMap<String, Instant>,
    unheard: BTreeMap<String, Instant>,
}

/// Whether nodes are believed to be lost.
#[derive(Clone, Copy, Debug, Default)]
enum Brake {
    #[default]
    Off,
    /// Too many are not Ready.
    On,
    /// There were too many until then.
    Easing(Instant),
}

impl Memory {
    /// Looks at all nodes, by name, and all agents. Also says when to look again if nothing changes until then, since time
    /// alone makes nodes lost and agents silent; never, if it does not.
    pub(super) fn assess<'a>(
        &mut self,
        nodes: &BTreeMap<&'a str, Node>,
        agents: impl IntoIterator<Item = &'a Agent>,
        limits: Limits,
        now: Instant,
    ) -> (Assessment, Option<Instant>) {
        self.note_gone(nodes, now);
        self.note_not_ready(nodes, limits, now);
        self.note_unheard(nodes, agents, now);
        let is_braked = !matches!(self.brake, Brake::Off);
        let mut outages: Outages = lasting(&self.unheard, Outage::Silent, limits.silent_agent, now).collect();
        if !is_braked {
            outages.extend(lasting(&self.not_ready, Outage::Lost, limits.lost_node, now));
            outages.extend(lasting(&self.gone, Outage::Lost, Duration::ZERO, now));
        }
        let assessment = Assessment { outages, not_ready_count: self.not_ready.len(), is_braked };
        (assessment, self.next(limits, now))
    }

    /// When time alone will change what is assessed.
    fn next(&self, limits: Limits, now: Instant) -> Option<Instant> {
        let easing = match &self.brake {
            Brake::Easing(since) => Some(since),
            Brake::Off | Brake::On => None,
        };
        let lost = self.not_ready.values().chain(easing).map(|since| (since, limits.lost_node));
        let silent = self.unheard.values().map(|since| (since, limits.silent_agent));
        let forgotten = self.gone.values().map(|since| (since, GONE));
        // What is so far ahead that no clock shows it never is.
        let times = lost.chain(silent).chain(forgotten).filter_map(|(since, after)| since.checked_add(after));
        times.filter(|at| *at > now).min()
    }

    /// Nodes that were there and are not any more.
    fn note_gone(&mut self, nodes: &BTreeMap<&str, Node>, now: Instant) {
        for name in self.known.iter().filter(|name| !nodes.contains_key(name.as_str())) {
            self.gone.entry(name.clone()).or_insert(now);
        }
        self.known = nodes.keys().map(|name| (*name).to_owned()).collect();
        self.gone.retain(|name, since| !nodes.contains_key(name.as_str()) && now.duration_since(*since) < GONE);
    }

    /// Nodes that are not Ready, and whether they are too many.
    fn note_not_ready(&mut self, nodes: &BTreeMap<&str, Node>, limits: Limits, now: Instant) {
        let in_state = |state| nodes.iter().filter(move |(_, node)| node.state == state).map(|(name, _)| *name);
        self.not_ready = noted(&self.not_ready, in_state(State::NotReady), now);
        let not_ready = self.not_ready.len();
        let settled = not_ready + in_state(State::Ready).count();
        // Nodes that were deleted are not counted: that was somebody's will, and half a cluster may go at night.
        #[expect(clippy::cast_precision_loss, reason = "no cluster has 2^53 nodes")]
        let are_too_many = not_ready > 1 && not_ready as f64 > limits.lost_node_share * settled as f64;
        self.brake = match self.brake {
            _ if are_too_many => Brake::On,
            Brake::On => Brake::Easing(now),
            Brake::Easing(since) if now.duration_since(since) >= limits.lost_node => Brake::Off,
            before => before,
        };
    }

    /// Ready nodes whose agent is not ready. Of a node that is not Ready, it is no wonder.
    fn note_unheard<'a>(
        &mut self,
        nodes: &BTreeMap<&str, Node>,
        agents: impl IntoIterator<Item = &'a Agent>,
        now: Instant,
    ) {
        let heard: BTreeSet<_> =
            agents.into_iter().filter(|agent| agent.is_ready).map(|agent| agent.node.as_str()).collect();
        let is_unheard =
            |(name, node): &(&&str, &Node)| node.state == State::Ready && node.has_agent && !heard.contains(**name);
        self.unheard = noted(&self.unheard, nodes.iter().filter(is_unheard).map(|(name, _)| *name), now);
    }
}

/// Since when something is so of each of these, with what was noted before.
fn noted<'a>(
    before: &BTreeMap<String, Instant>,
    names: impl Iterator<Item = &'a str>,
    now: Instant,
) -> BTreeMap<String, Instant> {
    names.map(|name| (name.to_owned(), before.get(name).copied().unwrap_or(now))).collect()
}

/// The outages that have lasted long enough.
fn lasting(
    noted: &BTreeMap<String, Instant>,
    outage: Outage,
    at_least: Duration,
    now: Instant,
) -> impl Iterator<Item = (String, (Outage, Instant))> {
    let is_long = move |since: &Instant| now.duration_since(*since) >= at_least;
    noted.iter().filter(move |(_, since)| is_long(since)).map(move |(name, since)| (name.clone(), (outage, *since)))
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
