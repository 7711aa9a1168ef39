//! ports: what the annotation `cofferdam.dev/ports` names are ports of TCP or UDP, and no more than 32 are to be
//! published, whether it names them or the containers do.
//!
//! They may change while the pod lives, so that is for the agent to judge: it publishes nothing of a pod whose ports it
//! cannot tell. Whoever creates one hears of it at once.

use super::{Refuse, Rule, WebhookOnly};
use crate::{
    keys,
    pod::{Draft, Path},
    ports::Ports,
    rules::{Context, Occasion},
};

pub(super) const RULE: Rule = Rule {
    name: "ports",
    holds: "the ports to publish can be told",
    effects: &[Refuse],
    source: "Cofferdam: its annotation `cofferdam.dev/ports`; Kubernetes: EndpointSlices",
    reports: &[],
    cel: WebhookOnly("a pod whose ports are not published is no less safe"),
    audits: false,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    if context.occasion == Occasion::Debugging {
        return;
    }
    let annotation = Path::annotation(keys::PORTS);
    // Of another type it is refused by this, and no override.
    let (field, ports) = match pod.text(&annotation) {
        Some(text) => (annotation, Ports::parse(&text)),
        None => (Path::of(&["spec", "containers"]), Ports::of(pod.json())),
    };
    if let Err(error) = ports {
        pod.refuse(&field, error.to_string());
    }
}

#[cfg(test)]
mod tests;
