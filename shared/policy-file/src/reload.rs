//! The policy file is read again and again, and a good change holds from the next request on.
//!
//! Contents are polled, as those of the certificate are: a kubelet replaces a ConfigMap volume by renaming a symlink two
//! levels up, which a watch on the file never sees. A change that does not load changes nothing, and is told until it
//! is repaired.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cofferdam_model::policy::Policy;
use cofferdam_runtime::errors::with_causes;
use tokio::time::MissedTickBehavior;

use crate::source::{Installation, PolicyFileError, PolicySource};

/// Watches over the policy that holds.
#[derive(Debug)]
pub struct Reloader {
    source: PolicySource,
    installation: Installation,
    current: Arc<ArcSwap<Policy>>,
    /// The last failure that was logged; the same one again is only counted.
    logged: Option<String>,
}

/// What one look at the file came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds what it held.
    Unchanged,
    /// It holds another policy, which is in force now.
    Swapped,
    /// It cannot be read, or holds no policy; the last good one stays in force.
    Kept,
}

impl Reloader {
    /// Begins with `policy`, which came from `source` and was completed by `installation`.
    #[must_use]
    pub fn new(source: PolicySource, installation: Installation, policy: Policy) -> Self {
        Self { source, installation, current: Arc::new(ArcSwap::from_pointee(policy)), logged: None }
    }

    /// The policy of the moment.
    #[must_use]
    pub fn current(&self) -> Arc<ArcSwap<Policy>> {
        Arc::clone(&self.current)
    }

    /// Looks at the file every `interval`, for ever, and tells `on_outcome` what came of it. The first look is one
    /// interval from now. A policy that comes from no file is never looked at. Stop it by dropping the future.
    pub async fn run(mut self, interval: Duration, mut on_outcome: impl FnMut(Outcome)) {
        if self.source == PolicySource::BuiltIn {
            return std::future::pending().await;
        }
        let mut ticks = tokio::time::interval(interval);
        // After a pause of the whole machine one look is enough.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            // A small file on a memory file system: as quick as asking another thread to read it.
            on_outcome(self.look());
        }
    }

    /// Looks at the file once.
    pub fn look(&mut self) -> Outcome {
        match self.source.load().map(|policy| self.installation.complete(policy)) {
            Ok(policy) if policy == **self.current.load() => {
                self.logged = None;
                Outcome::Unchanged
            }
            Ok(policy) => {
                let policy = Arc::new(policy);
                self.current.store(Arc::clone(&policy));
                // Said once it is true: whoever reads this and asks is answered by the new one.
                tracing::info!(policy = %self.source, policy_digest = policy.digest(), "a new policy is in force");
                self.logged = None;
                Outcome::Swapped
            }
            Err(error) => {
                self.log(&error);
                Outcome::Kept
            }
        }
    }

    /// Every look at a broken policy fails; one line tells it.
    fn log(&mut self, error: &PolicyFileError) {
        let text = with_causes(error);
        if self.logged.as_ref() != Some(&text) {
            tracing::error!(error = text, "the policy does not load, the last good one stays in force");
            self.logged = Some(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const GOOD: &str = "profiles:\n  default: {}\n";

    fn reloader(file: &Path, installation: Installation) -> Reloader {
        let source = PolicySource::File(file.to_owned());
        let policy = installation.complete(source.load().unwrap());
        Reloader::new(source, installation, policy)
    }

    #[test]
    fn a_good_change_is_in_force_and_a_bad_one_or_none_keeps_the_last_good_policy() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("policy.yaml");
        std::fs::write(&file, GOOD).unwrap();
        let mut reloader = reloader(&file, Installation::default());
        let current = reloader.current();
        let first = current.load().digest().to_owned();
        assert_eq!(reloader.look(), Outcome::Unchanged);

        std::fs::write(&file, format!("{GOOD}  other: {{}}\n")).unwrap();
        assert_eq!(reloader.look(), Outcome::Swapped);
        assert_eq!(reloader.look(), Outcome::Unchanged);
        assert!(current.load().profile("other").is_some());
        assert_ne!(current.load().digest(), first);

        for bad in ["profiles:\n  default:\n    runAsNonRot: true\n", "", "\0"] {
            std::fs::write(&file, bad).unwrap();
            assert_eq!(reloader.look(), Outcome::Kept, "{bad:?}");
            assert!(current.load().profile("other").is_some());
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(reloader.look(), Outcome::Kept);

        std::fs::write(&file, GOOD).unwrap();
        assert_eq!(reloader.look(), Outcome::Swapped);
        assert_eq!(current.load().digest(), first);
    }

    #[test]
    fn what_the_installation_adds_outlives_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("policy.yaml");
        std::fs::write(&file, GOOD).unwrap();
        let installation = Installation { image: Some("example.com/i:1".to_owned()), namespace: "guard".to_owned() };
        let mut reloader = reloader(&file, installation);
        assert_eq!(reloader.look(), Outcome::Unchanged);
        std::fs::write(&file, format!("{GOOD}  other: {{}}\n")).unwrap();
        assert_eq!(reloader.look(), Outcome::Swapped);
        let current = reloader.current().load_full();
        assert!(current.exempts("guard"));
        assert_eq!(current.bodies().image, "example.com/i:1");
    }
}
