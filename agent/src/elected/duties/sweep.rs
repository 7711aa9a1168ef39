//! Deletes what belongs to nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use cofferdam_model::keys::{AGENT, MANAGED_BY, SESSION};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube::{Api, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::Failed;
use crate::elected::Context;
use crate::elected::orphans::{Known, RESOURCES, Resource, Suspicion, suspicion};

/// Between two sweeps; the first is at once.
const ROUND: Duration = Duration::from_mins(5);

/// After one that failed.
const RETRY: Duration = Duration::from_secs(30);

/// Objects of one answer.
const PAGE: u32 = 500;

const DOING: &str = "looking for objects that belong to nobody";

type Metadata = PartialObjectMeta<DynamicObject>;

/// Never ends.
pub(super) async fn run(context: &Context) {
    loop {
        let is_fine = sweep(context).await.is_ok();
        if is_fine {
            context.troubles.over(DOING);
        }
        sleep(if is_fine { ROUND } else { RETRY }).await;
    }
}

/// Looks at everything once. What fails for one kind or one object keeps no other from being swept.
async fn sweep(context: &Context) -> Result<(), Failed> {
    let (mut objects, mut result) = (Vec::new(), Ok(()));
    for resource in &RESOURCES {
        match list_ours(context, resource).await {
            Ok(Some((api_resource, found))) => {
                objects.extend(found.into_iter().map(|object| (resource, api_resource.clone(), object)));
            }
            Ok(None) => {}
            Err(Failed) => result = Err(Failed),
        }
    }
    if objects.is_empty() {
        return result;
    }
    // Only now: a pod that came in between may own one of them.
    let known = known(context).await?;
    let mut gone = Gone { context, pods: BTreeMap::new(), nodes: BTreeMap::new() };
    for (resource, api_resource, object) in &objects {
        let Some(suspicion) = suspicion(&object.metadata, &known) else { continue };
        let swept = match gone.is_so(&object.namespace().unwrap_or_default(), &suspicion).await {
            Ok(true) => delete(context, resource, api_resource, object).await,
            Ok(false) => Ok(()),
            Err(Failed) => Err(Failed),
        };
        result = result.and(swept);
    }
    result
}

/// All objects of ours of one kind; none where the API server does not have the kind.
async fn list_ours(context: &Context, resource: &Resource) -> Result<Option<(ApiResource, Vec<Metadata>)>, Failed> {
    for version in resource.versions {
        let gvk = kube::core::GroupVersionKind::gvk(resource.group, version, resource.kind);
        let api_resource = ApiResource::from_gvk_with_plural(&gvk, resource.plural);
        let api: Api<DynamicObject> = Api::all_with(context.client(), &api_resource);
        if let Some(found) = list(context, &api, &format!("{MANAGED_BY}={AGENT}")).await? {
            return Ok(Some((api_resource, found)));
        }
    }
    Ok(None)
}

/// Page by page, metadata alone; none where there is no such kind.
async fn list<K>(context: &Context, api: &Api<K>, labels: &str) -> Result<Option<Vec<PartialObjectMeta<K>>>, Failed>
where
    K: kube::Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut all = Vec::new();
    let mut params = ListParams::default().labels(labels).limit(PAGE);
    loop {
        let page = async {
            match api.list_metadata(&params).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                answer => answer.map(Some),
            }
        };
        let Some(page) = context.ask(DOING, page).await? else { return Ok(None) };
        all.extend(page.items);
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params.continue_token = Some(next),
            None => return Ok(Some(all)),
        }
    }
}

/// All nodes, and all pods with the label of a session.
async fn known(context: &Context) -> Result<Known, Failed> {
    let pods: Api<Pod> = Api::all(context.client());
    let nodes: Api<Node> = Api::all(context.client());
    // Both kinds are always there.
    let pods = list(context, &pods, SESSION).await?.ok_or(Failed)?;
    let nodes = list(context, &nodes, "").await?.ok_or(Failed)?;
    let session = |pod: &PartialObjectMeta<Pod>| {
        (pod.namespace().unwrap_or_default(), pod.labels().get(SESSION).cloned().unwrap_or_default())
    };
    Ok(Known {
        sessions: pods.iter().map(session).collect(),
        pods: pods.into_iter().filter_map(|pod| pod.metadata.uid).collect(),
        nodes: nodes.iter().map(ResourceExt::name_any).collect(),
    })
}

/// What was asked for by name, each once in a sweep: nothing is deleted on the strength of a list alone.
struct Gone<'a> {
    context: &'a Context,
    pods: BTreeMap<(String, String), Option<String>>,
    nodes: BTreeMap<String, bool>,
}

impl Gone<'_> {
    /// Whether the suspicion about an object of that namespace is right.
    async fn is_so(&mut self, namespace: &str, suspicion: &Suspicion) -> Result<bool, Failed> {
        match suspicion {
            Suspicion::Unowned => Ok(true),
            Suspicion::NodeGone(name) => {
                if !self.nodes.contains_key(name) {
                    let nodes: Api<Node> = Api::all(self.context.client());
                    let is_gone = self.context.ask(DOING, nodes.get_metadata_opt(name)).await?.is_none();
                    self.nodes.insert(name.clone(), is_gone);
                }
                Ok(self.nodes.get(name) == Some(&true))
            }
            Suspicion::PodGone { name, uid } => {
                let key = (namespace.to_owned(), name.clone());
                if !self.pods.contains_key(&key) {
                    let pods: Api<Pod> = Api::namespaced(self.context.client(), namespace);
                    let pod = self.context.ask(DOING, pods.get_metadata_opt(name)).await?;
                    self.pods.insert(key.clone(), pod.and_then(|pod| pod.metadata.uid));
                }
                Ok(self.pods.get(&key).is_some_and(|found| found.as_ref() != Some(uid)))
            }
        }
    }
}

/// That very object, as it was seen: one that changed meanwhile may have found its owner.
async fn delete(
    context: &Context,
    resource: &Resource,
    api_resource: &ApiResource,
    object: &Metadata,
) -> Result<(), Failed> {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let api: Api<DynamicObject> = Api::namespaced_with(context.client(), &namespace, api_resource);
    let only =
        Preconditions { uid: object.metadata.uid.clone(), resource_version: object.metadata.resource_version.clone() };
    let params = DeleteParams::background().preconditions(only);
    if context.write(DOING, api.delete(&name, &params)).await? {
        context.metrics.swept(resource.plural);
        tracing::info!(resource = resource.plural, namespace, name, "deleted an object that belonged to nobody");
    }
    Ok(())
}
