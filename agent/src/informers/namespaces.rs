//! What the namespaces are to us, and when a change of it means reading pods again.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cofferdam_model::keys;

use crate::session::Membership;

/// What the namespaces are to us, and which of them have pods on the node that are no sessions now.
#[derive(Debug)]
pub struct Namespaces {
    known: Mutex<HashMap<String, Membership>>,
    passed_by: Mutex<HashMap<String, HashSet<String>>>,
    exempt: Vec<String>,
    /// What a namespace is that was not seen.
    otherwise: Membership,
}

impl Namespaces {
    /// Those of a cluster, Cofferdam itself being in `system`. With `only`, of which every pod is a session, the label of
    /// no namespace can be read.
    #[must_use]
    pub fn new(system: &str, only: Option<&str>) -> Self {
        Self {
            known: Mutex::default(),
            passed_by: Mutex::default(),
            exempt: vec![system.to_owned(), keys::KUBE_SYSTEM.to_owned()],
            otherwise: if only.is_some() { Membership::Enforced } else { Membership::Other },
        }
    }

    /// What a namespace is to us.
    #[must_use]
    pub fn of(&self, namespace: &str) -> Membership {
        if self.exempt.iter().any(|exempt| exempt == namespace) {
            return Membership::Exempt;
        }
        lock(&self.known).get(namespace).copied().unwrap_or(self.otherwise)
    }

    /// A namespace is this now: whether pods of the node have to be read again.
    pub(super) fn set(&self, namespace: &str, membership: Membership) -> bool {
        let before = self.of(namespace);
        lock(&self.known).insert(namespace.to_owned(), membership);
        let had = before != membership && self.of(namespace) == membership;
        // Whoever was a session there may be none any more, and whoever was passed by may be one.
        had && (before == Membership::Enforced
            || membership == Membership::Exempt
            || lock(&self.passed_by).contains_key(namespace))
    }

    pub(super) fn remove(&self, namespace: &str) {
        lock(&self.known).remove(namespace);
    }

    pub(super) fn only(&self, namespaces: &HashSet<String>) {
        lock(&self.known).retain(|namespace, _| namespaces.contains(namespace));
    }

    pub(super) fn begin(&self) {
        lock(&self.passed_by).clear();
    }

    pub(super) fn passed_by(&self, namespace: &str, uid: &str) {
        lock(&self.passed_by).entry(namespace.to_owned()).or_default().insert(uid.to_owned());
    }

    pub(super) fn forget(&self, namespace: &str, uid: &str) {
        let mut passed_by = lock(&self.passed_by);
        if let Some(pods) = passed_by.get_mut(namespace) {
            pods.remove(uid);
            if pods.is_empty() {
                passed_by.remove(namespace);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_read_again_only_where_it_makes_a_difference() {
        let namespaces = Namespaces::new("cofferdam-system", None);
        assert_eq!(namespaces.of("a"), Membership::Other);
        assert!(!namespaces.set("a", Membership::Enforced), "no pod of it was seen");
        assert!(!namespaces.set("a", Membership::Enforced));
        namespaces.passed_by("b", "uid");
        assert!(namespaces.set("b", Membership::Enforced), "a pod of it was passed by");
        assert!(namespaces.set("b", Membership::Other), "its pods are sessions no more");
        namespaces.forget("b", "uid");
        assert!(namespaces.set("b", Membership::Exempt), "its labelled pods are sessions no more");
        assert!(!namespaces.set("b", Membership::Other), "there is none");
        assert!(!namespaces.set("kube-system", Membership::Enforced), "it is exempt whatever its label");
        assert_eq!(namespaces.of("kube-system"), Membership::Exempt);
    }

    #[test]
    fn in_the_namespaced_variant_every_pod_of_the_namespace_is_a_session() {
        let namespaces = Namespaces::new("cofferdam-system", Some("sessions"));
        assert_eq!(namespaces.of("sessions"), Membership::Enforced);
    }
}
