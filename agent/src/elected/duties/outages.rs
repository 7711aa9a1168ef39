//! Takes endpoints out of service that nobody else takes away, ends the sessions of pods that are over on a lost node, and
//! marks those that nobody looks after.

use std::collections::BTreeSet;

use cofferdam_kubernetes::{Resource, Selection, json, until};
use cofferdam_model::keys::{AGENT, MANAGED_BY, NODE_HASH, SESSION};
use futures_util::{StreamExt, stream};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::nodes::agents;
use super::{Logged, WRITES, What, Write};
use crate::desired::node_hash;
use crate::elected::Context;
use crate::elected::nodes::{Agent, Outages};
use crate::elected::outage::{Outage, Pod, leads_astray, marked, withdrawn};
use crate::node::State;
use crate::objects::{Kind, resource};
use crate::report::time;

mod looks;
mod release;

use looks::{Ended, Looked, Looks};

const NODES: &str = "looking whether a node is lost or its agent silent";
const SLICES: &str = "taking endpoints out of service";
const PODS: &str = "marking the sessions of a node";

/// Does what the newest outages ask for. Never ends.
pub(super) async fn run(context: &Context, mut told: watch::Receiver<Outages>) {
    let mut looks = Looks::default();
    loop {
        let outages = told.borrow_and_update().clone();
        looks.keep(&outages);
        round(context, &outages, &told, &mut looks).await;
        tokio::select! {
            // Whoever tells does not end before this does.
            _ = told.changed() => {}
            () = until(looks.next()) => {}
        }
    }
}

/// One look at every node whose turn it is. It is left as soon as the outages are others: a node that was lost just now need
/// not wait for those that were lost before.
async fn round(context: &Context, outages: &Outages, told: &watch::Receiver<Outages>, looks: &mut Looks) {
    // Asked again before every write, too: a node that is back belongs to its own agent.
    let holds = || !told.has_changed().unwrap_or_default();
    for (node, outage) in looks.due(outages, Instant::now()) {
        if !holds() {
            return;
        }
        let looked = looks.look(&node, outage);
        let look = look(context, &node, looked, &holds).await;
        looked.ended(look, Instant::now());
    }
    if looks.are_fine() {
        context.troubles.over(NODES);
        context.troubles.over(SLICES);
        context.troubles.over(PODS);
        context.troubles.over(release::DOING);
    }
}

/// One look at a node.
async fn look(context: &Context, node: &str, looked: &mut Looked, holds: &impl Fn() -> bool) -> Result<Ended, Logged> {
    let (outage, _) = looked.outage;
    let now = now(context, node, outage).await?;
    if now == Now::Over {
        return Ok(Ended::Done);
    }
    // Slices before pods: none is judged by a pod as it was before the slice was written, since one that was written after it
    // was listed is refused for its version.
    let slices = slices(context, node, outage, holds).await;
    if !holds() {
        return slices.map(|_| Ended::HalfWay);
    }
    let pods = pods(context, node).await?;
    let withdrawn = match slices {
        Ok(Slices { count: 0, .. }) if now == Now::Gone && pods.is_empty() => {
            return Ok(Ended::ForGood);
        }
        Ok(Slices { mut slices, .. }) => {
            slices.retain(|slice| leads_astray(slice, &pods));
            withdraw(context, node, &slices, holds).await
        }
        Err(Logged) => Err(Logged),
    };
    let mut released = Ok(());
    if outage == Outage::Lost {
        released = release::release(context, node, &pods, &mut looked.released, holds).await;
        // Nobody writes over a mark there, so none is remembered.
        looked.marked.clear();
    }
    mark(context, node, outage, pods, &mut looked.marked, holds).await.and(withdrawn).and(released)?;
    Ok(if holds() { Ended::Done } else { Ended::HalfWay })
}

/// What has become of an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    /// It goes on.
    Lasting,
    /// It goes on, and there is no such node any more.
    Gone,
    Over,
}

/// How it stands with an outage by what the API server says now: where nodes or agents cannot be watched, the last picture of
/// them stays, and may be old.
async fn now(context: &Context, node: &str, outage: Outage) -> Result<Now, Logged> {
    let is_over = match outage {
        Outage::Lost => {
            let Some(found) = context.find(NODES, &Resource::core("nodes"), None, node).await? else {
                return Ok(Now::Gone);
            };
            !State::of(&found).is_lost()
        }
        Outage::Silent => {
            let pods = Resource::core("pods");
            let there = Selection { fields: format!("spec.nodeName={node}"), ..agents(context) };
            let pages = context.cluster.pages(&pods, &there);
            context.first(NODES, pages, |pod| Agent::read(pod).is_ready).await?.is_some()
        }
    };
    Ok(if is_over { Now::Over } else { Now::Lasting })
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

/// What agents made for the sessions of a node.
fn made_for(node: &str) -> Selection {
    let labels = format!("{MANAGED_BY}={AGENT},{NODE_HASH}={}", node_hash(node));
    Selection { labels, ..Selection::default() }
}

/// Our slices of a node.
struct Slices {
    /// How many there are.
    count: usize,
    /// Those that have endpoints. Of a lost node there are none to be judged: what is read is out of service.
    slices: Vec<Value>,
}

/// Lists them, as long as the outage `holds`.
async fn slices(context: &Context, node: &str, outage: Outage, holds: &impl Fn() -> bool) -> Result<Slices, Logged> {
    let resource = resource(Kind::EndpointSlice, "v1");
    let selection = made_for(node);
    let (mut pages, mut result) = (context.cluster.pages(&resource, &selection), Ok(()));
    let (mut count, mut slices) = (0, Vec::new());
    while holds()
        && let Some(page) = context.told(SLICES, pages.next().await)?
    {
        count += page.items.len();
        match outage {
            Outage::Lost => result = withdraw(context, node, &page.items, holds).await.and(result),
            Outage::Silent => slices.extend(page.items.into_iter().filter(|slice| withdrawn(slice, node).is_some())),
        }
    }
    result.map(|()| Slices { count, slices })
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
