//! Two kinds of load over keep-alive connections: as much as the server takes, and arrivals at times fixed in advance.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::connection::Connection;
use crate::distribution::Latencies;

/// How many connections there are: as many as an API server's client keeps open while they are idle
/// (`idleConnsPerHost` in client-go's `transport/cache.go`).
pub const CONNECTIONS: usize = 25;

/// What every exchange sends, and what has to come back.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// A whole request.
    pub request: &'a [u8],
    /// The body of its answer.
    pub answer: &'a [u8],
}

impl Exchange<'_> {
    /// # Errors
    /// When the answer is another one: what is quick because it is wrong is not measured.
    fn over(self, connection: &mut Connection) -> Result<()> {
        let body = connection.exchange(self.request)?;
        ensure!(body == self.answer, "the server answered something else: {}", String::from_utf8_lossy(body));
        Ok(())
    }
}

/// Every connection sends its next request as soon as it has the answer to its last, for `length`. Returns how many were
/// answered.
///
/// # Errors
/// When one was not answered as it has to be.
pub fn saturate(connections: &mut [Connection], exchange: Exchange<'_>, length: Duration) -> Result<u32> {
    let end = Instant::now() + length;
    let counts = on_each(connections, |connection| {
        let mut answered = 0;
        while Instant::now() < end {
            exchange.over(connection)?;
            answered += 1;
        }
        Ok(answered)
    })?;
    Ok(counts.into_iter().sum())
}

/// Sends a request at each time of `schedule` (ascending, from now), over whichever connection is free, and returns how
/// long after its time each was answered. A request that waits for a connection, because the server is slow, is late by
/// that wait too.
///
/// # Errors
/// When one was not answered as it has to be.
pub fn arrive(connections: &mut [Connection], exchange: Exchange<'_>, schedule: &[Duration]) -> Result<Latencies> {
    let (start, next) = (Instant::now(), AtomicUsize::new(0));
    let latencies = on_each(connections, |connection| {
        // The kernel may wake a thread up to 50 µs late otherwise, which would be counted as the server's time.
        rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?;
        let mut latencies = Vec::new();
        while let Some(time) = schedule.get(next.fetch_add(1, Ordering::Relaxed)) {
            let due = start + *time;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            exchange.over(connection)?;
            latencies.push(due.elapsed());
        }
        Ok(latencies)
    })?;
    Latencies::of(latencies.concat())
}

/// Arrivals at random, `each_second` on average, for `length`; the same every time. Evenly spaced ones would never meet,
/// and no server would ever be seen to queue.
#[must_use]
pub fn schedule(each_second: f64, length: Duration) -> Vec<Duration> {
    let mut random = fastrand::Rng::with_seed(1);
    let mut seconds = 0.0;
    let arrivals = std::iter::from_fn(|| {
        // The time between two arrivals of a Poisson process.
        seconds -= (1.0 - random.f64()).ln() / each_second;
        Some(Duration::from_secs_f64(seconds))
    });
    arrivals.take_while(|time| *time < length).collect()
}

/// A thread for each connection.
fn on_each<T: Send>(
    connections: &mut [Connection],
    work: impl Fn(&mut Connection) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = connections.iter_mut().map(|connection| scope.spawn(move || work(connection))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<T>>| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_has_its_rate_its_length_and_is_always_the_same() {
        let length = Duration::from_secs(10);
        let times = schedule(1000.0, length);
        assert!((9_700..10_300).contains(&times.len()), "{}", times.len());
        assert!(times.is_sorted() && times.last().unwrap() < &length);
        assert_eq!(times, schedule(1000.0, length));
        let meet = times.windows(2).filter(|pair| pair[1] < pair[0] + Duration::from_micros(100)).count();
        assert!(meet > 500, "{meet} arrivals within 100 µs of another");
    }
}
