//! What is said of many figures: the middle with its spread, and percentiles.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};

/// The middle of some figures, with the smallest and the largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The middle one; of an even number, the lower of the two.
    pub median: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of `figures`, in any order.
    ///
    /// # Errors
    /// When there are none.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Result<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        ensure!(!figures.is_empty(), "nothing was measured");
        figures.sort_by(f64::total_cmp);
        let last = figures.len() - 1;
        Ok(Self { min: figures[0], median: figures[last / 2], max: figures[last] })
    }
}

/// `median (min to max)`, with the precision of the format.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { min, median, max } = self;
        let places = f.precision().unwrap_or(2);
        write!(f, "{median:.places$} ({min:.places$} to {max:.places$})")
    }
}

/// Latencies, for percentiles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    ascending: Vec<Duration>,
}

impl Latencies {
    /// Of `latencies`, in any order.
    ///
    /// # Errors
    /// When there are none.
    pub fn of(mut latencies: Vec<Duration>) -> Result<Self> {
        ensure!(!latencies.is_empty(), "nothing was measured");
        latencies.sort_unstable();
        Ok(Self { ascending: latencies })
    }

    /// The latency that `per_mille` of a thousand stay within, in milliseconds (nearest rank: one that was measured).
    #[must_use]
    pub fn within(&self, per_mille: usize) -> f64 {
        let rank = (self.ascending.len() * per_mille).div_ceil(1000).max(1);
        self.ascending.get(rank - 1).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_between_the_ends_whatever_the_order() {
        let spread = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { min: 1.0, median: 2.0, max: 3.0 });
        assert_eq!(format!("{spread:.1}"), "2.0 (1.0 to 3.0)");
        assert!(Spread::of([]).is_err());
    }

    #[test]
    fn a_percentile_is_a_latency_that_was_measured() {
        let latencies = Latencies::of((1..=1000).rev().map(Duration::from_millis).collect()).unwrap();
        let percentiles = [500, 990, 999, 1000].map(|per_mille| format!("{:.0}", latencies.within(per_mille)));
        assert_eq!(percentiles, ["500", "990", "999", "1000"]);
        let one = Latencies::of(vec![Duration::from_millis(7)]).unwrap();
        assert_eq!([1, 999].map(|per_mille| format!("{:.0}", one.within(per_mille))), ["7", "7"]);
        assert!(Latencies::of(Vec::new()).is_err());
    }
}
