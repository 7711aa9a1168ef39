//! hostUsers: false where the profile says so; an author's `true` then goes.

use super::{Inject, Rule, Stated, Tighten};
use crate::{
    pod::{Draft, Path},
    policy::HostUsers,
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "host-users",
    holds: "where the profile asks for it, the pod's users are none of the node's",
    effects: &[Inject, Tighten],
    source: "Kubernetes: User Namespaces",
    reports: &[],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    if context.profile.host_users == HostUsers::Never {
        pod.require(&Path::of(&["spec", "hostUsers"]), false);
    }
}

#[cfg(test)]
mod tests;
