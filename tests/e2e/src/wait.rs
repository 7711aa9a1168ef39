//! Waiting for a condition, never for a time.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(100);

/// Looks until `look` finds something and returns that.
///
/// # Errors
/// What `look` last complained of, once `limit` has passed.
pub fn until<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        match look() {
            Ok(found) => return Ok(found),
            Err(error) if start.elapsed() > limit => bail!("{what}: not within {} s: {error:#}", limit.as_secs()),
            Err(_) => std::thread::sleep(POLL),
        }
    }
}
