//! Deletes what belongs to nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use cofferdam_kubernetes::{Backoff, Class, Resource, Selection};
use cofferdam_model::is_object_name;
use cofferdam_model::keys::{AGENT, MANAGED_BY, SESSION};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use super::Logged;
use crate::elected::Context;
use crate::elected::orphans::{Known, Metadata, Suspicion, suspicion};
use crate::objects::{Kind, resource};

/// Between two sweeps.
const ROUND: Duration = Duration::from_mins(5);

/// After one that failed, or was broken off. After several in a row it is longer, up to a round: what is refused stays so, and
/// each sweep looks at the whole cluster.
const RETRY: Duration = Duration::from_secs(30);

const DOING: &str = "looking for objects that belong to nobody";

/// Sweeps at `next` and from then on, and says there when the next sweep is due. Never ends.
pub(super) async fn run(context: &Context, next: &Mutex<Instant>) {
    let mut next = next.lock().await;
    let mut failures = Backoff::new(RETRY, ROUND);
    loop {
        sleep_until(*next).await;
        // It may end half way, with the term.
        *next = Instant::now() + RETRY;
        let pause = if sweep(context).await.is_ok() {
            context.troubles.over(DOING);
            failures.over();
            ROUND
        } else {
            failures.failed()
        };
        *next = Instant::now() + pause;
    }
}

/// Looks at everything once. What fails for one kind or one object keeps no other from being swept.
async fn sweep(context: &Context) -> Result<(), Logged> {
    let known = known(context).await?;
    let mut result = Ok(());
    for kind in Kind::ALL {
        for version in kind.versions() {
            match sweep_version(context, kind, version, &known).await {
                Ok(true) => break,
                Ok(false) => {}
                Err(Logged) => result = Err(Logged),
            }
        }
    }
    result
}

/// Looks at all our objects of one kind, in that version of it, and keeps none: false where there is no such kind.
async fn sweep_version(context: &Context, kind: Kind, version: &str, known: &Known) -> Result<bool, Logged> {
    let mut gone = Gone { context, pods: BTreeMap::new(), sessions: BTreeMap::new(), nodes: BTreeMap::new() };
    let resource = resource(kind, version).metadata();
    let ours = Selection { labels: format!("{MANAGED_BY}={AGENT}"), ..Selection::default() };
    let (mut pages, mut result) = (context.cluster.pages(&resource, &ours), Ok(true));
    loop {
        let page = match pages.next().await {
            Ok(None) => return result,
            Err(failed) if failed.class == Class::NotFound => return Ok(false),
            page => context.told(DOING, page)?,
        };
        for object in page.into_iter().flat_map(|page| page.items) {
            let object = Metadata::read(&object);
            let Some(suspicion) = suspicion(&object, known) else { continue };
            let swept = match gone.is_so(&object, &suspicion).await {
                Ok(true) => context.delete(DOING, kind, &resource, object.clone()).await.map(drop),
                Ok(false) => Ok(()),
                Err(Logged) => Err(Logged),
            };
            result = swept.and(result);
        }
    }
}

/// All nodes, and all pods with the label of a session.
async fn known(context: &Context) -> Result<Known, Logged> {
    let mut known = Known::default();
    let (pods, nodes) = (Resource::core("pods").metadata(), Resource::core("nodes").metadata());
    let sessions = Selection { labels: SESSION.to_owned(), ..Selection::default() };
    let mut pages = context.cluster.pages(&pods, &sessions);
    while let Some(page) = context.told(DOING, pages.next().await)? {
        for pod in page.items.iter().map(Metadata::read) {
            known.sessions.insert((pod.namespace, pod.session.unwrap_or_default()));
            known.pods.insert(pod.uid);
        }
    }
    let everything = Selection::default();
    let mut pages = context.cluster.pages(&nodes, &everything);
    while let Some(page) = context.told(DOING, pages.next().await)? {
        known.nodes.extend(page.items.iter().map(|node| Metadata::read(node).name));
    }
    Ok(known)
}

/// What was asked for while one list was read, each once: nothing is deleted on the strength of a list of everything, which
/// is older than the object may be. Nor of an answer that is older than the list: by then there may be another pod of that
/// name, with objects of its own.
struct Gone<'a> {
    context: &'a Context,
    /// The uid of the pod of that namespace and name, if it is there.
    pods: BTreeMap<(String, String), Option<String>>,
    /// Whether no pod has that namespace and id, on that node if one is named.
    sessions: BTreeMap<(String, String, Option<String>), bool>,
    nodes: BTreeMap<String, bool>,
}

impl Gone<'_> {
    /// Whether the suspicion about that object is right.
    async fn is_so(&mut self, object: &Metadata, suspicion: &Suspicion<'_>) -> Result<bool, Logged> {
        let (context, namespace) = (self.context, object.namespace.as_str());
        match suspicion {
            Suspicion::Unowned => {
                // No pod has an id that nobody says.
                let Some(id) = &object.session else { return Ok(true) };
                let key = (namespace.to_owned(), id.to_owned(), object.node.clone());
                if let Some(is_gone) = self.sessions.get(&key) {
                    return Ok(*is_gone);
                }
                let labels = format!("{SESSION}={id}");
                let is_gone = !context.has_pods(DOING, namespace, labels, object.node.as_deref()).await?;
                self.sessions.insert(key, is_gone);
                Ok(is_gone)
            }
            Suspicion::NodeGone(name) => {
                if let Some(is_gone) = self.nodes.get(*name) {
                    return Ok(*is_gone);
                }
                let is_gone = self.find("nodes", None, name).await?.is_none();
                self.nodes.insert((*name).to_owned(), is_gone);
                Ok(is_gone)
            }
            Suspicion::PodsGone(owners) => {
                for owner in *owners {
                    if self.pod(namespace, &owner.name).await?.as_ref() == Some(&owner.uid) {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    /// The uid of the pod of that name, if there is one.
    async fn pod(&mut self, namespace: &str, name: &str) -> Result<Option<String>, Logged> {
        // No pod has such a name, and it would become a part of a path.
        if !is_object_name(name) {
            return Ok(None);
        }
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(found) = self.pods.get(&key) {
            return Ok(found.clone());
        }
        let found = self.find("pods", Some(namespace), name).await?.map(|pod| pod.uid);
        self.pods.insert(key, found.clone());
        Ok(found)
    }

    /// That object, if it is there.
    async fn find(
        &self,
        resource: &'static str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Metadata>, Logged> {
        let found = self.context.find(DOING, &Resource::core(resource).metadata(), namespace, name).await?;
        Ok(found.as_ref().map(Metadata::read))
    }
}
