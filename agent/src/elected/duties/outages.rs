//! Takes the sessions of lost nodes out of service, and marks those that nobody looks after.

use std::time::Duration;

use cofferdam_model::keys::{AGENT, MANAGED_BY, NODE_HASH};
use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::core::{ApiResource, DynamicObject};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Failed, WRITES};
use crate::desired::node_hash;
use crate::elected::Context;
use crate::elected::nodes::Assessment;
use crate::elected::outage::{Outage, marked, withdrawn};

/// What is new on a node that stays lost is found as often as this.
const ROUND: Duration = Duration::from_secs(10);

/// After a round in which something failed; twice as long each time.
const RETRY: Duration = Duration::from_secs(1);

const SLICES: &str = "taking the endpoints of a lost node out of service";
const PODS: &str = "marking the sessions of a node";

/// Does what the newest assessment asks for. Never ends.
pub(super) async fn run(context: &Context, mut told: watch::Receiver<Assessment>) {
    let mut is_braked = false;
    let mut retry = RETRY;
    loop {
        let assessment = told.borrow_and_update().clone();
        if assessment.is_braked != is_braked {
            is_braked = assessment.is_braked;
            tell_brake(context, &assessment).await;
        }
        let is_fine = round(context, &assessment, &told).await;
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
async fn round(context: &Context, assessment: &Assessment, told: &watch::Receiver<Assessment>) -> bool {
    let lost = assessment.lost.iter().map(|node| (node, Outage::Lost));
    let silent = assessment.silent.iter().map(|node| (node, Outage::Silent));
    let mut is_fine = true;
    for (node, outage) in lost.chain(silent) {
        // Asked again before every write: a node that is back belongs to its own agent.
        let holds = || told.borrow().outage(node) == Some(outage);
        if outage == Outage::Lost {
            is_fine &= withdraw(context, node, &holds).await.is_ok();
        }
        is_fine &= mark(context, node, outage, &holds).await.is_ok();
    }
    if is_fine {
        context.troubles.over(SLICES);
        context.troubles.over(PODS);
    }
    is_fine
}

/// Takes the endpoints of a node out of service.
async fn withdraw(context: &Context, node: &str, holds: &impl Fn() -> bool) -> Result<(), Failed> {
    let resource = ApiResource::erase::<EndpointSlice>(&());
    let all: Api<DynamicObject> = Api::all_with(context.client(), &resource);
    // From the API server's cache: an old answer costs a write that is refused for its version.
    let of_node = ListParams::default().labels(&format!("{MANAGED_BY}={AGENT},{NODE_HASH}={}", node_hash(node)));
    let slices = context.ask(SLICES, all.list(&of_node.match_any())).await?;
    let params = PatchParams::apply(AGENT).force();
    let (resource, params) = (&resource, &params);
    let mut writes = Vec::new();
    for slice in slices {
        let Some(apply) = withdrawn(&slice, node) else { continue };
        writes.push(async move {
            if !holds() {
                return Ok(false);
            }
            let namespace = slice.namespace().unwrap_or_default();
            let slices: Api<DynamicObject> = Api::namespaced_with(context.client(), &namespace, resource);
            context.write(SLICES, slices.patch(&slice.name_any(), params, &Patch::Apply(apply))).await
        });
    }
    tell_written(writes, node, "endpoint slices of a lost node are out of service").await
}

/// Marks the sessions of a node.
async fn mark(context: &Context, node: &str, outage: Outage, holds: &impl Fn() -> bool) -> Result<(), Failed> {
    let all: Api<Pod> = Api::all(context.client());
    // In the cache pods are indexed by node; anywhere else, all pods of the cluster would be read. A node has some hundreds
    // of pods at most, and the cache knows no pages.
    let of_node = ListParams::default().fields(&format!("spec.nodeName={node}")).match_any();
    let pods = context.ask(PODS, all.list(&of_node)).await?;
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let params = PatchParams { field_manager: Some(AGENT.to_owned()), ..PatchParams::default() };
    let params = &params;
    let mut writes = Vec::new();
    for pod in pods {
        let Some(patch) = marked(&pod, outage, node, &now) else { continue };
        writes.push(async move {
            if !holds() {
                return Ok(false);
            }
            let pods: Api<Pod> = Api::namespaced(context.client(), &pod.namespace().unwrap_or_default());
            context.write(PODS, pods.patch_status(&pod.name_any(), params, &Patch::Strategic(patch))).await
        });
    }
    let what = match outage {
        Outage::Lost => "sessions of a lost node are marked",
        Outage::Silent => "sessions of a node with a silent agent are marked",
    };
    tell_written(writes, node, what).await
}

/// Some writes at a time; a line in the log for all of them.
async fn tell_written<F: Future<Output = Result<bool, Failed>>>(
    writes: Vec<F>,
    node: &str,
    what: &'static str,
) -> Result<(), Failed> {
    let (mut written, mut result) = (0_usize, Ok(()));
    let mut writes = stream::iter(writes).buffer_unordered(WRITES);
    while let Some(write) = writes.next().await {
        match write {
            Ok(is_written) => written += usize::from(is_written),
            // The others may well succeed.
            Err(Failed) => result = Err(Failed),
        }
    }
    if written > 0 {
        tracing::info!(node, written, "{what}");
    }
    result
}

/// An Event on the agent's own pod, since there is no other object that it is about.
async fn tell_brake(context: &Context, assessment: &Assessment) {
    let lost = assessment.lost_count;
    if !assessment.is_braked {
        tracing::info!(lost, "few enough nodes are lost to do something about them");
        return;
    }
    tracing::warn!(lost, "too many nodes seem lost at once, so nothing is done about any of them");
    let pod = &context.identity.pod;
    let reporter = Reporter { controller: AGENT.to_owned(), instance: Some(pod.clone()) };
    let event = Event {
        type_: EventType::Warning,
        reason: "TooManyNodesLost".to_owned(),
        note: Some(format!(
            "{lost} nodes seem lost at once, more than --lost-node-share allows. That may as well be a fault of the control \
             plane, so their sessions stay in service. Look at the nodes' conditions."
        )),
        action: "LookAfterLostNodes".to_owned(),
        secondary: None,
    };
    let about = ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        name: Some(pod.clone()),
        namespace: Some(context.identity.namespace.clone()),
        ..ObjectReference::default()
    };
    let recorder = Recorder::new(context.client(), reporter);
    // The log and the metric say it too.
    let _ = context.ask("writing an event", recorder.publish(&event, &about)).await;
}
