//! | what | rule | action |
//! | --- | --- | --- |
//! | our own labels and annotations | the session id where the pod brings none; `cofferdam.dev/hardened`, `cofferdam.dev/changes` written; `cofferdam.dev/endpoints` belongs to the agent and is removed | inject/tighten |
//!
//! Runs last: it writes down what the other rules did. The marks are for people; no rule ever believes them. On a
//! second pass `changes` is carried on if it reads as ours, so that a pass which changes nothing leaves no trace.

use serde_json::json;

use super::{Inject, Rule, Tighten};
use crate::{
    change::{Action, Told},
    harden::Context,
    keys,
    pod::{Draft, Path},
    record::Record,
};

pub(super) const RULE: Rule = Rule {
    name: "marks",
    holds: "the pod carries its session's id, and what was done to it by which policy",
    effects: &[Inject, Tighten],
    source: "Cofferdam: its own labels and annotations",
    apply,
};

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let label = Path::of(&["metadata", "labels", keys::SESSION]);
    let id = context.session.as_str();
    if pod.text(&label).as_deref() != Some(id) {
        pod.write(&label, json!(id), Action::Inject, Told::nothing);
    }
    let annotations = Path::of(&["metadata", "annotations"]);
    pod.remove(&annotations.at(&[keys::ENDPOINTS]), Action::Tighten, Told::nothing);

    let hardened = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "profile": context.profile_name,
        "policy": context.policy.digest(),
    });
    pod.stamp(&annotations.at(&[keys::HARDENED]), hardened.to_string());
    let changes = annotations.at(&[keys::CHANGES]);
    let earlier = pod.text(&changes).and_then(|text| Record::read(&text)).unwrap_or_default();
    let record = earlier.with(pod.changes());
    pod.stamp(&changes, record.to_string());
}

#[cfg(test)]
mod tests;
