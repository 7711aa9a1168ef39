//! Takes endpoints out of service that nobody else takes away, and marks the sessions that nobody looks after.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cofferdam_model::keys::{AGENT, MANAGED_BY, NODE_HASH, SESSION};
use futures_util::{StreamExt, stream};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Failed, WRITES, What, Write};
use crate::backoff::Backoff;
use crate::cluster::{Resource, Selection};
use crate::desired::node_hash;
use crate::elected::nodes::Assessment;
use crate::elected::outage::{Outage, Pod, leads_astray, marked, withdrawn};
use crate::elected::{Context, Identity};
use crate::events::Tone;
use crate::objects::{Kind, resource};
use crate::report::time;

/// What is new on a node that stays lost is found as often as this.
const ROUND: Duration = Duration::from_secs(10);

/// After a round in which something failed; at most as long as a round.
const RETRY: Duration = Duration::from_secs(1);

const SLICES: &str = "taking endpoints out of service";
const PODS: &str = "marking the sessions of a node";

/// The uids of sessions that were marked while the agent of their node has been silent. One that is unready and works all the
/// same writes over a mark what it knows, and two that contradict each other would go on for ever: so each is marked once.
/// Only the elected agent knows how long a silence lasts; an agent that others call silent does not know it.
type Marked = BTreeMap<String, BTreeSet<String>>;

/// Does what the newest assessment asks for. Never ends.
pub(super) async fn run(context: &Context, mut told: watch::Receiver<Assessment>) {
    let mut is_braked = false;
    let mut failures = Backoff::new(RETRY, ROUND);
    let mut marked = Marked::new();
    loop {
        let assessment = told.borrow_and_update().clone();
        if assessment.is_braked != is_braked {
            is_braked = assessment.is_braked;
            tell_brake(context, &assessment);
        }
        marked.retain(|node, _| assessment.silent.contains(node));
        let pause = if round(context, &assessment, &told, &mut marked).await {
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

/// One look at every node with an outage, the lost ones first. Whether all of it succeeded.
async fn round(
    context: &Context,
    assessment: &Assessment,
    told: &watch::Receiver<Assessment>,
    marked: &mut Marked,
) -> bool {
    let lost = assessment.lost.iter().map(|node| (node, Outage::Lost));
    let silent = assessment.silent.iter().map(|node| (node, Outage::Silent));
    let mut is_fine = true;
    for (node, outage) in lost.chain(silent) {
        // Asked again before every write: a node that is back belongs to its own agent.
        let holds = || told.borrow().outage(node) == Some(outage);
        if outage == Outage::Lost {
            is_fine &= withdraw(context, node, |_| true, &holds).await.is_ok();
        }
        let Ok(pods) = pods(context, node).await else {
            is_fine = false;
            continue;
        };
        if outage == Outage::Silent {
            is_fine &= withdraw(context, node, |slice| leads_astray(slice, &pods), &holds).await.is_ok();
        }
        // On a lost node nobody writes over a mark, so none is remembered.
        let mut nothing = BTreeSet::new();
        let marked = match outage {
            Outage::Lost => &mut nothing,
            Outage::Silent => marked.entry(node.clone()).or_default(),
        };
        is_fine &= mark(context, node, outage, pods, marked, &holds).await.is_ok();
    }
    if is_fine {
        context.troubles.over(SLICES);
        context.troubles.over(PODS);
    }
    is_fine
}

/// The pods of a node with the label of a session: no other has endpoints of ours.
async fn pods(context: &Context, node: &str) -> Result<Vec<Pod>, Failed> {
    let resource = Resource::core("pods");
    let (labels, fields) = (SESSION.to_owned(), format!("spec.nodeName={node}"));
    let selection = Selection { labels, fields, ..Selection::default() };
    let (mut pages, mut pods) = (context.cluster.pages(&resource, &selection), Vec::new());
    while let Some(page) = context.told(PODS, pages.next().await)? {
        pods.extend(page.items.iter().map(Pod::read));
    }
    Ok(pods)
}

/// Takes the endpoints of those of our slices of a node out of service that `goes` says it of.
async fn withdraw(
    context: &Context,
    node: &str,
    goes: impl Fn(&Value) -> bool,
    holds: &impl Fn() -> bool,
) -> Result<(), Failed> {
    let resource = &resource(Kind::EndpointSlice, "v1");
    let labels = format!("{MANAGED_BY}={AGENT},{NODE_HASH}={}", node_hash(node));
    let selection = Selection { labels, ..Selection::default() };
    let (mut pages, mut result) = (context.cluster.pages(resource, &selection), Ok(()));
    while let Some(page) = context.told(SLICES, pages.next().await)? {
        let mut writes = Vec::new();
        for apply in page.items.iter().filter(|slice| goes(slice)).filter_map(|slice| withdrawn(slice, node)) {
            let text = |name: &str| apply["metadata"][name].as_str().unwrap_or_default().to_owned();
            let (namespace, name) = (text("namespace"), text("name"));
            writes.push(async move {
                if !holds() {
                    return (name, Ok(false));
                }
                let write = Write { namespace, name: name.clone(), what: What::Apply(resource.clone(), apply) };
                (name, context.write(SLICES, write).await)
            });
        }
        let what = "endpoint slices of a node are out of service";
        result = write_all(writes, node, what, &mut BTreeSet::new()).await.and(result);
    }
    result
}

/// Marks the sessions among the pods of a node, but those that are `marked`, which holds all that are then.
async fn mark(
    context: &Context,
    node: &str,
    outage: Outage,
    pods: Vec<Pod>,
    marked_before: &mut BTreeSet<String>,
    holds: &impl Fn() -> bool,
) -> Result<(), Failed> {
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
async fn write_all<F: Future<Output = (String, Result<bool, Failed>)>>(
    writes: Vec<F>,
    node: &str,
    what: &'static str,
    written: &mut BTreeSet<String>,
) -> Result<(), Failed> {
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
            Err(Failed) => result = Err(Failed),
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
    let Identity { pod, namespace } = &*context.identity;
    context.events.tell_of("Pod", namespace, pod, Tone::Warning, "TooManyNodesLost", &note);
}
