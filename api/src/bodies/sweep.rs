//! What can be had no more is deleted.

use std::time::{Duration, SystemTime};

use tokio::time::MissedTickBehavior;

use super::counts::Counts;
use super::store::BodyStore;

/// How often that is looked for.
const EVERY: Duration = Duration::from_mins(1);

/// Sweeps at once and then each minute, for ever: whoever wants an end drops it.
///
/// `is_session` must know all sessions there are when this begins: of those that it does not know everything is
/// deleted. The body of a session that ends goes with it ([`BodyStore::remove`]); this is for what nobody thought of.
pub async fn keep_clean(store: &BodyStore, counts: &Counts, is_session: impl Fn(&str) -> bool) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match store.sweep(SystemTime::now(), &is_session).await {
            Ok(swept) => counts.swept(swept),
            Err(error) => {
                let error = cofferdam_runtime::errors::with_causes(&error);
                tracing::warn!(error, "the body store cannot be swept; it is tried again");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{age, archive_of, file_store, utf8};
    use super::*;

    #[tokio::test]
    async fn what_belongs_to_no_session_goes_at_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let store = file_store(directory.path());
        for id in ["aaaaaaaaaaaa", "bbbbbbbbbbbb"] {
            store.stage(id, archive_of(vec![utf8("a", "")])).await.unwrap();
            for name in ["body", "record"] {
                age(directory.path(), id, name, Duration::from_secs(90));
            }
        }
        let registry = prometheus::Registry::new();
        let counts = Counts::register(&registry).unwrap();
        let restarted = file_store(directory.path());
        let cleaning = keep_clean(&restarted, &counts, |id| id == "aaaaaaaaaaaa");
        let gone = async {
            while directory.path().join("bbbbbbbbbbbb").exists() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = cleaning => {}
            () = gone => {}
        }
        assert!(store.record("aaaaaaaaaaaa").await.unwrap().is_some());
    }
}
