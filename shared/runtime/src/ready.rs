//! Readiness: a set of named gates. The process is ready when none is shut.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The gates of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    shut: Arc<Mutex<BTreeSet<&'static str>>>,
}

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
        self.readiness.shut().remove(self.name);
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
        self.shut().insert(name);
        Gate { name, readiness: self.clone() }
    }

    /// Unready from now on, for good, because of `name`.
    pub fn withdraw(&self, name: &'static str) {
        self.shut().insert(name);
    }

    /// The names of the shut gates, in alphabetical order.
    #[must_use]
    pub fn pending(&self) -> Vec<&'static str> {
        self.shut().iter().copied().collect()
    }

    /// A set of names is whole after any panic, so a poisoned lock is no reason to fail.
    fn shut(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.shut.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
}
