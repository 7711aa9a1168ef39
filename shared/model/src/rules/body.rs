//! body: init container `cofferdam-fetch`, before the author's own init containers, after native sidecars that already
//! lead the list (a mesh's proxy must run first); hardened and limited like the rest; the directory that it fills is
//! mounted in every container after it, unless that one mounts the path itself. The body's token is in a Secret, and
//! reaches no other container; nor does the pod's identity, which only a body with a token asks for.
//!
//! What is put in is complete in itself, since this rule runs after those that would harden it: on a second pass they
//! find nothing to do. Whether a container of that name is ours is told by [`super::reserved_names`], by its content.
//!
//! A workload's template gets none of it: each of its pods does, when it is created. What its annotations say wrong is
//! said of the template too.

use serde_json::json;

use self::{
    annotations::asked,
    parts::{BODY, VOLUME_TYPES, body_volume, container, resources, token_volumes},
};
use super::{Inject, Refuse, Rule, WebhookOnly, mount_path::is_covered};
use crate::{
    keys,
    pod::{Container, Draft, List, Path},
    rules::{Context, Occasion},
};

mod annotations;
mod parts;

pub(super) use parts::{CREDENTIALS, expected, identity_volume, is_called_fetch, is_fetch};

pub(super) const RULE: Rule = Rule {
    name: "body",
    holds: "the body is fetched, checked and unpacked before anything of the author's runs",
    effects: &[Inject, Refuse],
    source: "Cofferdam: body delivery; Kubernetes: Init Containers",
    reports: &[
        "https://github.com/linkerd/linkerd2/issues/2750",
        "https://github.com/elastic/cloud-on-k8s/issues/3294",
        "https://github.com/argoproj/argo-workflows/issues/7209",
        "https://github.com/actions/runner-container-hooks/pull/395",
    ],
    cel: WebhookOnly("a pod without its body is no less safe"),
    audits: false,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let delivery = match asked(pod, context) {
        Ok(Some(delivery)) if context.occasion == Occasion::Creation => delivery,
        Ok(_) => return,
        Err(problems) => {
            for (field, message) in problems {
                pod.refuse(&field, message);
            }
            return;
        }
    };
    let (volumes, init) = (Path::of(&["spec", "volumes"]), Path::of(&["spec", "initContainers"]));
    let mut wanted = vec![body_volume(context)];
    wanted.extend(token_volumes(&delivery, context));
    for volume in wanted {
        let Some(kind) = VOLUME_TYPES.into_iter().find(|&kind| volume.get(kind).is_some()) else { continue };
        if !context.profile.volume_types.iter().any(|allowed| allowed == kind) {
            let message =
                format!("takes a volume of type {kind}, which the profile does not allow; use another profile");
            pod.refuse(&Path::annotation(keys::BODY_URL), message);
        }
        if !pod.has_named(&volumes, volume["name"].as_str().unwrap_or_default()) {
            pod.append(&volumes, volume);
        }
    }
    let all = pod.containers();
    let inits: Vec<&Container> = all.iter().filter(|container| container.list == List::InitContainers).collect();
    let fetch = inits.iter().position(|container| is_called_fetch(pod, container));
    // Native sidecars that lead the list run before ours.
    let place = fetch.unwrap_or_else(|| inits.iter().take_while(|container| pod.is_native_sidecar(container)).count());
    // Another webhook's container may have come before ours since, and stays there. Ours mounts the path already.
    let after = inits.into_iter().skip(place);
    for container in after.chain(all.iter().filter(|container| container.list == List::Containers)) {
        let path = &context.policy.bodies().path;
        if !is_covered(pod, &container.path, path) {
            pod.append(&container.path.at(&["volumeMounts"]), json!({ "name": BODY, "mountPath": path }));
        }
    }
    if fetch.is_none() {
        let mut container = container(&delivery, context);
        container["resources"] = resources(pod, context);
        pod.insert(&init, place, container);
    }
}

#[cfg(test)]
mod tests;
