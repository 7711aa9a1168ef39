//! What the namespaces are to us, and when a change of it means reading pods again.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cofferdam_kubernetes::json;
use cofferdam_kubernetes::watch::{Change, Collected};
use cofferdam_model::keys;

use serde_json::Value;

use crate::session::Membership;

/// What the namespaces are to us, and which of them have pods on the node that are no sessions now.
#[derive(Debug)]
pub(crate) struct Namespaces {
    state: Mutex<State>,
    exempt: Vec<String>,
    /// What a namespace is that was not seen.
    otherwise: Membership,
}

#[derive(Debug, Default)]
struct State {
    known: Collected<Membership>,
    /// By namespace, the uids of pods that are no sessions, and of one that is being read.
    passed_by: HashMap<String, HashSet<String>>,
}

impl Namespaces {
    /// Those of a cluster, Cofferdam itself being in `system`. With `only`, of which every pod is a session, the label of
    /// no namespace can be read.
    #[must_use]
    pub(crate) fn new(system: &str, only: Option<&str>) -> Self {
        Self {
            state: Mutex::default(),
            exempt: vec![system.to_owned(), keys::KUBE_SYSTEM.to_owned()],
            otherwise: if only.is_some() { Membership::Enforced } else { Membership::Other },
        }
    }

    /// What the namespace of a pod is to us. Until it is said to be a [`session`](Self::session) the pod is taken for passed by,
    /// so that a label which comes while it is read has it read again.
    pub(super) fn of(&self, namespace: &str, uid: &str) -> Membership {
        let mut state = self.state();
        state.passed_by.entry(namespace.to_owned()).or_default().insert(uid.to_owned());
        if self.is_exempt(namespace) {
            return Membership::Exempt;
        }
        state.known.all().and_then(|known| known.get(namespace)).copied().unwrap_or(self.otherwise)
    }

    /// That pod, as it was read, is a session.
    pub(super) fn session(&self, namespace: &str, uid: &str) {
        self.forget(namespace, uid);
    }

    fn is_exempt(&self, namespace: &str) -> bool {
        self.exempt.iter().any(|exempt| exempt == namespace)
    }

    /// Takes in what is told of namespaces: whether pods of the node have to be read again.
    pub(super) fn take(&self, change: Change) -> bool {
        let read =
            |object: &Value| (json::name(object).to_owned(), Membership::of_label(json::label(object, keys::SESSIONS)));
        let mut has_to = false;
        let State { known, passed_by } = &mut *self.state();
        known.take_each(change, read, |name, before, now| {
            // With a namespace its pods go.
            let Some(now) = now else { return };
            let before = before.unwrap_or(&self.otherwise);
            // Whoever was a session there may be none any more, and whoever was passed by may be one.
            has_to |= before != now
                && !self.is_exempt(name)
                && (*before == Membership::Enforced || *now == Membership::Exempt || passed_by.contains_key(name));
        });
        has_to
    }

    /// All pods are read again.
    pub(super) fn begin(&self) {
        self.state().passed_by.clear();
    }

    /// That pod is gone.
    pub(super) fn forget(&self, namespace: &str, uid: &str) {
        let passed_by = &mut self.state().passed_by;
        if let Some(pods) = passed_by.get_mut(namespace) {
            pods.remove(uid);
            if pods.is_empty() {
                passed_by.remove(namespace);
            }
        }
    }

    /// What is there is whole after any panic.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_read_again_only_where_it_makes_a_difference() {
        let namespaces = Namespaces::new("cofferdam-system", None);
        namespaces.take(Change::Begun);
        namespaces.take(Change::Listed);
        let set = |name: &str, label: &str| {
            let labels = json!({"cofferdam.dev/sessions": label});
            namespaces.take(Change::Seen(json!({"metadata": {"name": name, "labels": labels}})))
        };
        // Of a pod that is a session.
        let of = |name: &str| {
            let membership = namespaces.of(name, "session");
            namespaces.session(name, "session");
            membership
        };
        assert_eq!(of("a"), Membership::Other);
        assert!(!set("a", "enforced"), "no pod of it was seen");
        assert!(!set("a", "enforced"));
        namespaces.of("b", "uid");
        assert!(set("b", "enforced"), "a pod of it was passed by");
        assert!(set("b", ""), "its pods are sessions no more");
        namespaces.forget("b", "uid");
        assert!(set("b", "warn"), "its labelled pods are sessions no more");
        assert!(!set("b", ""), "there is none");
        assert!(!set("kube-system", "enforced"), "it is exempt whatever its label");
        assert_eq!(of("kube-system"), Membership::Exempt);
        assert!(!set("a", "enforced") && !namespaces.take(Change::Begun));
        assert_eq!(of("a"), Membership::Enforced, "half a list says nothing");
        assert!(!namespaces.take(Change::Listed), "what is gone has no pods");
        assert_eq!(of("a"), Membership::Other);
    }

    #[test]
    fn a_pod_that_is_read_while_its_namespace_gets_the_label_is_read_again() {
        let namespaces = Namespaces::new("cofferdam-system", None);
        namespaces.take(Change::Begun);
        namespaces.take(Change::Listed);
        assert_eq!(namespaces.of("a", "uid"), Membership::Other);
        let labels = json!({"cofferdam.dev/sessions": "enforced"});
        let is_read_again = namespaces.take(Change::Seen(json!({"metadata": {"name": "a", "labels": labels}})));
        assert!(is_read_again, "it was not known yet whether it is a session");
    }

    #[test]
    fn in_the_namespaced_variant_every_pod_of_the_namespace_is_a_session() {
        let namespaces = Namespaces::new("cofferdam-system", Some("sessions"));
        assert_eq!(namespaces.of("sessions", "uid"), Membership::Enforced);
    }
}
