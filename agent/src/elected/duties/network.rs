//! Keeps the `NetworkPolicy` of every namespace with sessions.

use std::pin::pin;
use std::time::Duration;

use cofferdam_model::keys::{AGENT, NETWORK_POLICY, SESSION, SESSIONS};
use cofferdam_model::policy::{NetworkMode, Policy};
use futures_util::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace as NamespaceObject, Pod};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Failed, WRITES};
use crate::elected::Context;
use crate::elected::kept::Kept;
use crate::elected::network_policy::Live;
use crate::elected::networks::{Memory, Namespace, Step, View};
use crate::session::Membership;

/// Time alone makes a namespace lose its policy, or makes another try due; and a changed policy file is seen.
const LOOK: Duration = Duration::from_secs(1);

const NAMESPACES: &str = "watching namespaces";
const PODS: &str = "watching the pods of sessions";
const POLICIES: &str = "watching network policies";
const DOING: &str = "keeping the network policies of namespaces with sessions";

/// Never ends.
pub(super) async fn run(context: &Context) {
    // Labels and annotations of one object may have a quarter of a megabyte.
    let config = || watcher::Config::default().page_size(50);
    let namespaces: Api<PartialObjectMeta<NamespaceObject>> = Api::all(context.client());
    let pods: Api<PartialObjectMeta<Pod>> = Api::all(context.client());
    let resource = ApiResource::erase::<NetworkPolicy>(&());
    let policies: Api<DynamicObject> = Api::all_with(context.client(), &resource);
    let of_our_name = config().fields(&format!("metadata.name={NETWORK_POLICY}"));
    let mut namespace_events = pin!(watcher(namespaces, config()).default_backoff());
    let mut pod_events = pin!(watcher(pods, config().labels(SESSION)).default_backoff());
    let mut policy_events = pin!(watcher(policies, of_our_name).default_backoff());
    let (mut namespaces, mut sessions, mut policies) = (Kept::default(), Kept::default(), Kept::default());
    let mut memory = Memory::default();
    let (mut has_changed, mut misses_data_plane) = (false, false);
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // All events that are there are taken in before anything is decided, and then it is decided at once: sessions wait
        // for the policy of their namespace.
        tokio::select! {
            biased;
            Some(event) = namespace_events.next() => match event {
                Ok(event) => {
                    context.troubles.over(NAMESPACES);
                    namespaces.take(event, read_namespace);
                }
                Err(error) => context.troubles.watch_broke(NAMESPACES, error),
            },
            Some(event) = pod_events.next() => match event {
                Ok(event) => {
                    context.troubles.over(PODS);
                    sessions.take(event, |_| ());
                }
                Err(error) => context.troubles.watch_broke(PODS, error),
            },
            Some(event) = policy_events.next() => match event {
                Ok(event) => {
                    context.troubles.over(POLICIES);
                    policies.take(event, read_policy);
                }
                Err(error) => context.troubles.watch_broke(POLICIES, error),
            },
            () = std::future::ready(()), if has_changed => {
                has_changed = false;
                let (Some(namespaces), Some(sessions), Some(policies)) =
                    (namespaces.all(), sessions.all(), policies.all()) else { continue };
                let with_sessions = sessions.keys().map(|(namespace, _)| namespace.as_str()).collect();
                let view = View { namespaces, with_sessions: &with_sessions, policies };
                let policy = context.policy.load();
                let system = context.identity.namespace.as_str();
                misses_data_plane = tell_data_plane(&policy, misses_data_plane);
                let steps = memory.due(view, &policy, system, Instant::now());
                take(context, steps, &resource).await;
                continue;
            }
            _ = ticks.tick() => {}
        }
        has_changed = true;
    }
}

/// Does what is due, some of it at a time.
async fn take(context: &Context, steps: Vec<Step>, resource: &ApiResource) {
    if steps.is_empty() {
        return;
    }
    let writes: Vec<_> = steps.into_iter().map(|step| take_one(context, step, resource)).collect();
    let results: Vec<_> = stream::iter(writes).buffer_unordered(WRITES).collect().await;
    if results.iter().all(Result::is_ok) {
        context.troubles.over(DOING);
    }
}

async fn take_one(context: &Context, step: Step, resource: &ApiResource) -> Result<(), Failed> {
    let policies =
        |namespace: &str| -> Api<DynamicObject> { Api::namespaced_with(context.client(), namespace, resource) };
    match step {
        Step::Apply { namespace, policy } => {
            let params = PatchParams::apply(AGENT).force();
            let policies = policies(&namespace);
            if context.write(DOING, policies.patch(NETWORK_POLICY, &params, &Patch::Apply(policy))).await? {
                tracing::info!(namespace, "applied the network policy");
            }
        }
        Step::Delete { namespace, uid } => {
            let only = Preconditions { uid: Some(uid), resource_version: None };
            let params = DeleteParams::default().preconditions(only);
            if context.write(DOING, policies(&namespace).delete(NETWORK_POLICY, &params)).await? {
                tracing::info!(namespace, "deleted the network policy of a namespace without sessions");
            }
        }
        Step::TellForeign { namespace } => tracing::warn!(
            namespace,
            "a network policy cofferdam-sessions is there that is not the agents'; it is left as it is. Delete it and they make \
             their own, or say network.mode: manual"
        ),
    }
    Ok(())
}

/// A line in the log when it begins to matter that no data plane is named. Whether it matters now.
fn tell_data_plane(policy: &Policy, before: bool) -> bool {
    let network = policy.network();
    let misses =
        policy.routing().is_on() && network.mode == NetworkMode::Managed && network.data_plane_namespaces.is_empty();
    if misses && !before {
        tracing::warn!(
            "routing is on and network.dataPlaneNamespaces is empty: where network policies are enforced, the gateway does not \
             reach sessions; name the namespace that its data plane runs in"
        );
    }
    misses
}

fn read_namespace(namespace: &PartialObjectMeta<NamespaceObject>) -> Namespace {
    Namespace {
        membership: Membership::of_label(namespace.labels().get(SESSIONS).map(String::as_str)),
        is_leaving: namespace.metadata.deletion_timestamp.is_some(),
    }
}

fn read_policy(policy: &DynamicObject) -> Live {
    let metadata = &policy.metadata;
    Live::read(&json!({"metadata": {"labels": metadata.labels, "uid": metadata.uid}, "spec": policy.data["spec"]}))
}
