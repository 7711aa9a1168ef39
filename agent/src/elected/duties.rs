//! The duties of the elected agent: thin loops around what decides.

use std::time::Duration;

use cofferdam_kubernetes::{Class, Failed, Pages, Resource, Selection};
use cofferdam_runtime::panics;
use kube::core::params::Preconditions;
use serde_json::Value;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep};

use super::Context;
use super::nodes::Outages;
use super::orphans::Metadata;
use crate::objects::Kind;

mod network;
mod nodes;
mod outages;
mod sweep;

/// After a panic in a duty, before it begins anew.
const AFTER_A_PANIC: Duration = Duration::from_secs(5);

/// So many writes at a time: after the loss of a node there are hundreds, and the API server has other clients.
const WRITES: usize = 8;

/// All duties, side by side; a sweep not before `next_sweep`. Never ends; dropping it stops them where they stand, but for
/// writes that have begun.
pub(super) async fn all(context: &Context, next_sweep: &Mutex<Instant>) {
    let (tell, told) = watch::channel(Outages::default());
    tokio::join!(
        again("nodes", || nodes::run(context, &tell)),
        again("outages", || outages::run(context, told.clone())),
        again("network", || network::run(context)),
        again("sweep", || sweep::run(context, next_sweep)),
    );
}

/// Begins a duty anew when it, or a watch of its, has panicked, since the others and the agent's own node must not suffer.
/// Never ends.
async fn again<F: Future<Output = ()>>(duty: &'static str, begin: impl Fn() -> F) {
    loop {
        // It ends by itself only for a panic of a watch.
        let _ = panics::catch(begin()).await;
        tracing::error!(duty, "a duty of the elected agent panicked; it begins anew");
        sleep(AFTER_A_PANIC).await;
    }
}

/// A call failed; it was told already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Logged;

/// A write of an object of this name.
#[derive(Clone, Debug)]
struct Write {
    namespace: String,
    name: String,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// A server-side apply.
    Apply(Resource, Value),
    /// A strategic merge patch of `pods/status`.
    Status(Value),
    /// Only that object.
    Delete(Resource, Preconditions),
}

impl Context {
    /// The answer. What went wrong is told.
    fn told<T>(&self, doing: &'static str, answer: Result<T, Failed>) -> Result<T, Logged> {
        answer.map_err(|failed| {
            self.troubles.failed(doing, &failed);
            Logged
        })
    }

    /// That object, if it is there.
    async fn find(
        &self,
        doing: &'static str,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, Logged> {
        match self.cluster.get(resource, namespace, name).await {
            Err(failed) if failed.class == Class::NotFound => Ok(None),
            found => self.told(doing, found).map(Some),
        }
    }

    /// Whether a pod of that namespace has these labels, on that node if one is named.
    async fn has_pods(
        &self,
        doing: &'static str,
        namespace: &str,
        labels: String,
        node: Option<&str>,
    ) -> Result<bool, Logged> {
        let pods = Resource::core("pods").metadata();
        let fields = node.map(|node| format!("spec.nodeName={node}")).unwrap_or_default();
        let selection = Selection { namespace: Some(namespace.to_owned()), labels, fields };
        let found = self.first(doing, self.cluster.pages(&pods, &selection).of_one(), |_| true).await?;
        Ok(found.is_some())
    }

    /// The first object of a list of which that is true.
    async fn first(
        &self,
        doing: &'static str,
        mut pages: Pages<'_>,
        is_true: impl Fn(&Value) -> bool,
    ) -> Result<Option<Value>, Logged> {
        while let Some(page) = self.told(doing, pages.next().await)? {
            if let Some(found) = page.items.into_iter().find(&is_true) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Deletes that very object, as it was seen: one that changed meanwhile may have found its owner, and is not deleted.
    async fn delete(
        &self,
        doing: &'static str,
        kind: Kind,
        resource: &Resource,
        object: Metadata,
    ) -> Result<bool, Logged> {
        let Metadata { namespace, name, uid, resource_version, .. } = object;
        let only = Preconditions { uid: Some(uid), resource_version: Some(resource_version) };
        let what = What::Delete(resource.clone(), only);
        let is_deleted = self.write(doing, Write { namespace: namespace.clone(), name: name.clone(), what }).await?;
        if is_deleted {
            self.metrics.swept(kind.plural());
            tracing::info!(resource = kind.plural(), namespace, name, "deleted an object that no agent looks after");
        }
        Ok(is_deleted)
    }

    /// Whether it was written: where the write holds for one version of an object and that is not the newest, nothing is
    /// wrong, and the next look shows what is to be done.
    ///
    /// What has begun goes on to its end, also when this is dropped.
    async fn write(&self, doing: &'static str, write: Write) -> Result<bool, Logged> {
        let (cluster, Write { namespace, name, what }) = (self.cluster.clone(), write);
        let writing = self.writes.spawn(async move {
            match what {
                What::Apply(resource, object) => cluster.apply(&resource, &namespace, &name, &object).await.map(drop),
                What::Status(patch) => cluster.patch_pod_status(&namespace, &name, &patch).await.map(drop),
                What::Delete(resource, only) => cluster.delete_if(&resource, &namespace, &name, only).await,
            }
        });
        match writing.await {
            Ok(Err(failed)) if failed.class.is_outdated() => Ok(false),
            Ok(written) => self.told(doing, written).map(|()| true),
            // It panicked, which is logged, or the program ends.
            Err(_) => Err(Logged),
        }
    }
}
