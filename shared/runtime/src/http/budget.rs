//! A bound on the memory that all requests together may hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that may be held at the same time. Clones share them.
#[derive(Clone, Debug)]
pub struct Budget {
    free: Arc<AtomicUsize>,
}

/// What one request holds of a [`Budget`]; given back when dropped.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: usize,
}

/// The budget has not that much left.
#[derive(Debug, PartialEq, Eq)]
pub struct Exhausted;

impl Budget {
    /// A budget of `bytes`.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        Self { free: Arc::new(AtomicUsize::new(bytes)) }
    }

    /// A share that holds nothing yet.
    #[must_use]
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

impl Share {
    /// Takes `bytes` more, at once or not at all: nobody waits for a budget, so no client can make others wait by
    /// holding a part of it.
    pub fn take(&mut self, bytes: usize) -> Result<(), Exhausted> {
        self.budget
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| free.checked_sub(bytes))
            .map_err(|_| Exhausted)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.free.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_budget_and_come_back_when_dropped() {
        let budget = Budget::new(100);
        let mut first = budget.share();
        assert_eq!(first.take(60), Ok(()));
        assert_eq!(first.take(10), Ok(()));
        let mut second = budget.share();
        assert_eq!(second.take(31), Err(Exhausted));
        assert_eq!(second.take(30), Ok(()));
        drop(first);
        assert_eq!(second.take(70), Ok(()));
        assert_eq!(second.take(1), Err(Exhausted));
    }
}
