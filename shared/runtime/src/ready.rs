//! Readiness: a set of named gates. The process is ready when none is shut.
//!
//! Beside them, what has gone wrong without a reason to send no more work: it is shown, and nothing else follows. Where
//! every replica has the same trouble, being unready would turn it into an outage.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The gates of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    shut: Names,
    degraded: Names,
}

type Names = Arc<Mutex<BTreeSet<&'static str>>>;

/// One thing that has to happen before the process is ready. Dropped without [`open`](Gate::open) it stays shut: a part
/// that died while starting never makes the process look ready.
#[derive(Debug)]
#[must_use = "a gate that is not opened keeps the process unready"]
pub struct Gate {
    name: &'static str,
    readiness: Readiness,
}

impl Gate {
    /// What the gate stood for has happened.
    pub fn open(self) {
        names(&self.readiness.shut).remove(self.name);
    }
}

impl Readiness {
    /// No gates: ready.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a shut gate. `name` is what `/readyz` shows.
    pub fn gate(&self, name: &'static str) -> Gate {
        names(&self.shut).insert(name);
        Gate { name, readiness: self.clone() }
    }

    /// Unready from now on, for good, because of `name`.
    pub fn withdraw(&self, name: &'static str) {
        names(&self.shut).insert(name);
    }

    /// Whether something is wrong with `name` that is no reason to be unready.
    pub fn degraded(&self, name: &'static str, is_degraded: bool) {
        let mut degraded = names(&self.degraded);
        if is_degraded {
            degraded.insert(name)
        } else {
            degraded.remove(name)
        };
    }

    /// The names of the shut gates, in alphabetical order.
    #[must_use]
    pub fn pending(&self) -> Vec<&'static str> {
        names(&self.shut).iter().copied().collect()
    }

    /// The names of what is wrong, in alphabetical order.
    #[must_use]
    pub fn troubles(&self) -> Vec<&'static str> {
        names(&self.degraded).iter().copied().collect()
    }
}

/// A set of names is whole after any panic, so a poisoned lock is no reason to fail.
fn names(of: &Names) -> MutexGuard<'_, BTreeSet<&'static str>> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_means_that_every_gate_was_opened() {
        let readiness = Readiness::new();
        let (certificate, listener) = (readiness.gate("certificate"), readiness.gate("listener"));
        assert_eq!(readiness.pending(), ["certificate", "listener"]);
        certificate.open();
        assert_eq!(readiness.pending(), ["listener"]);
        listener.open();
        assert!(readiness.pending().is_empty());
    }

    #[test]
    fn a_gate_that_is_only_dropped_stays_shut() {
        let readiness = Readiness::new();
        drop(readiness.gate("policy"));
        assert_eq!(readiness.pending(), ["policy"]);
    }

    #[test]
    fn withdrawing_is_for_good() {
        let readiness = Readiness::new();
        readiness.gate("listener").open();
        readiness.withdraw("draining");
        assert_eq!(readiness.pending(), ["draining"]);
    }

    #[test]
    fn trouble_is_told_until_it_is_over_and_keeps_nobody_unready() {
        let readiness = Readiness::new();
        readiness.degraded("policy", true);
        assert_eq!((readiness.troubles(), readiness.pending()), (vec!["policy"], vec![]));
        readiness.degraded("policy", false);
        assert!(readiness.troubles().is_empty());
    }
}
