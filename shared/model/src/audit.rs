//! The same rules over pods that are there, only looking.
//!
//! A pod may be there unhardened: made while no webhook was asked, made a session later by a label, or changed since.
//! What a live pod has by nature (`nodeName`, what only its creation could have put in) is no finding.

use serde_json::Value;

use crate::{
    pod::{Draft, Finding},
    policy::Policy,
    refusal::Reason,
    request::User,
    rules::Occasion,
    walk::{profile_name, walk},
};

/// What keeps a live pod from being a hardened session: each field that hardening would change or refuse, with the rule
/// that says so, in the rules' order. Empty for a pod that is as [`harden`](crate::harden()) would leave it. The
/// messages hold no value that could be secret.
#[must_use]
pub fn audit(pod: &Value, policy: &Policy) -> Vec<Reason> {
    findings(pod, policy, Occasion::Audit, &profile_name(&mut Draft::new(pod)), None)
        .into_iter()
        .map(|(reason, _)| reason)
        .collect()
}

/// What an update would make worse: findings of the new pod that the old one does not have, at that place and with that
/// value. So whoever removes a finalizer from a pod that was never hardened is not held up. Both are judged as if `user`
/// had made them: what a live pod is believed to have from a controller, nobody else may add. And both by the profile of
/// the old one: a pod keeps it, and of a resize the API server drops other labels once the webhooks have seen them.
pub(crate) fn loosened(old: &Value, new: &Value, policy: &Policy, user: Option<User<'_>>) -> Vec<Reason> {
    let profile = profile_name(&mut Draft::new(old));
    let before = findings(old, policy, Occasion::Update, &profile, user);
    findings(new, policy, Occasion::Update, &profile, user)
        .into_iter()
        .filter(|finding| !before.contains(finding))
        .map(|(reason, _)| reason)
        .collect()
}

fn findings(pod: &Value, policy: &Policy, occasion: Occasion, profile: &str, user: Option<User<'_>>) -> Vec<Finding> {
    let mut draft = Draft::audit(pod);
    draft.find_containers();
    walk(&mut draft, policy, occasion, profile, "", None, user);
    draft.into_findings()
}

#[cfg(test)]
mod tests;
