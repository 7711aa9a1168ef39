//! caches and scratch: one sized emptyDir per cache of the profile, mounted with its env in every container and init
//! container that we make read-only, unless it already mounts that path; an env variable that the author set stays.
//!
//! Every user can write there, whatever its number. A kubelet makes the directory of an emptyDir `0777`, gives it to the
//! pod's `fsGroup` with the set-group-ID bit, and makes the directory of a `subPath` with the mode of the one around it,
//! as root, in that group. What a container makes in a shared directory is of the `fsGroup`; in one of its own, of its
//! own group. (Kubernetes 1.37: `emptydir/empty_dir.go`, `volume_linux.go`, `subpath/subpath_linux.go`.)
//!
//! What a container's `envFrom` holds is not known to admission: a variable that is set here outranks it.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Inject, Refuse, Rule, WebhookOnly, mount_path::is_covered, read_only_root};
use crate::{
    keys,
    names::{LABEL, is_dns_label},
    pod::{Container, Draft, List, Path},
    policy::Scratch,
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "scratch",
    holds: "what is made read-only still has /tmp and a home to write to",
    effects: &[Inject, Refuse],
    source: "Kubernetes: Volumes, emptyDir",
    reports: &[
        "https://github.com/kubeflow/spark-operator/issues/1000",
        "https://github.com/kubernetes/kubernetes/issues/63126",
    ],
    cel: WebhookOnly("a pod without scratch directories is no less safe"),
    audits: false,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    // Who asked for a read-only root has already said where to write.
    let made_read_only: HashSet<String> = pod
        .changes()
        .iter()
        .filter(|change| change.rule == read_only_root::RULE.name)
        .map(|change| change.path.clone())
        .collect();
    for scratch in &context.profile.scratch {
        let mut is_mounted = false;
        for container in pod.containers().iter().filter(|container| container.list != List::EphemeralContainers) {
            let read_only = container.path.at(&read_only_root::FIELD);
            if made_read_only.contains(&read_only.to_string()) && !is_covered(pod, &container.path, &scratch.path) {
                mount(pod, container, scratch);
                is_mounted = true;
            }
        }
        let volumes = Path::of(&["spec", "volumes"]);
        if is_mounted && !pod.has_named(&volumes, &volume_name(scratch)) {
            pod.append(&volumes, volume(scratch));
        }
    }
}

/// The volume of a scratch directory, as it stands in a pod.
pub(super) fn volume(scratch: &Scratch) -> Value {
    json!({ "name": volume_name(scratch), "emptyDir": { "sizeLimit": scratch.size.to_string() } })
}

fn volume_name(scratch: &Scratch) -> String {
    format!("{}{}", keys::RESERVED_NAME, scratch.name)
}

fn mount(pod: &mut Draft, container: &Container, scratch: &Scratch) {
    let mounts = container.path.at(&["volumeMounts"]);
    let mut mount = json!({ "name": volume_name(scratch), "mountPath": scratch.path });
    if scratch.per_container
        && let Some(name) = pod.text(&container.path.at(&["name"]))
    {
        // The API server looks at names only after us, and `..` would be a way out of the volume.
        if !is_dns_label(&name, LABEL) {
            pod.refuse(&container.path.at(&["name"]), "must be at most 63 of a-z, 0-9 and `-`");
        }
        mount["subPath"] = name.into();
    }
    pod.append(&mounts, mount);
    let env = container.path.at(&["env"]);
    for (variable, place) in &scratch.env {
        if !pod.has_named(&env, variable) {
            let value = if place.is_empty() { scratch.path.clone() } else { format!("{}/{place}", scratch.path) };
            pod.append(&env, json!({ "name": variable, "value": value }));
        }
    }
}

#[cfg(test)]
mod tests;
