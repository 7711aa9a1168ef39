//! What goes wrong again and again is told once.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cofferdam_kubernetes::Failed;

/// What has been told and is not over.
#[derive(Debug, Default)]
pub(super) struct Troubles(Mutex<BTreeSet<(&'static str, &'static str)>>);

impl Troubles {
    /// `doing` failed. A log line where that, in this way, is new.
    pub(super) fn failed(&self, doing: &'static str, failed: &Failed) {
        if self.told().insert((doing, failed.class.as_str())) {
            tracing::warn!(error = %failed, "{doing} failed; that is told once until it works again");
        }
    }

    /// `doing` works. If it fails again, that is told again.
    pub(super) fn over(&self, doing: &'static str) {
        self.told().retain(|(told, _)| *told != doing);
    }

    /// A set of words is whole after any panic.
    fn told(&self) -> MutexGuard<'_, BTreeSet<(&'static str, &'static str)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_kubernetes::Class;

    use super::*;

    #[test]
    fn a_kind_of_trouble_is_told_once_until_it_is_over() {
        let troubles = Troubles::default();
        let failed = |doing, class, detail: &str| troubles.failed(doing, &Failed { class, detail: detail.to_owned() });
        failed("listing pods", Class::Forbidden, "no");
        failed("listing pods", Class::Forbidden, "no, again");
        failed("listing pods", Class::Timeout, "");
        failed("listing nodes", Class::Forbidden, "no");
        let told: Vec<_> = troubles.told().iter().copied().collect();
        assert_eq!(told, [("listing nodes", "forbidden"), ("listing pods", "forbidden"), ("listing pods", "timeout")]);
        troubles.over("listing pods");
        assert_eq!(troubles.told().len(), 1);
    }
}
