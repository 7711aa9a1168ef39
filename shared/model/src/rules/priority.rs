//! priority: at most the profile's `maxPriority`; a priority class is judged by what it resolved to, since a cluster's
//! default may have put it there.
//!
//! The API server resolves a class before any webhook sees the pod; a file or a template has no number yet, and its pods
//! are judged when they are created.

use super::{Refuse, Rule, Stated};
use crate::{
    pod::{Draft, Path},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "priority",
    holds: "the pod evicts nothing of more importance than the profile says",
    effects: &[Refuse],
    source: "Kubernetes: Pod Priority and Preemption",
    reports: &[],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let field = Path::of(&["spec", "priority"]);
    let most = context.profile.scheduling.max_priority;
    if let Some(priority) = pod.number(&field).filter(|priority| *priority > most) {
        let message = format!(
            "is {priority}, and the profile allows {most}; name a priorityClassName of at most that (without one, the \
             cluster's default class has put it there)"
        );
        pod.refuse(&field, message);
    }
}

#[cfg(test)]
mod tests;
