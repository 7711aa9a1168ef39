//! Whether watches are alive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry};

/// Those of the watches; clones share them.
#[derive(Clone, Debug)]
pub struct Watches {
    last_event: IntGaugeVec,
    restarts: IntCounterVec,
    /// How many go on, by resource: one of a new policy may begin before the one that it replaces has ended.
    going_on: Arc<Mutex<HashMap<&'static str, usize>>>,
}

/// A watch that goes on. When it is dropped the time of its last event goes too, unless another of its resource goes on: it
/// would grow old for ever.
#[derive(Debug)]
pub struct Watching {
    of: Watches,
    resource: &'static str,
}

impl Watches {
    /// Registers them.
    ///
    /// # Errors
    /// When that was done before.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let (last_event, restarts) = (
            Opts::new(
                "watch_last_event_timestamp_seconds",
                "When a watch began or last heard from the API server, bookmarks included, in seconds since 1970.",
            ),
            Opts::new("watch_restarts_total", "Watches that broke off and began again."),
        );
        let watches = Self {
            last_event: IntGaugeVec::new(last_event, &["resource"])?,
            restarts: IntCounterVec::new(restarts, &["resource"])?,
            going_on: Arc::default(),
        };
        registry.register(Box::new(watches.last_event.clone()))?;
        registry.register(Box::new(watches.restarts.clone()))?;
        Ok(watches)
    }

    /// A watch is about to begin, and goes on until what is given is dropped. How often it broke off is there from then on,
    /// so that a rate sees the first time; and so is a time to grow old, for one whose first list never ends.
    #[must_use]
    pub fn begin(&self, resource: &'static str) -> Watching {
        self.restarts.with_label_values(&[resource]);
        *self.going_on.lock().unwrap_or_else(PoisonError::into_inner).entry(resource).or_default() += 1;
        let watching = Watching { of: self.clone(), resource };
        watching.event();
        watching
    }

    /// When a watch last heard something, in seconds since 1970.
    #[cfg(test)]
    pub(crate) fn last_event(&self, resource: &str) -> prometheus::IntGauge {
        self.last_event.with_label_values(&[resource])
    }
}

impl Watching {
    /// Something came, if only a sign of life.
    pub fn event(&self) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        self.of.last_event.with_label_values(&[self.resource]).set(i64::try_from(now).unwrap_or(i64::MAX));
    }

    /// It broke off, and begins again.
    pub fn restarted(&self) {
        self.of.restarts.with_label_values(&[self.resource]).inc();
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut going_on = self.of.going_on.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(others) = going_on.get_mut(self.resource) else { return };
        *others -= 1;
        if *others == 0 {
            // It was there since the watch began.
            let _ = self.of.last_event.remove_label_values(&[self.resource]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_that_never_broke_off_is_counted_as_zero_from_its_beginning() {
        let registry = Registry::new();
        let watches = Watches::register(&registry).unwrap();
        let _watching = watches.begin("pods");
        let text = text(&registry);
        assert!(text.contains("watch_restarts_total{resource=\"pods\"} 0\n"), "{text}");
    }

    #[test]
    fn a_watch_that_has_ended_does_not_grow_old() {
        let registry = Registry::new();
        let watches = Watches::register(&registry).unwrap();
        let is_there = || text(&registry).contains("watch_last_event_timestamp_seconds{resource=\"gateways\"}");
        let before = watches.begin("gateways");
        assert!(is_there(), "one that never hears of anything grows old");
        let after = watches.begin("gateways");
        drop(before);
        assert!(is_there(), "another goes on");
        drop(after);
        assert!(!is_there());
        drop(watches.begin("gateways"));
        assert!(!is_there());
    }

    fn text(registry: &Registry) -> String {
        prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
    }
}
