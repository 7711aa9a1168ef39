//! runtimeClassName, schedulerName, nodeSelector, node affinity: runtime class and node selector from the profile; an
//! author's runtime class, scheduler, or label in a node selector or node affinity only if listed; a runtime class's
//! own selector and a DaemonSet's choice of node are accepted.
//!
//! What `RuntimeClass`'s admission plugin puts in is there already, or comes when it runs again after our patch; so only
//! the name is injected. A node selector of a namespace (`PodNodeSelector`) looks like an author's: its labels have to
//! be listed.

use serde_json::json;

use super::{But, Inject, Refuse, Rule, it_allows, owner::is_made_by_daemon_set};
use crate::{
    change::{Action, Told},
    pod::{Draft, Path},
    policy::{DEFAULT_SCHEDULER, RuntimeClass, Scheduling},
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "scheduling",
    holds: "the pod runs by the runtime class and on the nodes that the profile provides for",
    effects: &[Inject, Refuse],
    source: "Kubernetes: Assigning Pods to Nodes, Runtime Class, Configure Multiple Schedulers",
    reports: &[],
    cel: But("the profile's own node selector, and that a runtime class's label is chosen with that class alone"),
    audits: true,
    apply,
};

const RUNTIME_CLASS: [&str; 2] = ["spec", "runtimeClassName"];

/// The only field of a node that `matchFields` can choose by.
const NODE_NAME: &str = "metadata.name";

const UNLISTED_LABEL: &str = "chooses nodes by a label that the profile does not list; remove it";

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let scheduling = &context.profile.scheduling;
    name_runtime_class(pod, scheduling);
    let class = runtime_class(pod, scheduling);
    scheduler(pod, &scheduling.scheduler_names);
    node_selector(pod, scheduling, class);
    let is_listed = |label: &str| {
        scheduling.node_labels.iter().any(|known| known == label)
            || scheduling.node_selector.contains_key(label)
            || class.is_some_and(|class| class.node_selector.contains_key(label))
    };
    let may_name_a_node = is_made_by_daemon_set(pod, context);
    let [required, preferred] = node_selector_terms(pod);
    for term in required {
        node_selector_term(pod, &term, &is_listed, may_name_a_node);
    }
    for term in preferred {
        node_selector_term(pod, &term, &is_listed, false);
    }
}

/// The terms of the pod's node affinity: those that are required, and those that are preferred.
pub(super) fn node_selector_terms(pod: &mut Draft) -> [Vec<Path>; 2] {
    let affinity = Path::of(&["spec", "affinity", "nodeAffinity"]);
    let required = affinity.at(&["requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"]);
    let preferred = pod.items(&affinity.at(&["preferredDuringSchedulingIgnoredDuringExecution"]));
    [pod.items(&required), preferred.iter().map(|preferred| preferred.at(&["preference"])).collect()]
}

/// The profile's runtime class that the pod names.
pub(super) fn runtime_class<'p>(pod: &mut Draft, scheduling: &'p Scheduling) -> Option<&'p RuntimeClass> {
    let name = pod.text(&Path::of(&RUNTIME_CLASS))?;
    scheduling.runtime_classes.iter().find(|class| class.name == name)
}

fn name_runtime_class(pod: &mut Draft, scheduling: &Scheduling) {
    let field = Path::of(&RUNTIME_CLASS);
    let classes = &scheduling.runtime_classes;
    match pod.text(&field).filter(|name| !name.is_empty()) {
        None => {
            if let Some(class) = classes.first().filter(|_| scheduling.inject_runtime_class) {
                pod.write(&field, json!(class.name), Action::Inject, Told::nothing);
            }
        }
        Some(name) if !classes.iter().any(|class| class.name == name) => {
            let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
            pod.refuse(&field, format!("is no runtime class that the profile allows; {}", it_allows(&names)));
        }
        Some(_) => {}
    }
}

fn scheduler(pod: &mut Draft, listed: &[String]) {
    let field = Path::of(&["spec", "schedulerName"]);
    let is_allowed = |name: &str| matches!(name, "" | DEFAULT_SCHEDULER) || listed.iter().any(|known| known == name);
    if pod.text(&field).is_some_and(|name| !is_allowed(&name)) {
        pod.refuse(&field, "is no scheduler that the profile allows; remove it");
    }
}

fn node_selector(pod: &mut Draft, scheduling: &Scheduling, class: Option<&RuntimeClass>) {
    let selector = Path::of(&["spec", "nodeSelector"]);
    for label in pod.members(&selector) {
        let field = selector.key(label.clone());
        let Some(value) = pod.text(&field) else { continue };
        let of_class = class.and_then(|class| class.node_selector.get(&label));
        if scheduling.node_selector.get(&label).is_some_and(|wanted| *wanted != value) {
            pod.refuse(&field, "is not what the profile chooses nodes by; remove it");
        } else if of_class.is_some_and(|wanted| *wanted != value) {
            pod.refuse(&field, "is not what the runtime class chooses nodes by; remove it");
        } else if !scheduling.node_selector.contains_key(&label)
            && of_class.is_none()
            && !scheduling.node_labels.contains(&label)
        {
            pod.refuse(&field, UNLISTED_LABEL);
        }
    }
    for (label, value) in &scheduling.node_selector {
        let field = selector.key(label.clone());
        if !pod.is_set(&field) {
            pod.write(&field, json!(value), Action::Inject, Told::nothing);
        }
    }
}

fn node_selector_term(pod: &mut Draft, term: &Path, is_listed: &dyn Fn(&str) -> bool, may_name_a_node: bool) {
    for expression in pod.items(&term.at(&["matchExpressions"])) {
        let key = expression.at(&["key"]);
        if pod.text(&key).is_some_and(|label| !is_listed(&label)) {
            pod.refuse(&key, UNLISTED_LABEL);
        }
    }
    for field in pod.items(&term.at(&["matchFields"])) {
        let key = field.at(&["key"]);
        if !(may_name_a_node && pod.is(&key, NODE_NAME)) {
            pod.refuse(&key, "chooses a node by its name; remove it");
        }
    }
}

#[cfg(test)]
mod tests;
