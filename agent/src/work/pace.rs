//! What somebody else can make us write again and again comes slower and slower: corrections of an object that are undone,
//! ports that its author keeps changing, a status that flaps.

use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// After so long without one, all is forgotten.
const QUIET: Duration = Duration::from_mins(10);

/// How often something was written lately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    free: u32,
    longest: Duration,
    times: u32,
    last: Option<Instant>,
}

impl Pace {
    /// None was written. `free` come at once, and none ever waits longer than `longest`, which is less than ten minutes.
    pub(super) const fn new(free: u32, longest: Duration) -> Self {
        Self { free, longest, times: 0, last: None }
    }

    /// When the next may be written; `now` for at once.
    pub(super) fn due(&self, now: Instant) -> Instant {
        let Some(last) = self.last.filter(|_| self.times >= self.free) else { return now };
        let pause = FIRST_PAUSE.saturating_mul(1 << (self.times - self.free).min(16)).min(self.longest);
        (last + pause).max(now)
    }

    /// One was written, or tried to be.
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quarrel_gets_slower_and_is_forgotten() {
        let mut now = Instant::now();
        let mut pace = Pace::new(3, Duration::from_mins(5));
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

    proptest! {
        #[test]
        fn whoever_asks_all_the_time_gets_little_and_never_waits_longer_than_the_longest(
            free in 0_u32..10, longest in 1_u64..300, gaps in prop::collection::vec(0_u64..3000, 1..3000),
        ) {
            let (longest, begin) = (Duration::from_secs(longest), Instant::now());
            let (mut pace, mut now, mut made) = (Pace::new(free, longest), begin, 0_u32);
            for gap in gaps {
                now += Duration::from_millis(gap);
                let due = pace.due(now);
                prop_assert!(due <= now + longest);
                if due <= now {
                    pace.made(now);
                    made += 1;
                }
            }
            // Nothing is quiet here, so: the free ones, those that double, and then one in each of the longest pauses.
            let most = u64::from(free) + 17 + (now - begin).as_secs() / longest.as_secs();
            prop_assert!(u64::from(made) <= most, "{} in {:?}, not {}", made, now - begin, most);
        }
    }
}
