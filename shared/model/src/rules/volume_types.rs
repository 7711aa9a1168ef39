//! volume types: an allow list per profile; by default those of PodSecurity `restricted`. Whatever is not on it, known
//! to us or not, is refused.

use super::{Refuse, Rule, Stated, it_allows};
use crate::{
    pod::{Draft, Path},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "volume-types",
    holds: "the pod has only volumes of the types that the profile lists",
    effects: &[Refuse],
    source: "Pod Security Standards: Volume Types, HostPath Volumes",
    reports: &["https://github.com/mondoohq/mql/pull/10951"],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let allowed = &context.profile.volume_types;
    for volume in pod.items(&Path::of(&["spec", "volumes"])) {
        for member in pod.members(&volume) {
            // Every member but the name is a source; one that we have never heard of is a new type.
            if member != "name" && !allowed.contains(&member) {
                let names: Vec<&str> = allowed.iter().map(String::as_str).collect();
                pod.refuse(&volume.key(member), format!("is no volume type of the profile; {}", it_allows(&names)));
            }
        }
    }
}

#[cfg(test)]
mod tests;
