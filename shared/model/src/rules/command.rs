//! command: where the profile has one with a place for the entry (`$(ENTRY)`), the pod names an entry
//! (`cofferdam.dev/entry`) and its first container sets neither command nor arguments: filled in. Everything else of
//! what runs is the creator's. An entry that leads out of the body is refused.
//!
//! A workload's template gets none: each of its pods does, when it is created.

use serde_json::json;

use super::{Inject, Refuse, Rule, WebhookOnly};
use crate::{
    change::{Action, Told},
    keys,
    names::is_plain_place,
    pod::{Draft, Path},
    policy::ENTRY,
    rules::{Context, Occasion},
};

pub(super) const RULE: Rule = Rule {
    name: "command",
    holds: "a pod that names an entry and nothing to run runs the profile's command",
    effects: &[Inject, Refuse],
    source: "Cofferdam: its policy, `command`; Kubernetes: Define a Command and Arguments for a Container",
    reports: &[],
    cel: WebhookOnly("what runs is the creator's affair"),
    audits: false,
    apply,
};

/// Bytes of an entry.
const LONGEST: usize = 1024;

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let field = Path::annotation(keys::ENTRY);
    let Some(entry) = pod.text(&field) else { return };
    if !is_entry(&entry) {
        let message = format!(
            "must be a path inside the body, such as src/main.js: at most {LONGEST} bytes, no `/` at either end, no `.`, \
             `..` or empty part"
        );
        pod.refuse(&field, message);
        return;
    }
    let template = &context.profile.command;
    if context.occasion != Occasion::Creation || !template.iter().any(|part| part.contains(ENTRY)) {
        return;
    }
    let entry = escape(&format!("{}/{entry}", context.policy.bodies().path));
    let command = json!(template.iter().map(|part| part.replace(ENTRY, &entry)).collect::<Vec<_>>());
    let containers = pod.items(&Path::of(&["spec", "containers"]));
    // Another webhook may have put a container before the first one since.
    if containers.iter().any(|at| pod.value(&at.at(&["command"])).as_ref() == Some(&command)) {
        return;
    }
    let Some(first) = containers.first() else { return };
    if pod.items(&first.at(&["command"])).is_empty() && pod.items(&first.at(&["args"])).is_empty() {
        pod.write(&first.at(&["command"]), command, Action::Inject, Told::nothing);
    }
}

/// Whether a pod may name this as its entry: a path inside the body, with nothing to resolve in it.
#[must_use]
pub fn is_entry(entry: &str) -> bool {
    entry.len() <= LONGEST && is_plain_place(entry)
}

/// The text so that a kubelet leaves it as it is: `$(VAR)` would be replaced, and `$$` stands for `$`.
pub(super) fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests;
