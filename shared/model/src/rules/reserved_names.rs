//! | what | rule | action |
//! | --- | --- | --- |
//! | names that begin with `cofferdam-` | ours: recognised by content on a second pass, refused otherwise | refuse |

use super::{Refuse, Rule, WebhookOnly, scratch};
use crate::{
    harden::Context,
    keys,
    pod::{Draft, Path},
};

pub(super) const RULE: Rule = Rule {
    name: "reserved-names",
    holds: "a container or volume that is named like ours is ours",
    effects: &[Refuse],
    source: "Cofferdam: the names of what it adds to a pod",
    reports: &["https://github.com/kserve/kserve/pull/3517"],
    cel: WebhookOnly("what is ours is told by its whole content"),
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    for container in pod.containers().iter() {
        refuse_if_reserved(pod, &container.path);
    }
    for volume in pod.items(&Path::of(&["spec", "volumes"])) {
        let value = pod.value(&volume);
        if !context.profile.scratch.iter().any(|known| value.as_ref() == Some(&scratch::volume(known))) {
            refuse_if_reserved(pod, &volume);
        }
    }
}

fn refuse_if_reserved(pod: &mut Draft, named: &Path) {
    let name = named.at(&["name"]);
    if pod.text(&name).is_some_and(|name| name.starts_with(keys::RESERVED_NAME)) {
        pod.refuse(
            &name,
            format!("begins with `{}`, which is kept for Cofferdam's own; rename it", keys::RESERVED_NAME),
        );
    }
}

#[cfg(test)]
mod tests;
