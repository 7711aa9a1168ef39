//! Deletes what belongs to nobody.

use std::collections::BTreeMap;
use std::time::Duration;

use cofferdam_model::is_object_name;
use cofferdam_model::keys::{AGENT, MANAGED_BY, SESSION};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind, ListMeta, Request};
use kube::{Api, Resource as _};
use serde::Deserialize;
use tokio::time::sleep;

use super::Failed;
use crate::elected::Context;
use crate::elected::orphans::{Known, Metadata, Suspicion, suspicion};
use crate::objects::Kind;

/// Between two sweeps; the first is at once.
const ROUND: Duration = Duration::from_mins(5);

/// After one that failed.
const RETRY: Duration = Duration::from_secs(30);

/// Objects of one answer: the metadata of one may have half a megabyte, and all of it is sent.
const PAGE: u32 = 50;

const DOING: &str = "looking for objects that belong to nobody";

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
    let known = known(context).await?;
    let mut gone = Gone { context, pods: BTreeMap::new(), sessions: BTreeMap::new(), nodes: BTreeMap::new() };
    let mut result = Ok(());
    for kind in Kind::ALL {
        for version in kind.versions() {
            match sweep_version(context, kind, version, &known, &mut gone).await {
                Ok(true) => break,
                Ok(false) => {}
                Err(Failed) => result = Err(Failed),
            }
        }
    }
    result
}

/// Looks at all our objects of one kind, in that version of it, and keeps none: false where there is no such kind.
async fn sweep_version(
    context: &Context,
    kind: Kind,
    version: &str,
    known: &Known,
    gone: &mut Gone<'_>,
) -> Result<bool, Failed> {
    let gvk = GroupVersionKind::gvk(kind.group(), version, kind.name());
    let api_resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural());
    let mut pages = Pages::new(context, &api_resource, None, &format!("{MANAGED_BY}={AGENT}"));
    let mut result = Ok(true);
    while !pages.is_over {
        let Some(page) = pages.next().await? else { return Ok(false) };
        for object in page {
            let Some(suspicion) = suspicion(&object, known) else { continue };
            let swept = match gone.is_so(&object, &suspicion).await {
                Ok(true) => delete(context, kind, &api_resource, &object).await,
                Ok(false) => Ok(()),
                Err(Failed) => Err(Failed),
            };
            result = swept.and(result);
        }
    }
    result
}

/// The metadata of all objects of a kind, page by page.
struct Pages<'a> {
    context: &'a Context,
    request: Request,
    params: ListParams,
    is_over: bool,
}

/// One of them. What is not read is not kept: a type for all metadata would hold annotations and managed fields.
#[derive(Default, Deserialize)]
struct Page {
    #[serde(default)]
    metadata: ListMeta,
    items: Vec<Object>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

impl<'a> Pages<'a> {
    /// Of one namespace, or of all; `labels` is a selector.
    fn new(context: &'a Context, resource: &ApiResource, namespace: Option<&str>, labels: &str) -> Self {
        let request = Request::new(DynamicObject::url_path(resource, namespace));
        Self { context, request, params: ListParams::default().labels(labels).limit(PAGE), is_over: false }
    }

    /// The next one; none where there is no such kind.
    async fn next(&mut self) -> Result<Option<Vec<Metadata>>, Failed> {
        let page = async {
            let request = self.request.list_metadata(&self.params).map_err(kube::Error::BuildRequest)?;
            match self.context.client().request::<Page>(request).await {
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                answer => answer.map(Some),
            }
        };
        let Some(page) = self.context.ask(DOING, page).await? else { return Ok(None) };
        self.params.continue_token = page.metadata.continue_.filter(|next| !next.is_empty());
        self.is_over = self.params.continue_token.is_none();
        Ok(Some(page.items.into_iter().map(|object| object.metadata).collect()))
    }
}

/// All nodes, and all pods with the label of a session.
async fn known(context: &Context) -> Result<Known, Failed> {
    let mut known = Known::default();
    let mut pods = Pages::new(context, &ApiResource::erase::<Pod>(&()), None, SESSION);
    let mut nodes = Pages::new(context, &ApiResource::erase::<Node>(&()), None, "");
    // Both kinds are always there.
    while !pods.is_over {
        for pod in pods.next().await?.ok_or(Failed)? {
            let id = pod.session().unwrap_or_default().to_owned();
            known.sessions.insert((pod.namespace, id));
            known.pods.insert(pod.uid);
        }
    }
    while !nodes.is_over {
        known.nodes.extend(nodes.next().await?.ok_or(Failed)?.into_iter().map(|node| node.name));
    }
    Ok(known)
}

/// What was asked for, each once in a sweep: nothing is deleted on the strength of a list of everything, which is older
/// than the object may be.
struct Gone<'a> {
    context: &'a Context,
    /// The uid of the pod of that namespace and name, if it is there.
    pods: BTreeMap<(String, String), Option<String>>,
    /// Whether no pod has that namespace and id.
    sessions: BTreeMap<(String, String), bool>,
    nodes: BTreeMap<String, bool>,
}

impl Gone<'_> {
    /// Whether the suspicion about that object is right.
    async fn is_so(&mut self, object: &Metadata, suspicion: &Suspicion<'_>) -> Result<bool, Failed> {
        let (context, namespace) = (self.context, object.namespace.as_str());
        match suspicion {
            Suspicion::Unowned => {
                // No pod has an id that nobody says.
                let Some(id) = object.session() else { return Ok(true) };
                let key = (namespace.to_owned(), id.to_owned());
                if let Some(is_gone) = self.sessions.get(&key) {
                    return Ok(*is_gone);
                }
                let labels = format!("{SESSION}={id}");
                let mut pods = Pages::new(context, &ApiResource::erase::<Pod>(&()), Some(namespace), &labels);
                let mut is_gone = true;
                // A page may be empty, and not the last.
                while is_gone && !pods.is_over {
                    is_gone = pods.next().await?.ok_or(Failed)?.is_empty();
                }
                self.sessions.insert(key, is_gone);
                Ok(is_gone)
            }
            Suspicion::NodeGone(name) => {
                if let Some(is_gone) = self.nodes.get(*name) {
                    return Ok(*is_gone);
                }
                let nodes: Api<Node> = Api::all(context.client());
                let is_gone = context.ask(DOING, nodes.get_metadata_opt(name)).await?.is_none();
                self.nodes.insert((*name).to_owned(), is_gone);
                Ok(is_gone)
            }
            // No pod has such a name, and it would become a part of a path.
            Suspicion::PodGone(owner) if !is_object_name(&owner.name) => Ok(true),
            Suspicion::PodGone(owner) => {
                let key = (namespace.to_owned(), owner.name.clone());
                if let Some(found) = self.pods.get(&key) {
                    return Ok(found.as_ref() != Some(&owner.uid));
                }
                let pods: Api<Pod> = Api::namespaced(context.client(), namespace);
                let pod = context.ask(DOING, pods.get_metadata_opt(&owner.name)).await?;
                let found = pod.and_then(|pod| pod.metadata.uid);
                let is_gone = found.as_ref() != Some(&owner.uid);
                self.pods.insert(key, found);
                Ok(is_gone)
            }
        }
    }
}

/// That very object, as it was seen: one that changed meanwhile may have found its owner.
async fn delete(context: &Context, kind: Kind, api_resource: &ApiResource, object: &Metadata) -> Result<(), Failed> {
    let Metadata { namespace, name, uid, resource_version, .. } = object;
    let api: Api<DynamicObject> = Api::namespaced_with(context.client(), namespace, api_resource);
    let only = Preconditions { uid: Some(uid.clone()), resource_version: Some(resource_version.clone()) };
    let params = DeleteParams::background().preconditions(only);
    if context.write(DOING, api.delete(name, &params)).await? {
        context.metrics.swept(kind.plural());
        tracing::info!(resource = kind.plural(), namespace, name, "deleted an object that belonged to nobody");
    }
    Ok(())
}
