//! What goes wrong again and again is told once.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher;

/// What has been told and is not over.
pub(super) struct Troubles {
    told: Mutex<BTreeSet<(&'static str, String)>>,
    count: Arc<dyn Fn(&kube::Error) + Send + Sync>,
}

impl Troubles {
    /// Nothing yet. `count` is told of every error, the repeated ones too.
    pub(super) fn new(count: Arc<dyn Fn(&kube::Error) + Send + Sync>) -> Self {
        Self { told: Mutex::default(), count }
    }

    /// `doing` failed. A log line where that, in this way, is new.
    pub(super) fn failed(&self, doing: &'static str, error: &kube::Error) {
        (self.count)(error);
        self.tell(doing, &kind(error));
    }

    /// `doing` got no answer in time.
    pub(super) fn timed_out(&self, doing: &'static str) {
        self.tell(doing, "no answer in time");
    }

    /// A watch broke; it is begun again by itself.
    pub(super) fn watch_broke(&self, doing: &'static str, error: watcher::Error) {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => self.failed(doing, &error),
            // Too old to go on from: the watcher lists anew, and nothing is wrong.
            watcher::Error::WatchError(status) if status.code == 410 => {}
            watcher::Error::WatchError(status) => self.failed(doing, &kube::Error::Api(status)),
            watcher::Error::NoResourceVersion => self.tell(doing, "an answer without a version"),
        }
    }

    /// `doing` works. If it fails again, that is told again.
    pub(super) fn over(&self, doing: &'static str) {
        self.told().retain(|(told, _)| *told != doing);
    }

    fn tell(&self, doing: &'static str, answer: &str) {
        if self.told().insert((doing, answer.to_owned())) {
            tracing::warn!(doing, answer, "the elected agent cannot do its duty; it goes on trying");
        }
    }

    /// A set of words is whole after any panic.
    fn told(&self) -> MutexGuard<'_, BTreeSet<(&'static str, String)>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What kind of error it is. Of an answer only code and reason: its message may quote what an object holds.
fn kind(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => "an answer that cannot be read".to_owned(),
        _ => "no answer".to_owned(),
    }
}

/// Whether the object was changed, deleted or made anew by somebody else meanwhile: nothing is wrong, and the next look
/// shows what is to be done.
pub(super) fn is_outdated(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404 || status.code == 409)
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_kind_of_trouble_is_told_once_until_it_is_over_and_counted_each_time() {
        let count = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&count);
        let troubles = Troubles::new(Arc::new(move |_| *counted.lock().unwrap() += 1));
        let forbidden = kube::Error::Api(Status::failure("pods of \"secret\"", "Forbidden").with_code(403).boxed());
        troubles.failed("listing pods", &forbidden);
        troubles.failed("listing pods", &forbidden);
        troubles.timed_out("listing pods");
        troubles.failed("listing nodes", &forbidden);
        assert_eq!(*count.lock().unwrap(), 3);
        let told: Vec<_> = troubles.told().iter().cloned().collect();
        assert_eq!(
            told,
            [
                ("listing nodes", "403 Forbidden".to_owned()),
                ("listing pods", "403 Forbidden".to_owned()),
                ("listing pods", "no answer in time".to_owned()),
            ]
        );
        troubles.over("listing pods");
        assert_eq!(troubles.told().len(), 1);
    }
}
