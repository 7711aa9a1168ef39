//! Takes endpoints out of service that nobody else takes away, and marks the sessions that nobody looks after.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cofferdam_model::keys::{AGENT, MANAGED_BY, NODE_HASH};
use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Failed, WRITES};
use crate::desired::node_hash;
use crate::elected::nodes::Assessment;
use crate::elected::outage::{Outage, leads_astray, marked, withdrawn};
use crate::elected::{Context, Identity};
use crate::events::Tone;
use crate::report::time;

/// What is new on a node that stays lost is found as often as this.
const ROUND: Duration = Duration::from_secs(10);

/// After a round in which something failed; twice as long each time.
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
    let mut retry = RETRY;
    let mut marked = Marked::new();
    loop {
        let assessment = told.borrow_and_update().clone();
        if assessment.is_braked != is_braked {
            is_braked = assessment.is_braked;
            tell_brake(context, &assessment);
        }
        marked.retain(|node, _| assessment.silent.contains(node));
        let is_fine = round(context, &assessment, &told, &mut marked).await;
        retry = if is_fine { RETRY } else { (retry * 2).min(ROUND) };
        let pause = if is_fine { ROUND } else { retry };
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
        let slices = slices(context, node).await;
        let pods = pods(context, node).await;
        is_fine &= slices.is_ok() && pods.is_ok();
        let astray = match (slices, &pods, outage) {
            (Ok(slices), _, Outage::Lost) => slices,
            (Ok(mut slices), Ok(pods), Outage::Silent) => {
                slices.retain(|slice| leads_astray(slice, pods));
                slices
            }
            (Err(Failed), ..) | (_, Err(Failed), _) => Vec::new(),
        };
        is_fine &= withdraw(context, node, astray, &holds).await.is_ok();
        let Ok(pods) = pods else { continue };
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

/// Our endpoint slices of a node.
async fn slices(context: &Context, node: &str) -> Result<Vec<DynamicObject>, Failed> {
    let all: Api<DynamicObject> = Api::all_with(context.client(), &ApiResource::erase::<EndpointSlice>(&()));
    // From the API server's cache: an old answer costs a write that is refused for its version.
    let of_node = ListParams::default().labels(&format!("{MANAGED_BY}={AGENT},{NODE_HASH}={}", node_hash(node)));
    Ok(context.ask(SLICES, all.list(&of_node.match_any())).await?.items)
}

/// The pods of a node.
async fn pods(context: &Context, node: &str) -> Result<Vec<Pod>, Failed> {
    let all: Api<Pod> = Api::all(context.client());
    // In the cache pods are indexed by node; anywhere else, all pods of the cluster would be read. A node has some hundreds
    // of pods at most, and the cache knows no pages.
    let of_node = ListParams::default().fields(&format!("spec.nodeName={node}")).match_any();
    Ok(context.ask(PODS, all.list(&of_node)).await?.items)
}

/// Takes the endpoints of these slices of a node out of service.
async fn withdraw(
    context: &Context,
    node: &str,
    slices: Vec<DynamicObject>,
    holds: &impl Fn() -> bool,
) -> Result<(), Failed> {
    let resource = ApiResource::erase::<EndpointSlice>(&());
    let params = PatchParams::apply(AGENT).force();
    let (resource, params) = (&resource, &params);
    let mut writes = Vec::new();
    for slice in slices {
        let Some(apply) = withdrawn(&slice, node) else { continue };
        let (namespace, name) = (slice.namespace().unwrap_or_default(), slice.name_any());
        writes.push(async move {
            if !holds() {
                return (name, Ok(false));
            }
            let slices: Api<DynamicObject> = Api::namespaced_with(context.client(), &namespace, resource);
            let written = context.write(SLICES, slices.patch(&name, params, &Patch::Apply(apply))).await;
            (name, written)
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
) -> Result<(), Failed> {
    let now = time(Timestamp::now());
    let params = PatchParams { field_manager: Some(AGENT.to_owned()), ..PatchParams::default() };
    let params = &params;
    let there: BTreeSet<String> = pods.iter().filter_map(|pod| pod.metadata.uid.clone()).collect();
    marked_before.retain(|uid| there.contains(uid));
    let mut writes = Vec::new();
    for pod in pods {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let Some(patch) = marked(&pod, outage, node, &now).filter(|_| !marked_before.contains(&uid)) else { continue };
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        writes.push(async move {
            if !holds() {
                return (uid, Ok(false));
            }
            let pods: Api<Pod> = Api::namespaced(context.client(), &namespace);
            let written = context.write(PODS, pods.patch_status(&name, params, &Patch::Strategic(patch))).await;
            (uid, written)
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
