//! What all sessions of the namespace may use together: a `ResourceQuota` and a `LimitRange`, computed from the policy.
//!
//! The API has room for so many sessions; a quota that has less would be met first, as a refusal that looks like a fault.
//! So nobody writes these numbers: they are as many times the largest pod that the policy lets be.

use std::fmt::Write as _;

use cofferdam_model::policy::{Ceilings, Policy, Profile};
use cofferdam_model::quantity::Quantity;

/// The namespace of sessions where the policy names none.
const NAMESPACE: &str = "cofferdam-sessions";

/// The name of both objects.
const NAME: &str = "cofferdam-sessions";

/// One of the ceilings.
type Ceiling = fn(&Ceilings) -> Quantity;

/// What is counted: how Kubernetes calls it, and which of the ceilings it is.
const RESOURCES: [(&str, Ceiling); 3] = [
    ("cpu", |ceilings| ceilings.cpu),
    ("memory", |ceilings| ceilings.memory),
    ("ephemeral-storage", |ceilings| ceilings.ephemeral_storage),
];

/// The YAML of a `ResourceQuota` and a `LimitRange` for the policy's home namespace, with room for `sessions` pods of
/// whichever profile may be used there; its comments say how the numbers come about.
#[must_use]
pub fn render(policy: &Policy, sessions: u32) -> String {
    let namespace = policy.routing().home_namespace.as_deref().unwrap_or(NAMESPACE);
    let profiles = profiles(policy, namespace);
    let largest = RESOURCES.map(|(_, of)| {
        let pods = profiles.iter().map(|(_, profile)| of_pod(profile, of));
        pods.reduce(Ord::max).unwrap_or(Quantity::ZERO)
    });
    let all = largest.map(|amount| amount.times(sessions));

    let mut yaml = String::from(HEAD);
    let mut row = |name: &str, cells: [String; RESOURCES.len()]| {
        // Writing to a string cannot fail.
        let _ = writeln!(yaml, "#   {}", format!("{name:<20}{:<18}{:<20}{}", cells[0], cells[1], cells[2]).trim_end());
    };
    row("", RESOURCES.map(|(resource, _)| resource.to_owned()));
    for (name, profile) in &profiles {
        let sum = profile.pod.sum;
        row(
            name,
            RESOURCES.map(|(_, of)| format!("{} × {sum} = {}", of(&profile.resources.limits), of_pod(profile, of))),
        );
    }
    row("the largest pod", largest.map(|amount| amount.to_string()));
    row(&format!("{sessions} of them"), all.map(|amount| amount.to_string()));

    yaml.push_str(QUOTA);
    object(&mut yaml, "ResourceQuota", namespace);
    let _ = write!(yaml, "  hard:\n    pods: \"{sessions}\"\n");
    for ((resource, _), amount) in RESOURCES.iter().zip(all) {
        let _ = writeln!(yaml, "    limits.{resource}: \"{amount}\"");
    }
    yaml.push_str(LIMIT_RANGE);
    object(&mut yaml, "LimitRange", namespace);
    yaml.push_str("  limits:\n  - type: Pod\n    max:\n");
    for ((resource, _), amount) in RESOURCES.iter().zip(largest) {
        let _ = writeln!(yaml, "      {resource}: \"{amount}\"");
    }
    yaml
}

/// The profiles that may be used in the namespace, in order of their names.
fn profiles<'p>(policy: &'p Policy, namespace: &str) -> Vec<(&'p str, &'p Profile)> {
    let profiles = policy.profile_names().filter_map(|name| Some((name, policy.profile(name)?)));
    profiles.filter(|(_, profile)| profile.allow.admits_namespace(namespace)).collect()
}

/// The most of a resource that a pod of the profile may have.
fn of_pod(profile: &Profile, of: Ceiling) -> Quantity {
    of(&profile.resources.limits).times(profile.pod.sum)
}

fn object(yaml: &mut String, kind: &str, namespace: &str) {
    let _ = write!(
        yaml,
        "apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {NAME}\n  namespace: {namespace}\n  labels:\n    \
         app.kubernetes.io/component: sessions\nspec:\n"
    );
}

const HEAD: &str = "\
# What all sessions of the namespace may use together, and what one pod may. Made from the policy by
# `cofferdam-api quota`, which is run again whenever the policy or the number of sessions changes.
#
# A container has at most the ceilings of its profile (`resources.limits`), and a pod `pod.sum` times as much: its
# containers and native sidecars, all at their ceilings, are never more. Init containers count as well, but they run
# before, one at a time and beside the sidecars alone, with the same ceilings: that of a body, or an author's, adds
# nothing. Which profile a pod will use nobody knows, so each counts as the largest that may be used in this namespace.
# The overhead of a RuntimeClass counts too, and stands in no policy: where there is one, add it.
#
";

const QUOTA: &str = "\
#
# Kubernetes refuses a container without a limit where a quota counts it. The webhook gives one to every container, init
# containers included, so that only what it was not asked about is refused. Requests are never more than limits, and need
# no numbers of their own. Pods that have finished do not count.
";

const LIMIT_RANGE: &str = "\
---
# No pod takes what is there for all, even if the webhook was not asked. There is no entry for containers: the API server
# would write it into pods before the webhook sees them, as if their authors had asked for it.
";

#[cfg(test)]
mod tests;
