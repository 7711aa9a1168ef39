//! tolerations: the profile's put in; others than those that it lists removed; what in-tree plugins wrote is accepted:
//! the two default ones, memory pressure, a `RuntimeClass`'s own, a DaemonSet's `node.kubernetes.io/*`.
//!
//! One that is narrower than a listed one passes, and one that a broader one stands for is not put in: the API server's
//! own plugins merge tolerations in that way when they run again after our patch.

use serde_json::{Map, Value};

use super::{Inject, Rule, Tighten, WebhookOnly, owner::is_made_by_daemon_set, scheduling};
use crate::{
    change::{Action, Told},
    pod::{Draft, Path},
    policy,
    rules::Context,
};

pub(super) const RULE: Rule = Rule {
    name: "tolerations",
    holds: "taints keep the pod away from nodes that the profile does not provide for",
    effects: &[Inject, Tighten],
    source: "Kubernetes: Taints and Tolerations",
    reports: &[
        "https://github.com/ministryofjustice/cloud-platform/issues/1028",
        "https://github.com/kubernetes/kubernetes/issues/59366",
    ],
    cel: WebhookOnly("lists of tolerations are no parameters of the admission policies"),
    audits: true,
    apply,
};

const EXISTS: &str = "Exists";

const EQUAL: &str = "Equal";

/// Taints of nodes in trouble that every pod tolerates for a time (plugin `DefaultTolerationSeconds`).
const FOR_A_TIME: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// What every pod with a request tolerates (plugin `PodTolerationRestriction`).
const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";

/// What the `DaemonSet` controller gives its pods besides.
const OF_DAEMON_SETS: [&str; 3] =
    ["node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable"];

/// A toleration, nothing in it missing: empty is what Kubernetes takes for "any" or, as an operator, for `Equal`.
#[derive(Debug)]
struct Toleration {
    key: String,
    operator: String,
    value: String,
    effect: String,
    /// Whether it ends after a time.
    ends: bool,
}

fn apply(pod: &mut Draft, context: &Context<'_>) {
    let scheduling = &context.profile.scheduling;
    let wanted: Vec<Toleration> = scheduling.tolerations.iter().map(Toleration::of).collect();
    let of_class = scheduling::runtime_class(pod, scheduling).map_or(&[][..], |class| &class.tolerations);
    let listed: Vec<Toleration> = scheduling.allowed_tolerations.iter().chain(of_class).map(Toleration::of).collect();
    let of_daemon_set = is_made_by_daemon_set(pod, context);
    let list = Path::of(&["spec", "tolerations"]);
    let (mut kept, mut removed) = (Vec::new(), Vec::new());
    for (index, item) in pod.items(&list).iter().enumerate() {
        let toleration = Toleration::read(pod, item);
        if toleration.is_the_plugins()
            || (of_daemon_set && toleration.is_of_daemon_sets())
            || listed.iter().chain(&wanted).any(|known| known.covers(&toleration))
        {
            kept.push(toleration);
        } else {
            removed.push(index);
        }
    }
    pod.remove_items(&list, &removed, Action::Tighten, Told::nothing);
    // A live pod that tolerates less than it might is no less safe.
    if context.occasion.is_afterwards() {
        return;
    }
    for wanted in wanted {
        if !kept.iter().any(|toleration| !toleration.ends && toleration.covers(&wanted)) {
            pod.append(&list, wanted.value());
            kept.push(wanted);
        }
    }
}

impl Toleration {
    fn of(listed: &policy::Toleration) -> Self {
        Self {
            key: listed.key.clone().unwrap_or_default(),
            operator: if listed.exists { EXISTS } else { EQUAL }.to_owned(),
            value: listed.value.clone().unwrap_or_default(),
            effect: listed.effect.clone().unwrap_or_default(),
            ends: false,
        }
    }

    fn read(pod: &mut Draft, item: &Path) -> Self {
        let [key, operator, value, effect] =
            ["key", "operator", "value", "effect"].map(|field| pod.text(&item.at(&[field])).unwrap_or_default());
        Self { key, operator, value, effect, ends: pod.number(&item.at(&["tolerationSeconds"])).is_some() }
    }

    /// Whether every taint that the other tolerates is tolerated by this one, whatever the time.
    fn covers(&self, other: &Self) -> bool {
        let is_any_key = self.key.is_empty() && self.operator == EXISTS;
        (is_any_key || self.key == other.key)
            && (self.effect.is_empty() || self.effect == other.effect)
            && match self.operator.as_str() {
                EXISTS => true,
                "" | EQUAL => matches!(other.operator.as_str(), "" | EQUAL) && self.value == other.value,
                // A comparison, which only covers itself.
                operator => operator == other.operator && self.value == other.value,
            }
    }

    fn is_the_plugins(&self) -> bool {
        (self.ends && self.is_whole("NoExecute", &FOR_A_TIME)) || self.is_whole("NoSchedule", &[MEMORY_PRESSURE])
    }

    fn is_of_daemon_sets(&self) -> bool {
        self.is_whole("NoExecute", &FOR_A_TIME) || self.is_whole("NoSchedule", &OF_DAEMON_SETS)
    }

    /// Whether it is of one of these keys, whatever the taint's value.
    fn is_whole(&self, effect: &str, keys: &[&str]) -> bool {
        self.operator == EXISTS && self.effect == effect && keys.contains(&self.key.as_str())
    }

    fn value(&self) -> Value {
        let Self { key, operator, value, effect, ends: _ } = self;
        let members = [("key", key), ("operator", operator), ("value", value), ("effect", effect)];
        let members = members.into_iter().filter(|(_, text)| !text.is_empty());
        Value::Object(members.map(|(name, text)| (name.to_owned(), text.clone().into())).collect::<Map<_, _>>())
    }
}

#[cfg(test)]
mod tests;
