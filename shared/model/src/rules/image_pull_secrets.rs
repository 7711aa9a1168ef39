//! imagePullSecrets: the profile's, added to the author's.
//!
//! Not in a template: the API server gives a pod its service account's secrets only where it brings none, and does so
//! before any webhook sees it.

use serde_json::json;

use super::{Inject, Rule, WebhookOnly};
use crate::{
    pod::{Draft, Path},
    rules::{Context, Occasion},
};

pub(super) const RULE: Rule = Rule {
    name: "image-pull-secrets",
    holds: "the pod can pull what the profile has secrets for",
    effects: &[Inject],
    source: "Kubernetes: Images, Specifying imagePullSecrets on a Pod",
    reports: &["https://github.com/jainishshah17/tugger/issues/31"],
    cel: WebhookOnly("a pod that lacks a secret pulls less, not more"),
    audits: false,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    if context.occasion != Occasion::Creation {
        return;
    }
    let secrets = Path::of(&["spec", "imagePullSecrets"]);
    let items = pod.items(&secrets);
    let there: Vec<String> = items.iter().filter_map(|secret| pod.text(&secret.at(&["name"]))).collect();
    for name in context.profile.scheduling.image_pull_secrets.iter().filter(|name| !there.contains(name)) {
        pod.append(&secrets, json!({ "name": name }));
    }
}

#[cfg(test)]
mod tests;
