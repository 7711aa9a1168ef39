//! readiness gate: `cofferdam.dev/RouteReachable`, where routing is on (a base domain is set and the mode is not
//! `none`), unless the profile switches it off.
//!
//! A workload's template gets none: each of its pods does, when it is created.

use serde_json::json;

use super::{Inject, Rule, WebhookOnly};
use crate::{
    keys,
    pod::{Draft, Path},
    rules::{Context, Occasion},
};

pub(super) const RULE: Rule = Rule {
    name: "readiness-gate",
    holds: "a pod that is Ready has an address that works",
    effects: &[Inject],
    source: "Kubernetes: Pod Lifecycle, Pod readiness",
    reports: &["https://github.com/varnish/gateway/issues/17"],
    cel: WebhookOnly("a pod without the gate is no less safe"),
    audits: false,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let is_wanted =
        context.occasion == Occasion::Creation && context.profile.readiness_gate && context.policy.routing().is_on();
    if !is_wanted {
        return;
    }
    let gates = Path::of(&["spec", "readinessGates"]);
    let items = pod.items(&gates);
    if !items.iter().any(|gate| pod.is(&gate.at(&["conditionType"]), keys::ROUTE_REACHABLE)) {
        pod.append(&gates, json!({ "conditionType": keys::ROUTE_REACHABLE }));
    }
}

#[cfg(test)]
mod tests;
