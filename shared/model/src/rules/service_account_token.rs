//! service account token: automount false, **and** the already-injected token volume and its mounts removed;
//! `serviceAccountToken` and `podCertificate` sources removed from the author's projected volumes, but for audiences
//! that the profile lists (a mesh's; the API server's own never).
//!
//! The `ServiceAccount` plugin runs before any webhook, so its volume is already there; nobody asked for it. One that an
//! author copied to the letter cannot be told from it.
//!
//! The proof of identity that the body's init container mounts stays; [`super::reserved_names`] holds that nothing else
//! mounts it.

use std::collections::HashSet;

use serde_json::json;

use super::{Inject, Rule, Stated, Tighten, body};
use crate::{
    change::{Action, Told},
    pod::{Draft, Path},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "service-account-token",
    holds: "the pod holds no credential of its service account",
    effects: &[Inject, Tighten],
    source: "Kubernetes: Configure Service Accounts for Pods, Opt out of API credential automounting",
    reports: &["https://github.com/SAP-archive/karydia/pull/66"],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    pod.require(&Path::of(&["spec", "automountServiceAccountToken"]), false);
    let volumes = Path::of(&["spec", "volumes"]);
    let mut plugins = Vec::new();
    let mut names = HashSet::new();
    for (index, volume) in pod.items(&volumes).into_iter().enumerate() {
        if pod.value(&volume).as_ref() == Some(&body::identity_volume(context.policy.bodies())) {
            continue;
        }
        if is_the_plugins(pod, &volume) {
            plugins.push(index);
            names.extend(pod.text(&volume.at(&["name"])));
        } else {
            authors_sources(pod, &volume.at(&["projected", "sources"]), &context.profile.token_audiences);
        }
    }
    pod.remove_items(&volumes, &plugins, Action::Inject, Told::nothing);
    for container in pod.containers().iter() {
        let mounts = container.path.at(&["volumeMounts"]);
        let mut of_plugins = Vec::new();
        for (index, mount) in pod.items(&mounts).iter().enumerate() {
            if pod.text(&mount.at(&["name"])).is_some_and(|name| names.contains(&name)) {
                of_plugins.push(index);
            }
        }
        pod.remove_items(&mounts, &of_plugins, Action::Inject, Told::nothing);
    }
}

/// Whether the `ServiceAccount` plugin made this volume: by a name and a content as it makes them.
fn is_the_plugins(pod: &mut Draft, volume: &Path) -> bool {
    let is_named_so = pod.text(&volume.at(&["name"])).is_some_and(|name| {
        name.strip_prefix("kube-api-access-").is_some_and(|suffix| {
            suffix.len() == 5 && suffix.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
    });
    let namespace =
        json!({ "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" }, "path": "namespace" });
    let root = json!({ "key": "ca.crt", "path": "ca.crt" });
    let projected = json!({
        "defaultMode": 0o644,
        "sources": [
            { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
            { "configMap": { "name": "kube-root-ca.crt", "items": [root] } },
            { "downwardAPI": { "items": [namespace] } },
        ],
    });
    is_named_so
        && pod.members(volume).iter().all(|member| member == "name" || member == "projected")
        && pod.value(&volume.at(&["projected"])) == Some(projected)
}

/// Takes credentials out of a projected volume; what else it projects stays, and so do its mounts.
fn authors_sources(pod: &mut Draft, sources: &Path, audiences: &[String]) {
    let items = pod.items(sources);
    let credentials: Vec<usize> = items
        .iter()
        .enumerate()
        .filter(|(_, source)| {
            let token = source.at(&["serviceAccountToken"]);
            let for_a_listed_audience =
                pod.text(&token.at(&["audience"])).is_some_and(|audience| audiences.contains(&audience));
            pod.is_set(&source.at(&["podCertificate"])) || (pod.is_set(&token) && !for_a_listed_audience)
        })
        .map(|(index, _)| index)
        .collect();
    pod.remove_items(sources, &credentials, Action::Tighten, Told::nothing);
}

#[cfg(test)]
mod tests;
