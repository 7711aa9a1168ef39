//! Pauses between attempts that fail: each twice as long as the one before, up to a longest.

use std::time::Duration;

/// Attempts that failed in a row.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    shortest: Duration,
    longest: Duration,
    failures: u32,
}

impl Backoff {
    /// None has failed. The first pause is about `shortest`, none is longer than `longest`.
    #[must_use]
    pub const fn new(shortest: Duration, longest: Duration) -> Self {
        Self { shortest, longest, failures: 0 }
    }

    /// One more has failed: how long to wait before the next. Half of it is chance, so that many who fail
    /// together do not come all at once.
    pub fn failed(&mut self) -> Duration {
        let pause = self.shortest.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        pause.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// How many failed.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// One succeeded: the next failure is a first one.
    pub fn over(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_get_longer_up_to_a_longest_and_begin_anew() {
        let (shortest, longest) = (Duration::from_millis(200), Duration::from_secs(30));
        let mut backoff = Backoff::new(shortest, longest);
        for expected in [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000] {
            let (most, pause) = (Duration::from_millis(expected), backoff.failed());
            assert!(pause >= most / 2 && pause <= most, "{pause:?}, not about {most:?}");
        }
        for _ in 0..100 {
            let _ = backoff.failed();
        }
        assert_eq!(backoff.failures(), 110);
        backoff.over();
        assert!(backoff.failed() <= shortest);
    }
}
