//! When the next probe is due: at once, after 50 ms, 100 ms, 200 ms and so on until it succeeds, then every now and then.

use std::time::Duration;

/// The first wait; each is twice the one before.
const FIRST: Duration = Duration::from_millis(50);

/// How often a probe is repeated that found what it hoped for, or has failed for long; [`Budget`](super::budget::Budget) may make
/// it less often.
pub(crate) const STEADY: Duration = Duration::from_secs(5);

/// A wait of [`STEADY`] or longer varies by so much of itself, so that probes that began together do not stay together.
const JITTER: f64 = 0.2;

/// How fast to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// It is not reached, and may be any moment: so many failed since that was hoped for.
    Eager(u32),
    /// It was reached.
    Steady,
}

impl Pace {
    /// At once, and then soon again.
    pub(crate) const NOW: Self = Self::Eager(0);

    /// The pace of the first probe, where this is known already.
    #[must_use]
    pub(crate) fn beginning<T, E>(known: Option<&Result<T, E>>) -> Self {
        if known.is_some_and(Result::is_ok) { Self::Steady } else { Self::NOW }
    }

    /// The pace after a probe. `flipped` is whether it changed the verdict.
    #[must_use]
    pub(crate) fn after(self, succeeded: bool, flipped: bool) -> Self {
        match self {
            _ if succeeded => Self::Steady,
            Self::Steady if !flipped => Self::Steady,
            Self::Steady => Self::Eager(1),
            Self::Eager(failed) => Self::Eager(failed.saturating_add(1)),
        }
    }

    /// The pace of a probe that is made at once, since something happened that it may depend on.
    #[must_use]
    pub(crate) fn hurried(self) -> Self {
        match self {
            Self::Eager(_) => Self::NOW,
            Self::Steady => Self::Steady,
        }
    }

    /// How long to wait before the next probe. `steady` is how often steady ones are repeated, and the longest wait;
    /// `random` is between 0 and 1.
    #[must_use]
    pub(crate) fn wait(self, steady: Duration, random: f64) -> Duration {
        match self.doubled().filter(|wait| *wait < steady) {
            Some(wait) => wait,
            None => steady.mul_f64(1.0 + JITTER * (2.0 * random - 1.0)),
        }
    }

    /// Whether others may go first: it was probed long enough to know that nothing is about to happen.
    #[must_use]
    pub(crate) fn can_wait(self) -> bool {
        self.doubled().is_none_or(|wait| wait >= STEADY)
    }

    /// None for what is not doubled any more.
    fn doubled(self) -> Option<Duration> {
        match self {
            Self::Steady => None,
            Self::Eager(0) => Some(Duration::ZERO),
            Self::Eager(failed) => 2_u32.checked_pow(failed - 1).map(|times| FIRST.saturating_mul(times)),
        }
    }
}

#[cfg(test)]
mod tests;
