//! profile: only whom the policy lets use it, by namespace, user name and group; for a pod that a controller makes only
//! the namespace counts, since the user is the controller.

use super::{Refuse, Rule, Stated, owner::is_made_by_controller};
use crate::{
    keys,
    pod::{Draft, Path},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "profile",
    holds: "the pod uses a profile that its namespace and its creator may use",
    effects: &[Refuse],
    source: "Cofferdam: its policy, `allow`",
    reports: &[],
    cel: Stated,
    audits: false,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let allow = &context.profile.allow;
    let field = Path::label(keys::PROFILE);
    let name = context.profile_name;
    if !allow.admits_namespace(context.namespace) {
        pod.refuse(&field, format!("profile `{name}` may not be used in this namespace; use another profile"));
    }
    if allow.users.is_empty() && allow.groups.is_empty() {
        return;
    }
    if is_made_by_controller(pod, context) {
        let message = format!(
            "profile `{name}` is kept for certain users, and a pod that a controller makes is not created by any of \
             them; create it without a controller, or use another profile"
        );
        pod.refuse(&field, message);
        return;
    }
    let Some(user) = context.user else { return };
    let is_listed = allow.users.iter().any(|known| known == user.name);
    if !is_listed && !user.groups.iter().any(|group| allow.groups.contains(group)) {
        pod.refuse(&field, format!("profile `{name}` may not be used by you; use another profile"));
    }
}

#[cfg(test)]
mod tests;
