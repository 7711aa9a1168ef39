//! Waiting for a moment that there may not be.

use std::future::pending;

use tokio::time::{Instant, sleep_until};

/// Waits until then; for ever, where there is no such moment.
pub async fn until(moment: Option<impl Into<Instant>>) {
    match moment {
        Some(moment) => sleep_until(moment.into()).await,
        None => pending().await,
    }
}
