//! names that begin with `cofferdam-`: ours: recognised by content on a second pass, refused otherwise. The volumes
//! with the body's token and the pod's identity are mounted by `cofferdam-fetch` alone.
//!
//! What is ours is what the pod's annotations and the policy ask for now. A live pod may have been made by an earlier
//! policy or version, so of that one only the mounts are looked at; and that nobody gives `cofferdam-fetch` another
//! image, since images are all that an update may change of a container.

use serde_json::Value;

use super::{But, Refuse, Rule, body, scratch};
use crate::{
    keys,
    pod::{Container, Draft, List, Path},
    rules::{Context, Occasion},
};

pub(super) const RULE: Rule = Rule {
    name: "reserved-names",
    holds: "a container or volume that is named like ours is ours, and ours alone holds the body's token",
    effects: &[Refuse],
    source: "Cofferdam: the names of what it adds to a pod",
    reports: &["https://github.com/kserve/kserve/pull/3517"],
    cel: But("which containers and volumes are ours, which is told by their whole content"),
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    for container in pod.containers().iter() {
        if !body::is_called_fetch(pod, container) {
            refuse_credentials(pod, container);
        } else if context.occasion == Occasion::Update {
            let image = container.path.at(&["image"]);
            if pod.text(&image).as_deref() != Some(context.policy.bodies().image.as_str()) {
                pod.refuse(&image, "is not the image that Cofferdam fetches bodies with; leave it as it is");
            }
        }
    }
    if context.occasion.is_afterwards() {
        return;
    }
    let (fetch, mut volumes) =
        body::expected(pod, context).map_or((None, Vec::new()), |(fetch, volumes)| (Some(fetch), volumes));
    volumes.extend(context.profile.scratch.iter().map(scratch::volume));
    for container in pod.containers().iter() {
        let actual = pod.value(&container.path).unwrap_or_default();
        let is_ours = container.list == List::InitContainers
            && fetch.as_ref().is_some_and(|expected| body::is_fetch(&actual, expected));
        if !is_ours {
            refuse_if_reserved(pod, &container.path);
        }
    }
    for volume in pod.items(&Path::of(&["spec", "volumes"])) {
        let actual: Value = pod.value(&volume).unwrap_or_default();
        if !volumes.contains(&actual) {
            refuse_if_reserved(pod, &volume);
        }
    }
}

fn refuse_if_reserved(pod: &mut Draft, named: &Path) {
    let name = named.at(&["name"]);
    if pod.text(&name).is_some_and(|name| name.starts_with(keys::RESERVED_NAME)) {
        let message = format!(
            "begins with `{}`, which is kept for Cofferdam's own, and is not what the pod's annotations and the policy \
             ask for; rename it, or remove it to have Cofferdam's put in",
            keys::RESERVED_NAME
        );
        pod.refuse(&name, message);
    }
}

fn refuse_credentials(pod: &mut Draft, container: &Container) {
    for mount in pod.items(&container.path.at(&["volumeMounts"])) {
        let name = mount.at(&["name"]);
        if pod.text(&name).is_some_and(|name| body::CREDENTIALS.contains(&name.as_str())) {
            pod.refuse(&name, format!("holds what only {} may read; remove the mount", keys::FETCH_CONTAINER));
        }
    }
}

#[cfg(test)]
mod tests;
