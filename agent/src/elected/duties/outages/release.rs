//! Ends what its own agent cannot end: the sessions of pods that are over on a lost node. Such a pod is there for as long as
//! its node is neither back nor deleted, and until then it would have its id.

use std::collections::BTreeSet;

use cofferdam_kubernetes::{Class, Resource};

use super::{made_for, write_all};
use crate::elected::Context;
use crate::elected::duties::Logged;
use crate::elected::orphans::Metadata;
use crate::elected::outage::{Pod, is_released};
use crate::objects::{Kind, resource};

pub(super) const DOING: &str = "ending sessions of a lost node";

/// Deletes what pods that are over own, the claim last and only where all the rest is deleted: whoever has it answers for that,
/// and the agent of another node may not write over what is left. `released` are the uids of the pods of which nothing is
/// left, which nobody looks for again.
pub(super) async fn release(
    context: &Context,
    node: &str,
    pods: &[Pod],
    released: &mut BTreeSet<String>,
    holds: &impl Fn() -> bool,
) -> Result<(), Logged> {
    let mut over: BTreeSet<String> = pods.iter().filter(|pod| pod.is_over()).map(|pod| pod.uid.clone()).collect();
    if over.is_subset(released) {
        return Ok(());
    }
    let mut result = Ok(());
    for kind in Kind::ALL.into_iter().rev() {
        let Some((resource, mut objects)) = owned(context, node, kind, pods).await? else { continue };
        let is_whole = |object: &Metadata| object.pods.iter().all(|owner| over.contains(&owner.uid));
        objects.retain(|object| kind != Kind::Service || is_whole(object));
        let delete = |object: &Metadata| {
            let (uid, object, resource) = (object.uid.clone(), object.clone(), &resource);
            async move {
                let is_deleted = if holds() { context.delete(DOING, kind, resource, object).await } else { Ok(false) };
                (uid, is_deleted)
            }
        };
        let (writes, mut deleted) = (objects.iter().map(delete).collect(), BTreeSet::new());
        result = write_all(writes, node, "what pods that are over owned is deleted", &mut deleted).await.and(result);
        let is_left = |object: &&Metadata| !deleted.contains(&object.uid);
        for owner in objects.iter().filter(is_left).flat_map(|object| &object.pods) {
            over.remove(&owner.uid);
        }
    }
    *released = over;
    result
}

/// What pods that are over own of a kind, as far as it is not being deleted; none where there is no such kind.
async fn owned(
    context: &Context,
    node: &str,
    kind: Kind,
    pods: &[Pod],
) -> Result<Option<(Resource, Vec<Metadata>)>, Logged> {
    'versions: for version in kind.versions() {
        let (resource, selection) = (resource(kind, version).metadata(), made_for(node));
        let (mut pages, mut owned) = (context.cluster.pages(&resource, &selection), Vec::new());
        loop {
            let page = match pages.next().await {
                Ok(None) => return Ok(Some((resource, owned))),
                Err(failed) if failed.class == Class::NotFound => continue 'versions,
                page => context.told(DOING, page)?,
            };
            let objects = page.iter().flat_map(|page| &page.items).map(Metadata::read);
            owned.extend(objects.filter(|object| is_released(object, pods)));
        }
    }
    Ok(None)
}
