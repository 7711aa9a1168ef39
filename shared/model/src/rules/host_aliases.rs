//! hostAliases: none where the profile says so.

use super::{Refuse, Rule, Stated};
use crate::{
    pod::{Draft, Path},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "host-aliases",
    holds: "where the profile asks for it, no name means another address in the pod than in the network",
    effects: &[Refuse],
    source: "Kubernetes: Adding entries to Pod /etc/hosts with HostAliases",
    reports: &[],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let aliases = Path::of(&["spec", "hostAliases"]);
    if !context.profile.host_aliases && !pod.items(&aliases).is_empty() {
        pod.refuse(&aliases, "gives names addresses of its own, which the profile does not allow; remove it");
    }
}

#[cfg(test)]
mod tests;
