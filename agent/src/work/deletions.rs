//! Deletions of pods that slipped through, limited by who makes them: a controller that makes new ones as fast would be
//! driven in a circle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many pods of one owner in [`WINDOW`].
const MOST: usize = 5;
const WINDOW: Duration = Duration::from_mins(10);

/// When pods were deleted, by owner. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deletions(Arc<Mutex<HashMap<String, Vec<Instant>>>>);

impl Deletions {
    /// Takes room for one more deletion of a pod of this owner.
    ///
    /// # Errors
    /// The moment at which there will be room.
    pub(super) fn take(&self, owner: &str, now: Instant) -> Result<(), Instant> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, times| {
            times.retain(|time| now.saturating_duration_since(*time) < WINDOW);
            !times.is_empty()
        });
        let times = all.entry(owner.to_owned()).or_default();
        if times.len() < MOST {
            times.push(now);
            return Ok(());
        }
        Err(times.first().map_or(now, |first| *first + WINDOW))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_owner_has_its_own_limit_and_gets_room_again() {
        let deletions = Deletions::default();
        let start = Instant::now();
        for _ in 0..MOST {
            assert_eq!(deletions.take("a", start), Ok(()));
        }
        assert_eq!(deletions.take("a", start), Err(start + WINDOW));
        assert_eq!(deletions.take("b", start), Ok(()));
        assert_eq!(deletions.take("a", start + WINDOW), Ok(()));
        assert_eq!(deletions.0.lock().unwrap().len(), 1, "who is quiet is forgotten");
    }
}
