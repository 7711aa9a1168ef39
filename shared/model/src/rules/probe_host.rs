//! probe and lifecycle `host` fields: removed.
//!
//! A kubelet asks from the node, past every NetworkPolicy, and tells by the pod's readiness whether it was answered.
//! Without a host it asks the pod. A `Host` header only names what the pod is asked for, and stays.

use super::{Rule, Stated, Tighten};
use crate::{
    change::{Action, Told},
    pod::Draft,
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "probe-host",
    holds: "probes and lifecycle hooks make the node ask nobody but the pod itself",
    effects: &[Tighten],
    source: "Pod Security Standards: Host Probes / Lifecycle Hooks",
    reports: &[
        "https://github.com/kubernetes/kubernetes/issues/99425",
        "https://github.com/kubernetes/kubernetes/issues/81129",
    ],
    cel: Stated,
    audits: true,
    apply,
};

/// What a kubelet does for a container.
const HANDLERS: [&[&str]; 5] = [
    &["livenessProbe"],
    &["readinessProbe"],
    &["startupProbe"],
    &["lifecycle", "postStart"],
    &["lifecycle", "preStop"],
];

fn apply(pod: &mut Draft, _: &Context<'_>) {
    for container in pod.containers().iter() {
        for handler in HANDLERS {
            for kind in ["httpGet", "tcpSocket"] {
                let host = container.path.at(handler).at(&[kind, "host"]);
                if pod.text(&host).is_some_and(|host| !host.is_empty()) {
                    pod.remove(&host, Action::Tighten, Told::nothing);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
