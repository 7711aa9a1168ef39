//! How long to wait, for all of it and for each step.

use std::time::Duration;

use tokio::time::Instant;

/// The pause after the first failure; the next ones are twice as long each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest that one step waits for the other side: a connection that hangs must not take all of the time.
const LONGEST_PATIENCE: Duration = Duration::from_secs(15);

/// Until when to try, and how long that is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    pub(super) at: Instant,
    whole: Duration,
}

impl Deadline {
    pub(crate) fn after(whole: Duration) -> Self {
        // A deadline that no clock can hold is none.
        let now = Instant::now();
        let at = now.checked_add(whole).unwrap_or_else(|| now + Duration::from_hours(24));
        Self { at, whole }
    }

    /// How long all of it may take.
    pub(crate) fn whole(&self) -> Duration {
        self.whole
    }

    /// How long it is until then.
    pub(crate) fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// How long one step may wait for the other side.
    pub(crate) fn patience(&self) -> Duration {
        (self.whole / 6).min(LONGEST_PATIENCE)
    }
}

/// The pause after so many failures in a row: half of it is chance, so that sessions do not come back all at once.
pub(crate) fn pause(failures: u32) -> Duration {
    let whole = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST_PAUSE);
    whole.mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        for (failures, most) in [(1, 100), (2, 200), (4, 800), (7, 5_000), (u32::MAX, 5_000)] {
            let pause = pause(failures);
            let most = Duration::from_millis(most);
            assert!(most / 2 <= pause && pause <= most, "{failures}: {pause:?}");
        }
    }

    #[test]
    fn one_step_takes_a_part_of_the_time() {
        assert_eq!(Deadline::after(Duration::from_secs(90)).patience(), Duration::from_secs(15));
        assert_eq!(Deadline::after(Duration::from_secs(6)).patience(), Duration::from_secs(1));
        assert_eq!(Deadline::after(Duration::MAX).patience(), Duration::from_secs(15));
    }
}
