//! Takes endpoints out of service that nobody else takes away, and marks the sessions that nobody looks after.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cofferdam_model::keys::{AGENT, MANAGED_BY, NODE_HASH, SESSION};
use futures_util::{StreamExt, stream};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Logged, WRITES, What, Write};
use crate::backoff::Backoff;
use crate::cluster::{Resource, Selection};
use crate::desired::node_hash;
use crate::elected::Context;
use crate::elected::nodes::Assessment;
use crate::elected::outage::{Outage, Pod, leads_astray, marked, withdrawn};
use crate::events::Tone;
use crate::json;
use crate::node::State;
use crate::objects::{Kind, resource};
use crate::report::time;

/// What is new on a node that stays lost is found as often as this.
const ROUND: Duration = Duration::from_secs(10);

/// After a round in which something failed; at most as long as a round.
const RETRY: Duration = Duration::from_secs(1);

const NODES: &str = "looking whether a node is lost";
const SLICES: &str = "taking endpoints out of service";
const PODS: &str = "marking the sessions of a node";

/// What is remembered from one round to the next.
#[derive(Debug, Default)]
struct Memory {
    /// The uids of sessions that were marked while the agent of their node has been silent. One that is unready and works all
    /// the same writes over a mark what it knows, and two that contradict each other would go on for ever: so each is marked
    /// once. Only the elected agent knows how long a silence lasts; an agent that others call silent does not know it.
    marked: BTreeMap<String, BTreeSet<String>>,
    /// Of which look each node's last was, and for what.
    looks: BTreeMap<String, (Outage, u64)>,
    /// How many looks there were.
    count: u64,
}

impl Memory {
    /// Forgets what is over.
    fn keep(&mut self, assessment: &Assessment) {
        self.marked.retain(|node, _| assessment.silent.contains(node));
        self.looks.retain(|node, (outage, _)| assessment.outage(node) == Some(*outage));
    }

    /// The nodes with an outage: those that nobody has looked at yet come first, the lost ones before the others, and then
    /// those whose last look is the oldest, so that none waits for ever where the assessment changes all the time.
    fn order(&self, assessment: &Assessment) -> Vec<(String, Outage)> {
        let lost = assessment.lost.iter().map(|node| (node.clone(), Outage::Lost));
        let silent = assessment.silent.iter().map(|node| (node.clone(), Outage::Silent));
        let mut nodes: Vec<_> = lost.chain(silent).collect();
        nodes.sort_by_key(|(node, _)| self.looks.get(node).map(|(_, look)| *look));
        nodes
    }

    fn looks_at(&mut self, node: &str, outage: Outage) {
        self.count += 1;
        self.looks.insert(node.to_owned(), (outage, self.count));
    }
}

/// Does what the newest assessment asks for. Never ends.
pub(super) async fn run(context: &Context, mut told: watch::Receiver<Assessment>) {
    let mut is_braked = false;
    let mut failures = Backoff::new(RETRY, ROUND);
    let mut memory = Memory::default();
    loop {
        let assessment = told.borrow_and_update().clone();
        if assessment.is_braked != is_braked {
            is_braked = assessment.is_braked;
            tell_brake(context, &assessment);
        }
        memory.keep(&assessment);
        let pause = if round(context, &assessment, &told, &mut memory).await {
            failures.over();
            ROUND
        } else {
            failures.failed()
        };
        tokio::select! {
            // Whoever tells does not end before this does.
            _ = told.changed() => {}
            () = sleep(pause) => {}
        }
    }
}

/// One look at every node with an outage. It is left as soon as the assessment is another: a node that was lost just now need
/// not wait for those that were lost before. Whether all of it succeeded.
async fn round(
    context: &Context,
    assessment: &Assessment,
    told: &watch::Receiver<Assessment>,
    memory: &mut Memory,
) -> bool {
    // Asked again before every write, too: a node that is back belongs to its own agent.
    let holds = || !told.has_changed().unwrap_or_default();
    let mut is_fine = true;
    for (node, outage) in memory.order(assessment) {
        if !holds() {
            return is_fine;
        }
        memory.looks_at(&node, outage);
        is_fine &= look(context, &node, outage, memory, &holds).await.is_ok();
    }
    if is_fine {
        context.troubles.over(NODES);
        context.troubles.over(SLICES);
        context.troubles.over(PODS);
    }
    is_fine
}

/// One look at a node.
async fn look(
    context: &Context,
    node: &str,
    outage: Outage,
    memory: &mut Memory,
    holds: &impl Fn() -> bool,
) -> Result<(), Logged> {
    if outage == Outage::Lost && !is_lost(context, node).await? {
        return Ok(());
    }
    // Slices before pods: none is judged by a pod as it was before the slice was written, since one that was written after it
    // was listed is refused for its version.
    let slices = slices(context, node, outage, holds).await;
    if !holds() {
        return slices.map(drop);
    }
    let pods = pods(context, node).await?;
    let withdrawn = match slices {
        Ok(mut slices) => {
            slices.retain(|slice| leads_astray(slice, &pods));
            withdraw(context, node, &slices, holds).await
        }
        Err(Logged) => Err(Logged),
    };
    // On a lost node nobody writes over a mark, so none is remembered.
    let mut nothing = BTreeSet::new();
    let marked = match outage {
        Outage::Lost => &mut nothing,
        Outage::Silent => memory.marked.entry(node.to_owned()).or_default(),
    };
    mark(context, node, outage, pods, marked, holds).await.and(withdrawn)
}

/// Whether the node is lost by what the API server says now: where nodes cannot be watched, the last picture of them stays,
/// and may be old.
async fn is_lost(context: &Context, node: &str) -> Result<bool, Logged> {
    let found = context.find(NODES, &Resource::core("nodes"), None, node).await?;
    Ok(found.is_none_or(|node| State::of(&node).is_lost()))
}

/// The pods of a node with the label of a session. One that has lost it since is not among them: its slice stays in service
/// while the agent is silent, and nobody marks it.
async fn pods(context: &Context, node: &str) -> Result<Vec<Pod>, Logged> {
    let resource = Resource::core("pods");
    // API servers have an index of pods by node. It serves a first page, but for the later ones they look through the pods of
    // all nodes. A list from their cache (`resourceVersion=0`) needs no later ones, and knows no pages: what authors make
    // large would be in memory all at once. So it is pages, as large as may be.
    let (labels, fields) = (SESSION.to_owned(), format!("spec.nodeName={node}"));
    let selection = Selection { labels, fields, ..Selection::default() };
    let (mut pages, mut pods) = (context.cluster.pages(&resource, &selection).bounded(), Vec::new());
    while let Some(page) = context.told(PODS, pages.next_of().await)? {
        pods.extend(page.items);
    }
    Ok(pods)
}

/// Our slices of a node that have endpoints. Of a lost node there are none to be judged: what is read is out of service.
async fn slices(
    context: &Context,
    node: &str,
    outage: Outage,
    holds: &impl Fn() -> bool,
) -> Result<Vec<Value>, Logged> {
    let resource = resource(Kind::EndpointSlice, "v1");
    let labels = format!("{MANAGED_BY}={AGENT},{NODE_HASH}={}", node_hash(node));
    let selection = Selection { labels, ..Selection::default() };
    let (mut pages, mut slices, mut result) = (context.cluster.pages(&resource, &selection), Vec::new(), Ok(()));
    while holds()
        && let Some(page) = context.told(SLICES, pages.next().await)?
    {
        match outage {
            Outage::Lost => result = withdraw(context, node, &page.items, holds).await.and(result),
            Outage::Silent => slices.extend(page.items.into_iter().filter(|slice| withdrawn(slice, node).is_some())),
        }
    }
    result.map(|()| slices)
}

/// Takes the endpoints of these slices out of service, as far as they are that node's.
async fn withdraw(context: &Context, node: &str, slices: &[Value], holds: &impl Fn() -> bool) -> Result<(), Logged> {
    let mut writes = Vec::new();
    for apply in slices.iter().filter_map(|slice| withdrawn(slice, node)) {
        let (namespace, name) = (json::namespace(&apply).to_owned(), json::name(&apply).to_owned());
        writes.push(async move {
            if !holds() {
                return (name, Ok(false));
            }
            let what = What::Apply(resource(Kind::EndpointSlice, "v1"), apply);
            (name.clone(), context.write(SLICES, Write { namespace, name, what }).await)
        });
    }
    write_all(writes, node, "endpoint slices of a node are out of service", &mut BTreeSet::new()).await
}

/// Marks the sessions among the pods of a node, but those that are `marked`, which holds all that are then.
async fn mark(
    context: &Context,
    node: &str,
    outage: Outage,
    pods: Vec<Pod>,
    marked_before: &mut BTreeSet<String>,
    holds: &impl Fn() -> bool,
) -> Result<(), Logged> {
    let now = time(Timestamp::now());
    let there: BTreeSet<&str> = pods.iter().map(|pod| pod.uid.as_str()).collect();
    marked_before.retain(|uid| there.contains(uid.as_str()));
    let mut writes = Vec::new();
    for pod in pods {
        let Some(patch) = marked(&pod, outage, node, &now).filter(|_| !marked_before.contains(&pod.uid)) else {
            continue;
        };
        let Pod { namespace, name, uid, .. } = pod;
        writes.push(async move {
            if !holds() {
                return (uid, Ok(false));
            }
            let write = Write { namespace, name, what: What::Status(patch) };
            (uid, context.write(PODS, write).await)
        });
    }
    let what = match outage {
        Outage::Lost => "sessions of a lost node are marked",
        Outage::Silent => "sessions of a node with a silent agent are marked",
    };
    write_all(writes, node, what, marked_before).await
}

/// Some writes at a time, each of what it is called by; a line in the log for all of them. What is written now joins
/// `written`.
async fn write_all<F: Future<Output = (String, Result<bool, Logged>)>>(
    writes: Vec<F>,
    node: &str,
    what: &'static str,
    written: &mut BTreeSet<String>,
) -> Result<(), Logged> {
    let (mut count, mut result) = (0_usize, Ok(()));
    let mut writes = stream::iter(writes).buffer_unordered(WRITES);
    while let Some((name, write)) = writes.next().await {
        match write {
            Ok(true) => {
                count += 1;
                written.insert(name);
            }
            Ok(false) => {}
            // The others may well succeed.
            Err(Logged) => result = Err(Logged),
        }
    }
    if count > 0 {
        tracing::info!(node, written = count, "{what}");
    }
    result
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
    use super::*;

    #[test]
    fn whoever_was_lost_just_now_comes_first_and_nobody_waits_for_ever() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let assessed = |lost: &[&str], silent: &[&str]| Assessment {
            lost: names(lost),
            silent: names(silent),
            ..Assessment::default()
        };
        let mut memory = Memory::default();
        let order = |memory: &mut Memory, assessment: &Assessment| {
            memory.keep(assessment);
            let nodes = memory.order(assessment);
            // The round is left after the first.
            memory.looks_at(&nodes[0].0, nodes[0].1);
            nodes.into_iter().map(|(node, _)| node).collect::<Vec<_>>().join(" ")
        };
        let both = assessed(&["c", "d"], &["a", "b"]);
        assert_eq!(order(&mut memory, &both), "c d a b");
        assert_eq!(order(&mut memory, &both), "d a b c");
        assert_eq!(order(&mut memory, &both), "a b c d");
        assert_eq!(order(&mut memory, &both), "b c d a");
        assert_eq!(order(&mut memory, &both), "c d a b");
        assert_eq!(order(&mut memory, &assessed(&["c", "d", "e"], &["a", "b"])), "e d a b c", "it is new");
        assert_eq!(order(&mut memory, &assessed(&["a", "c", "d"], &["b"])), "a d b c", "it is lost now");
        order(&mut memory, &assessed(&["a", "c"], &["b"]));
        assert_eq!(order(&mut memory, &both), "d a c b", "one was back, one is no longer lost");
    }
}
