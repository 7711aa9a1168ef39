//! What goes wrong again and again is told once.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher;

use crate::cluster::{Class, Cluster, Failed};

/// What has been told and is not over.
pub(super) struct Troubles {
    told: Mutex<BTreeSet<(&'static str, String)>>,
    cluster: Cluster,
}

impl Troubles {
    /// Nothing yet. Every failure, the repeated ones too, is counted with those of `cluster`.
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { told: Mutex::default(), cluster }
    }

    /// `doing` failed. A log line where that, in this way, is new.
    pub(super) fn failed(&self, doing: &'static str, error: &kube::Error) {
        self.tell(doing, Failed::from(error).class, &kind(error));
    }

    /// `doing` got no answer in time.
    pub(super) fn timed_out(&self, doing: &'static str) {
        self.tell(doing, Class::Timeout, "no answer in time");
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
            watcher::Error::NoResourceVersion => self.tell(doing, Class::Other, "an answer without a version"),
        }
    }

    /// `doing` works. If it fails again, that is told again.
    pub(super) fn over(&self, doing: &'static str) {
        self.told().retain(|(told, _)| *told != doing);
    }

    fn tell(&self, doing: &'static str, class: Class, answer: &str) {
        self.cluster.note(class);
        if self.told().insert((doing, answer.to_owned())) {
            tracing::warn!(answer, "{doing} failed; that is told once until it works again");
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
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use kube::core::Status;
    use prometheus::{Registry, TextEncoder};

    use super::*;

    #[tokio::test]
    async fn a_kind_of_trouble_is_told_once_until_it_is_over_and_counted_each_time() {
        let nobody = tower::service_fn(async |_: Request<Body>| Ok::<_, Infallible>(Response::new(Body::empty())));
        let registry = Registry::new();
        let troubles = Troubles::new(Cluster::new(Client::new(nobody, "default"), &registry).unwrap());
        let forbidden = kube::Error::Api(Status::failure("pods of \"secret\"", "Forbidden").with_code(403).boxed());
        troubles.failed("listing pods", &forbidden);
        troubles.failed("listing pods", &forbidden);
        troubles.timed_out("listing pods");
        troubles.failed("listing nodes", &forbidden);
        let counted = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for (class, times) in [(Class::Admission, 3), (Class::Timeout, 1)] {
            let line = format!("api_errors_total{{class=\"{}\"}} {times}\n", class.as_str());
            assert!(counted.contains(&line), "{line}{counted}");
        }
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
