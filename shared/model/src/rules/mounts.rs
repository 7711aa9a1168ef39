//! mountPropagation, subPath, subPathExpr: None; within the mount.
//!
//! What a `$(VARIABLE)` of a subPathExpr stands for is known to the kubelet alone; it looks at the expanded path in the
//! same way and does not start the container.

use super::{Refuse, Rule, Stated, Tighten};
use crate::{names::leads_out, pod::Draft, rules::Context};

pub(super) const RULE: Rule = Rule {
    name: "mounts",
    holds: "no mount reaches out of its volume or passes later mounts between container and node",
    effects: &[Tighten, Refuse],
    source: "Kubernetes: Volumes, Mount propagation and Using subPath",
    reports: &[
        "https://github.com/kubernetes/kubernetes/issues/104980",
        "https://github.com/kubernetes/kubernetes/issues/56625",
    ],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, _: &Context<'_>) {
    for container in pod.containers().iter() {
        for mount in pod.items(&container.path.at(&["volumeMounts"])) {
            let propagation = mount.at(&["mountPropagation"]);
            if pod.is_set(&propagation) {
                pod.require(&propagation, "None");
            }
            for field in ["subPath", "subPathExpr"] {
                let field = mount.at(&[field]);
                if pod.text(&field).is_some_and(|path| leads_out(&path)) {
                    pod.refuse(&field, "leads out of the volume; name a path below it, without a leading `/` and `..`");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
