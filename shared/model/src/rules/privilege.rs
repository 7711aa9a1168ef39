//! allowPrivilegeEscalation, privileged, capabilities: false; false; drop exactly `ALL`, add nothing (names compared
//! case-insensitively, `CAP_` or not).

use serde_json::json;

use super::{Inject, Rule, Stated, Tighten};
use crate::{
    change::{Action, Told},
    pod::{Draft, Path},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "privilege",
    holds: "no container is privileged, may gain privileges or has a capability",
    effects: &[Inject, Tighten],
    source: "Pod Security Standards: Privileged Containers, Privilege Escalation, Capabilities",
    reports: &["https://github.com/kyverno/policies/issues/790", "https://github.com/kubescape/kubescape/pull/976"],
    cel: Stated,
    audits: true,
    apply,
};

fn apply(pod: &mut Draft, _: &Context<'_>) {
    for container in pod.containers().iter() {
        let security = container.path.at(&["securityContext"]);
        pod.require(&security.at(&["privileged"]), false);
        pod.require(&security.at(&["allowPrivilegeEscalation"]), false);
        capabilities(pod, &security.at(&["capabilities"]));
    }
}

fn capabilities(pod: &mut Draft, capabilities: &Path) {
    let added = capabilities.at(&["add"]);
    if !pod.items(&added).is_empty() {
        pod.remove(&added, Action::Tighten, Told::words);
    }
    let dropped = capabilities.at(&["drop"]);
    let names: Vec<String> = pod.items(&dropped).iter().filter_map(|item| pod.text(item)).collect();
    if names != ["ALL"] {
        // PodSecurity knows only this spelling; who wrote another one asked for the same.
        let asked_for_less = !names.is_empty() && !names.iter().any(|name| is_all(name));
        let action = if asked_for_less { Action::Tighten } else { Action::Inject };
        pod.write(&dropped, json!(["ALL"]), action, Told::words);
    }
}

fn is_all(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.strip_prefix("CAP_").unwrap_or(&name) == "ALL"
}

#[cfg(test)]
mod tests;
