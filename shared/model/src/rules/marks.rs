//! our own labels and annotations: the session id where the pod brings none; `cofferdam.dev/hardened`,
//! `cofferdam.dev/changes` written; `cofferdam.dev/endpoints` belongs to the agent, `cofferdam.dev/stopped` and
//! `cofferdam.dev/refused` to the API, and they are removed.
//!
//! Runs last: it writes down what the other rules did. The marks are for people; no rule ever believes them. On a
//! second pass `changes` is carried on if it reads as ours, so that a pass which changes nothing leaves no trace.

use serde_json::json;

use super::{Inject, Rule, Tighten, WebhookOnly};
use crate::{
    change::{Action, Told},
    keys,
    pod::{Draft, Path},
    record::Record,
    rules::{Context, Occasion},
};

pub(super) const RULE: Rule = Rule {
    name: "marks",
    holds: "the pod carries its session's id, and what was done to it by which policy",
    effects: &[Inject, Tighten],
    source: "Cofferdam: its own labels and annotations",
    reports: &[
        "https://github.com/k8snetworkplumbingwg/network-resources-injector/pull/104",
        "https://github.com/kubernetes/kubernetes/issues/90623",
    ],
    cel: WebhookOnly("the admission policy for our keys guards them; what was done is known to the webhook alone"),
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let label = Path::label(keys::SESSION);
    match context.session {
        Some(id) if !pod.is(&label, id.as_str()) => {
            pod.write(&label, json!(id.as_str()), Action::Inject, Told::nothing);
        }
        None if context.occasion.is_afterwards() => {
            pod.refuse(&label, "is missing; a pod becomes a session only when it is created");
        }
        _ => {}
    }
    // The agent and the API write there later on.
    let is_trusted = context.user.is_some_and(|user| context.policy.trusted().iter().any(|name| name == user.name));
    if !context.occasion.is_afterwards() && !is_trusted {
        for key in [keys::ENDPOINTS, keys::STOPPED, keys::REFUSED] {
            pod.remove(&Path::annotation(key), Action::Tighten, Told::nothing);
        }
    }
    // Of a template each pod gets marks of its own.
    if context.occasion == Occasion::Creation {
        write_down(pod, context);
    }
}

fn write_down(pod: &mut Draft, context: &Context<'_>) {
    let hardened = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "profile": context.profile_name,
        "policy": context.policy.digest(),
    });
    pod.stamp(&Path::annotation(keys::HARDENED), hardened.to_string());
    let changes = Path::annotation(keys::CHANGES);
    let earlier = pod.text(&changes).and_then(|text| Record::read(&text)).unwrap_or_default();
    let record = earlier.with(pod.changes());
    pod.stamp(&changes, record.to_string());
}

#[cfg(test)]
mod tests;
