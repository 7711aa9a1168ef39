//! Keeps the `NetworkPolicy` of every namespace with sessions.

use std::time::Duration;

use cofferdam_kubernetes::watch::{Collected, Lookout};
use cofferdam_kubernetes::{Resource, Selection, json};
use cofferdam_model::keys::{NETWORK_POLICY, SESSION, SESSIONS};
use cofferdam_model::policy::Policy;
use futures_util::{StreamExt, stream};
use kube::core::params::Preconditions;
use serde_json::Value;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::{Logged, WRITES, What, Write};
use crate::elected::Context;
use crate::elected::networks::{Memory, Namespace, Step, View, has_sessions};
use crate::network_policy::{Live, of_our_name, resource};
use crate::session::Membership;

/// Time alone makes a namespace lose its policy, or makes another try due; and a changed policy file is seen.
const LOOK: Duration = Duration::from_secs(1);

const DOING: &str = "keeping the network policies of namespaces with sessions";

#[derive(Debug, Default)]
struct Seen {
    namespaces: Collected<Namespace>,
    /// The namespace of each pod with the label of a session.
    sessions: Collected<String>,
    /// By namespace: all have our name.
    policies: Collected<Live>,
}

/// Ends when it has to begin anew.
pub(super) async fn run(context: &Context) {
    let mut lookout = Lookout::new(context.cluster.clone(), context.metrics.watches.clone(), Seen::default());
    let namespaces = Resource::core("namespaces").metadata();
    lookout.watch("elected_namespaces", namespaces, Selection::default(), move |seen, change| {
        seen.namespaces.take(change, |object| (json::name(object).to_owned(), read_namespace(object))).is_some()
    });
    let of_sessions = Selection { labels: SESSION.to_owned(), ..Selection::default() };
    lookout.watch("elected_sessions", Resource::core("pods").metadata(), of_sessions, move |seen, change| {
        seen.sessions.take(change, |pod| (json::uid(pod).to_owned(), json::namespace(pod).to_owned())).is_some()
    });
    lookout.watch("elected_networkpolicies", resource(), of_our_name(), move |seen, change| {
        seen.policies.take(change, |policy| (json::namespace(policy).to_owned(), Live::read(policy))).is_some()
    });
    let mut memory = Memory::default();
    let mut misses_data_plane = false;
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            goes_on = lookout.changed() => if !goes_on { return },
            _ = ticks.tick() => {}
        }
        let policy = context.policy.load_full();
        misses_data_plane = tell_data_plane(&policy, misses_data_plane);
        let steps = due(&mut memory, &lookout.seen(), &policy, &context.identity.namespace);
        take(context, steps).await;
    }
}

/// Nothing before all was listed.
fn due(memory: &mut Memory, seen: &Seen, policy: &Policy, system: &str) -> Vec<Step> {
    let (Some(namespaces), Some(sessions), Some(policies)) =
        (seen.namespaces.all(), seen.sessions.all(), seen.policies.all())
    else {
        return Vec::new();
    };
    let with_sessions = sessions.values().map(String::as_str).collect();
    memory.due(View { namespaces, with_sessions: &with_sessions, policies }, policy, system, Instant::now())
}

/// Does what is due, some of it at a time.
async fn take(context: &Context, steps: Vec<Step>) {
    if steps.is_empty() {
        return;
    }
    let writes: Vec<_> = steps.into_iter().map(|step| take_one(context, step)).collect();
    let results: Vec<_> = stream::iter(writes).buffer_unordered(WRITES).collect().await;
    if results.iter().all(Result::is_ok) {
        context.troubles.over(DOING);
    }
}

async fn take_one(context: &Context, step: Step) -> Result<(), Logged> {
    let write = |namespace: &str, what| {
        let write = Write { namespace: namespace.to_owned(), name: NETWORK_POLICY.to_owned(), what };
        context.write(DOING, write)
    };
    match step {
        Step::Apply { namespace, policy } => {
            if write(&namespace, What::Apply(resource(), policy)).await? {
                tracing::info!(namespace, "applied the network policy");
            }
        }
        Step::Delete { namespace, uid } => {
            if !has_none(context, &namespace).await? {
                return Ok(());
            }
            let only = Preconditions { uid: Some(uid), resource_version: None };
            if write(&namespace, What::Delete(resource(), only)).await? {
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

/// Whether a namespace is there and has no session by what the API server says now: where namespaces or pods cannot be
/// watched, the last picture of them stays, and may be old. With one that goes, its policy does.
async fn has_none(context: &Context, namespace: &str) -> Result<bool, Logged> {
    let resource = Resource::core("namespaces").metadata();
    // Agents may list namespaces, and get none.
    let named = Selection { fields: format!("metadata.name={namespace}"), ..Selection::default() };
    let found = context.first(DOING, context.cluster.pages(&resource, &named), |_| true).await?;
    let Some(Namespace { membership, is_leaving: false }) = found.as_ref().map(read_namespace) else {
        return Ok(false);
    };
    let has_labelled_pod =
        membership == Membership::Other && context.has_pods(DOING, namespace, SESSION.to_owned(), None).await?;
    Ok(!has_sessions(membership, has_labelled_pod))
}

/// A line in the log when it begins to matter that no data plane is named. Whether it matters now.
fn tell_data_plane(policy: &Policy, before: bool) -> bool {
    let misses = policy.lacks_data_plane();
    if misses && !before {
        tracing::warn!(
            "routing is on and network.dataPlaneNamespaces is empty: where network policies are enforced, the gateway does not \
             reach sessions; name the namespace that its data plane runs in"
        );
    }
    misses
}

fn read_namespace(namespace: &Value) -> Namespace {
    Namespace {
        membership: Membership::of_label(json::label(namespace, SESSIONS)),
        is_leaving: json::is_leaving(namespace),
    }
}
