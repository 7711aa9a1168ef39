//! How much of an inspector's stream is read: as much as a program at work says, and not as much as one that does nothing else
//! can. What is not read waits at the program.

use std::time::Duration;

use tokio::time::Instant;

/// So many bytes in a second, when it goes on for long.
const RATE: u64 = 256 * 1024;

/// What an event costs beside its bytes: each is read, written and sent by itself. And what a part does, however small.
const EVENT: u64 = 512;
const PART: u64 = 64;

/// So much may come at once.
const BURST: Duration = Duration::from_secs(4);

/// What was read of late.
#[derive(Debug)]
pub(super) struct Pace {
    /// When all of it would have come at [`RATE`].
    due: Instant,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Self { due: now }
    }

    /// A part of so many bytes with so many events came; until when no more is read.
    pub(super) fn spend(&mut self, bytes: usize, events: usize, now: Instant) -> Option<Instant> {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let cost = count(events).saturating_mul(EVENT).saturating_add(count(bytes)).saturating_add(PART);
        self.due = self.due.max(now) + Duration::from_micros(cost.saturating_mul(1_000_000) / RATE);
        self.due.checked_sub(BURST).filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_may_come_at_once_and_for_long_only_so_much() {
        let begun = Instant::now();
        for (bytes, events) in [(1, 0), (1024, 2), (16 * 1024, 1800)] {
            let (mut pace, mut now, mut read) = (Pace::new(begun), begun, 0);
            assert_eq!(pace.spend(bytes, events, now), None, "it has only just begun");
            while now < begun + Duration::from_mins(1) {
                read += u64::try_from(bytes + 64 + events * 512).unwrap();
                now = pace.spend(bytes, events, now).unwrap_or(now);
            }
            let most = 256 * 1024 * 64 + 1024 * 1024;
            assert!(read <= most && read > most / 2, "{read} with {events} events");
        }
    }

    #[test]
    fn what_comes_slowly_is_never_held_up() {
        let begun = Instant::now();
        let mut pace = Pace::new(begun);
        for second in 0..1000 {
            assert_eq!(pace.spend(100 * 1024, 200, begun + Duration::from_secs(second)), None);
        }
    }
}
