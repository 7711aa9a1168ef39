//! image: allowed list (globs, digest-only option), for image volumes and ephemeral containers as well; pull policy.
//!
//! A reference is judged in full, as a runtime reads it. One that is empty or missing is left to the API server, which
//! refuses it. What a node's runtime makes of a short name by a search list of its own is for its operator to settle.

use super::{But, Inject, Refuse, Rule, Tighten, body, it_allows};
use crate::{
    image::{has_digest, in_full},
    pod::{Container, Draft, Path},
    policy::{Images, image_matches},
    rules::{Context, Occasion},
};

pub(super) const RULE: Rule = Rule {
    name: "image",
    holds: "the pod runs and mounts only images that the profile allows, pulled as it says",
    effects: &[Inject, Tighten, Refuse],
    source: "Kubernetes: Images, Image names and Image pull policy",
    reports: &[
        "https://github.com/kubescape/cel-admission-library/issues/90",
        "https://github.com/kubescape/cel-admission-library/pull/83",
        "https://github.com/kyverno/policies/issues/538",
    ],
    cel: But("the image of our own init container, which they tell by its name"),
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let images = &context.profile.images;
    for container in pod.containers().iter() {
        if !is_ours(pod, container, context) {
            judge(pod, &container.path, ["image", "imagePullPolicy"], images);
        }
    }
    for volume in pod.items(&Path::of(&["spec", "volumes"])) {
        let image = volume.at(&["image"]);
        if pod.is_set(&image) {
            judge(pod, &image, ["reference", "pullPolicy"], images);
        }
    }
}

/// Whether this is the init container that fetches bodies: its image is the operator's, whatever authors may use. That
/// nobody else has the name is settled by [`super::reserved_names`]; a live pod may have an earlier version of the image,
/// and may not be given another one.
fn is_ours(pod: &mut Draft, container: &Container, context: &Context<'_>) -> bool {
    body::is_called_fetch(pod, container)
        && (context.occasion == Occasion::Audit
            || pod.is(&container.path.at(&["image"]), &context.policy.bodies().image))
}

fn judge(pod: &mut Draft, holder: &Path, [reference, pull_policy]: [&'static str; 2], images: &Images) {
    let field = holder.at(&[reference]);
    if let Some(reference) = pod.text(&field).filter(|reference| !reference.is_empty()) {
        let full = in_full(&reference);
        if !images.allowed.iter().any(|pattern| image_matches(pattern, &full)) {
            let allowed: Vec<&str> = images.allowed.iter().map(String::as_str).collect();
            pod.refuse(&field, format!("is no image that the profile allows; {}", it_allows(&allowed)));
        }
        if images.digest_only && !has_digest(&full) {
            pod.refuse(&field, "names no digest, which the profile asks for; add `@sha256:` and the digest");
        }
    }
    if images.always_pull {
        // What the API server fills in depends on the tag, and nobody asked for it.
        pod.require_over(&holder.at(&[pull_policy]), "Always", "IfNotPresent");
    }
}

#[cfg(test)]
mod tests;
