//! How many probes an agent makes.
//!
//! `limit` a second at most, and 64 at a time. A probe asks one question, without a proof two (the pod itself, asked for a
//! 5xx, is not counted). New sessions go first, but every fourth turn is for the steady ones if they wait for it. These are
//! repeated every
//!
//! ```text
//! max(5 s, questions ÷ (0.8 × limit))      questions: those of all ports and addresses of the node, each once
//! ```
//!
//! so that a fifth of the limit is always left for what is new. 200 a second are 400 ports with proved addresses every
//! 5 s; with 4,000 it is every 50 s.
//!
//! What does not answer holds a place until its time is over, and must not hold up what does. So ports and addresses have
//! three lanes each, with places of their own: new ones, steady ones, and those that gave no answer last time. Whoever
//! takes longer than [`PROMPT`] in another lane goes on in that of the silent if a place is free there, and is given up
//! otherwise. Who answers is back in its own.

use std::pin::pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex as Queue, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout};

use crate::probe::Kind;
use crate::probe::pace::STEADY;

/// What steady probes may take of the limit.
const STEADY_SHARE: f64 = 0.8;

/// After so many turns of new ones a steady one has its own.
const NEW_IN_A_ROW: u32 = 3;

/// How many of each kind may be under way, by [`Lane`]. A port takes 1 s to time out, an address up to 4 s.
const PORTS: [usize; 3] = [6, 6, 4];
pub(super) const ADDRESSES: [usize; 3] = [12, 24, 12];

/// A probe that takes longer makes room: many times what a connection on the node takes, and an answer through a gateway.
const PROMPT: Duration = Duration::from_millis(250);

/// Hands out turns; see the module.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u32,
    questions: AtomicU32,
    bucket: Mutex<Bucket>,
    /// By [`Urgency`]. Only the first in a queue looks at the bucket.
    queues: [Queue<()>; 2],
    waiting: [AtomicU32; 2],
    ports: [Semaphore; 3],
    addresses: [Semaphore; 3],
}

/// With whom a probe shares its places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// What is about to become reachable.
    New,
    /// What is looked after.
    Steady,
    /// What gave no answer last time.
    Silent,
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgency {
    New,
    Steady,
}

/// The right to make one probe, while it is held.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    place: Option<SemaphorePermit<'a>>,
    /// Where it goes on when it takes long; none for one that is there.
    silent: Option<&'a Semaphore>,
    /// How long it was waited for.
    pub waited: Duration,
}

impl Turn<'_> {
    /// Makes the probe. None for one that took so long that others needed its place: it has told nothing, and has its turn
    /// in [`Lane::Silent`].
    pub(crate) async fn make<T>(mut self, probe: impl Future<Output = T>) -> Option<T> {
        let mut probe = pin!(probe);
        if let Some(silent) = self.silent {
            if let Ok(answer) = timeout(PROMPT, &mut probe).await {
                return Some(answer);
            }
            self.place = Some(silent.try_acquire().ok()?);
        }
        Some(probe.await)
    }
}

impl Budget {
    /// Of so many questions a second, and one at least.
    #[must_use]
    pub(crate) fn new(limit: u32) -> Self {
        let limit = limit.max(1);
        Self {
            limit,
            questions: AtomicU32::new(0),
            bucket: Mutex::new(Bucket::new(f64::from(limit), Instant::now())),
            queues: Default::default(),
            waiting: Default::default(),
            ports: PORTS.map(Semaphore::new),
            addresses: ADDRESSES.map(Semaphore::new),
        }
    }

    /// How often steady probes are repeated; see the module.
    #[must_use]
    pub(crate) fn interval(&self) -> Duration {
        let questions = f64::from(self.questions.load(Ordering::Relaxed));
        STEADY.max(Duration::from_secs_f64(questions / (STEADY_SHARE * f64::from(self.limit))))
    }

    /// From now on so many more questions are repeated, until the answer is dropped.
    #[must_use]
    pub(crate) fn enlist(&self, questions: u32) -> Enlisted<'_> {
        self.questions.fetch_add(questions, Ordering::Relaxed);
        Enlisted { count: &self.questions, by: questions }
    }

    /// Waits for the right to make one probe that asks so many questions, two at most.
    pub(crate) async fn turn(&self, kind: Kind, lane: Lane, questions: u32) -> Turn<'_> {
        let begun = Instant::now();
        let places = match kind {
            Kind::Port => &self.ports,
            Kind::Address => &self.addresses,
        };
        let [.., silent] = places;
        // Nobody closes it.
        let place = places[lane as usize].acquire().await.ok();
        let urgency = lane.urgency();
        let waiting = &self.waiting[urgency as usize];
        waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Enlisted { count: waiting, by: 1 };
        let _first = self.queues[urgency as usize].lock().await;
        while let Err(wait) = self.take(urgency, questions) {
            sleep(wait).await;
        }
        Turn { place, silent: (lane != Lane::Silent).then_some(silent), waited: begun.elapsed() }
    }

    fn take(&self, urgency: Urgency, questions: u32) -> Result<(), Duration> {
        let others_wait = self.waiting[1 - urgency as usize].load(Ordering::Relaxed) > 0;
        let mut bucket = self.bucket.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        bucket.take(Instant::now(), urgency, f64::from(questions), others_wait)
    }
}

impl Lane {
    fn urgency(self) -> Urgency {
        match self {
            Self::New => Urgency::New,
            Self::Steady | Self::Silent => Urgency::Steady,
        }
    }
}

/// Counts until it is dropped, which is also when a probe that waits is given up.
#[derive(Debug)]
pub(crate) struct Enlisted<'a> {
    count: &'a AtomicU32,
    by: u32,
}

impl Drop for Enlisted<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(self.by, Ordering::Relaxed);
    }
}

/// The questions that may be asked now; it holds those of one second.
#[derive(Clone, Debug)]
struct Bucket {
    a_second: f64,
    left: f64,
    filled: Instant,
    /// Turns of new ones since one of the steady.
    new_in_a_row: u32,
}

impl Bucket {
    fn new(a_second: f64, now: Instant) -> Self {
        Self { a_second, left: a_second, filled: now, new_in_a_row: 0 }
    }

    /// Takes `questions`, or says after how long to try again.
    fn take(&mut self, now: Instant, urgency: Urgency, questions: f64, others_wait: bool) -> Result<(), Duration> {
        let added = now.duration_since(self.filled).as_secs_f64() * self.a_second;
        // A probe without a proof asks two, which has to be possible at 1 a second too.
        self.left = (self.left + added).min(self.a_second.max(2.0));
        self.filled = now;
        let steady_is_next = self.new_in_a_row >= NEW_IN_A_ROW;
        let goes_first = !others_wait || (urgency == Urgency::Steady) == steady_is_next;
        if goes_first && self.left >= questions {
            self.left -= questions;
            self.new_in_a_row = if urgency == Urgency::New { self.new_in_a_row.saturating_add(1) } else { 0 };
            return Ok(());
        }
        let missing = (questions - self.left).max(1.0);
        Err(Duration::from_secs_f64(missing / self.a_second))
    }
}

#[cfg(test)]
mod tests;
