//! emptyDir: the author's too: `sizeLimit` ≤ the ephemeral ceiling, with `medium: Memory` ≤ the memory ceiling;
//! HugePages refused.

use super::{Inject, Refuse, Rule, Stated, Tighten};
use crate::{
    pod::{Draft, Path},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "empty-dir",
    holds: "every emptyDir has a size limit within the container's ceiling for what it is made of",
    effects: &[Inject, Tighten, Refuse],
    source: "Kubernetes: Volumes, emptyDir",
    reports: &["https://github.com/kubernetes/kubernetes/issues/63126"],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let ceilings = &context.profile.resources.limits;
    for volume in pod.items(&Path::of(&["spec", "volumes"])) {
        // The API server makes a volume without any source an emptyDir.
        let has_no_source = pod.members(&volume) == ["name"];
        let empty_dir = volume.at(&["emptyDir"]);
        if !has_no_source && !pod.is_set(&empty_dir) {
            continue;
        }
        let medium = empty_dir.at(&["medium"]);
        let ceiling = match pod.text(&medium).as_deref() {
            None | Some("") => ceilings.ephemeral_storage,
            Some("Memory") => ceilings.memory,
            Some(_) => {
                pod.refuse(&medium, "must be left out or be Memory; huge pages are not for sessions");
                continue;
            }
        };
        let limit = empty_dir.at(&["sizeLimit"]);
        match pod.amount(&limit) {
            Some(size) if size > ceiling => pod.tighten(&limit, ceiling),
            // Zero means no limit to a kubelet.
            Some(size) if !size.is_zero() => {}
            _ => pod.inject(&limit, ceiling),
        }
    }
}

#[cfg(test)]
mod tests;
