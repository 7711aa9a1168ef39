//! enableServiceLinks, shareProcessNamespace: false.
//!
//! Service links put the addresses of every Service of the namespace into the environment: other sessions' too.

use super::{Inject, Rule, Stated, Tighten};
use crate::{
    pod::{Draft, Path},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "sharing",
    holds: "containers see neither other Services in their environment nor each other's processes",
    effects: &[Inject, Tighten],
    source: "Kubernetes: Accessing the Service, Share Process Namespace between Containers in a Pod",
    reports: &[],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, _: &Context<'_>) {
    pod.require_over(&Path::of(&["spec", "enableServiceLinks"]), false, true);
    pod.require(&Path::of(&["spec", "shareProcessNamespace"]), false);
}

#[cfg(test)]
mod tests;
