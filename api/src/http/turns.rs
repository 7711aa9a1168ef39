//! How much is begun at a time. Beyond it some wait, and beyond those nobody does: a queue that only grows answers
//! everybody too late.

use tokio::sync::{Semaphore, SemaphorePermit};

use super::refusal::Refusal;

/// Turns to do something that costs the cluster more than us.
#[derive(Debug)]
pub struct Turns {
    /// Of those who have a turn or wait for one.
    places: Semaphore,
    free: Semaphore,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Turn<'a> {
    _place: SemaphorePermit<'a>,
    _turn: SemaphorePermit<'a>,
}

impl Turns {
    /// For so many at a time, and so many who wait.
    #[must_use]
    pub fn new(at_a_time: usize, waiting: usize) -> Self {
        Self { places: Semaphore::new(at_a_time + waiting), free: Semaphore::new(at_a_time) }
    }

    /// A turn, as soon as there is one; who came first gets it first.
    ///
    /// # Errors
    /// At once, where too many wait already.
    pub async fn take(&self) -> Result<Turn<'_>, Refusal> {
        let place = self.places.try_acquire().map_err(|_| Refusal::overloaded())?;
        // Nobody closes it.
        let turn = self.free.acquire().await.map_err(|_| Refusal::overloaded())?;
        Ok(Turn { _place: place, _turn: turn })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn some_wait_for_their_turn_and_more_than_some_are_sent_away() {
        let turns = Arc::new(Turns::new(1, 2));
        let first = turns.take().await.unwrap();
        let waiting: Vec<_> = (0..2)
            .map(|_| {
                let turns = Arc::clone(&turns);
                tokio::spawn(async move { turns.take().await.is_ok() })
            })
            .collect();
        while turns.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(turns.take().await.unwrap_err(), Refusal::overloaded());
        drop(first);
        for one in waiting {
            assert!(one.await.unwrap());
        }
        assert!(turns.take().await.is_ok());
    }
}
