//! Who may ask the API server for something now.
//!
//! What leads to sessions and what is told of them wait in two queues, so that neither holds up the other, and few have a
//! turn at a time: an API server that is busy answers each the later the more ask it. Whoever takes long makes room for the
//! next one, so that writes which hang hold up nobody.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::metrics::{Metrics, Queue, Queued};

/// Sessions whose objects are written at the same time; each has a few requests on its way.
const PUBLISHED: usize = 16;
/// Sessions whose status is written at the same time, with one request each.
pub(super) const TOLD: usize = 8;

/// What takes longer goes on beside the queue: many times what a write takes where the API server is well.
const PROMPT: Duration = Duration::from_millis(500);
/// So many of each queue.
pub(super) const SLOW: usize = 32;

/// The turns of all sessions. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    publish: Lanes,
    tell: Lanes,
    metrics: Metrics,
}

#[derive(Clone, Debug)]
struct Lanes {
    prompt: Arc<Semaphore>,
    slow: Arc<Semaphore>,
}

/// A place in a queue, and what comes of it.
pub(super) struct Place {
    /// Which queue.
    pub queue: Queue,
    turn: Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>,
    slow: Arc<Semaphore>,
    _queued: Queued,
}

/// The right to do one thing.
#[derive(Debug)]
pub(super) struct Turn {
    place: Option<OwnedSemaphorePermit>,
    slow: Arc<Semaphore>,
}

impl Turns {
    /// All are free.
    pub(super) fn new(metrics: Metrics) -> Self {
        let lanes = |prompt| Lanes { prompt: Arc::new(Semaphore::new(prompt)), slow: Arc::new(Semaphore::new(SLOW)) };
        Self { publish: lanes(PUBLISHED), tell: lanes(TOLD), metrics }
    }

    /// The last place of a queue.
    pub(super) fn place(&self, queue: Queue) -> Place {
        let Lanes { prompt, slow } = match queue {
            Queue::Publish => &self.publish,
            Queue::Tell => &self.tell,
        };
        let turn = Box::pin(Arc::clone(prompt).acquire_owned());
        Place { queue, turn, slow: Arc::clone(slow), _queued: self.metrics.queued(queue) }
    }
}

impl Place {
    /// Waits for the turn. A place gives one.
    pub(super) async fn turn(&mut self) -> Turn {
        // Nobody closes the queues.
        let place = self.turn.as_mut().await.ok();
        Turn { place, slow: Arc::clone(&self.slow) }
    }
}

impl Turn {
    /// Does it. Once it takes long the next one has the turn, as long as there is room beside the queue.
    pub(super) async fn take<T>(mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        if let Ok(done) = timeout(PROMPT, &mut work).await {
            return done;
        }
        tokio::select! {
            biased;
            done = &mut work => return done,
            slow = Arc::clone(&self.slow).acquire_owned() => self.place = slow.ok(),
        }
        work.await
    }
}
