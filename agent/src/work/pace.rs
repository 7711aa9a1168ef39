//! Corrections of one object come slower and slower while somebody else keeps undoing them.

use std::time::{Duration, Instant};

/// So many come at once.
const FREE: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// After so long without one, all is forgotten.
const QUIET: Duration = Duration::from_mins(10);

/// How often something was corrected lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    times: u32,
    last: Option<Instant>,
}

impl Pace {
    /// When the next correction may be made; `now` for at once.
    pub(super) fn due(&self, now: Instant) -> Instant {
        let Some(last) = self.last.filter(|_| self.times >= FREE) else { return now };
        let pause = FIRST_PAUSE.saturating_mul(1 << (self.times - FREE).min(16)).min(LONGEST_PAUSE);
        (last + pause).max(now)
    }

    /// A correction was made.
    pub(super) fn made(&mut self, now: Instant) {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > QUIET) {
            self.times = 0;
        }
        self.times = self.times.saturating_add(1);
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarrel_gets_slower_and_is_forgotten() {
        let mut now = Instant::now();
        let mut pace = Pace::default();
        let mut pauses = Vec::new();
        for _ in 0..16 {
            let due = pace.due(now);
            pauses.push((due - now).as_secs());
            now = due;
            pace.made(now);
        }
        assert_eq!(pauses[..6], [0, 0, 0, 1, 2, 4]);
        assert_eq!(pauses.last(), Some(&300));
        now += QUIET + Duration::from_secs(1);
        pace.made(now);
        assert_eq!(pace.due(now), now);
    }
}
