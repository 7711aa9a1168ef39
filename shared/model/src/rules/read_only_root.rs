//! readOnlyRootFilesystem: true.
//!
//! Directories that programs write to come back as scratch volumes, by [`super::scratch`].

use super::{Inject, Rule, Stated, Tighten};
use crate::{pod::Draft, rules::Context};

pub(super) const RULE: Rule = Rule {
    name: "read-only-root",
    holds: "readOnlyRootFilesystem is true in every container",
    effects: &[Inject, Tighten],
    source: "Kubernetes: Configure a Security Context for a Pod or Container",
    reports: &["https://github.com/cybozu-go/neco/issues/730"],
    cel: Stated,
    audits: true,
    apply,
};

/// The field of a container.
pub(super) const FIELD: [&str; 2] = ["securityContext", "readOnlyRootFilesystem"];

fn apply(pod: &mut Draft, _: &Context<'_>) {
    for container in pod.containers().iter() {
        pod.require(&container.path.at(&FIELD), true);
    }
}

#[cfg(test)]
mod tests;
