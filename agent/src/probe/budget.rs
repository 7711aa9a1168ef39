//! How many probes an agent makes.
//!
//! `limit` a second at most, and 64 at a time, in four lanes, so that those that time out do not hold up the others. A
//! probe asks one question, without a proof two (the pod itself, asked for a 5xx, is not counted). New sessions go
//! first, but every fourth turn is for the steady ones if they wait for it. These are repeated every
//!
//! ```text
//! max(5 s, questions ÷ (0.8 × limit))      questions: those of all ports and addresses of the node, each once
//! ```
//!
//! so that a fifth of the limit is always left for what is new. 200 a second are 400 ports with proved addresses every
//! 5 s; with 4,000 it is every 50 s.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex as Queue, Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};

use crate::probe::Kind;
use crate::probe::pace::STEADY;

/// What steady probes may take of the limit.
const STEADY_SHARE: f64 = 0.8;

/// After so many turns of new ones a steady one has its own.
const NEW_IN_A_ROW: u32 = 3;

/// How many of each kind may be under way: new ones, steady ones. A port takes 1 s to time out, an address up to 4 s.
const PORTS: [usize; 2] = [8, 8];
const ADDRESSES: [usize; 2] = [16, 32];

/// Hands out turns; see the module.
#[derive(Debug)]
pub struct Budget {
    limit: u32,
    questions: AtomicU32,
    bucket: Mutex<Bucket>,
    /// By [`Urgency`], as all that follow. Only the first in a queue looks at the bucket.
    queues: [Queue<()>; 2],
    waiting: [AtomicU32; 2],
    ports: [Semaphore; 2],
    addresses: [Semaphore; 2],
}

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// What is about to become reachable.
    New,
    /// What is looked after.
    Steady,
}

/// The right to make one probe, while it is held.
#[derive(Debug)]
pub struct Turn<'a> {
    _place: Option<SemaphorePermit<'a>>,
    /// How long it was waited for.
    pub waited: Duration,
}

impl Budget {
    /// Of so many questions a second, and one at least.
    #[must_use]
    pub fn new(limit: u32) -> Self {
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

    /// Questions a second.
    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// How often steady probes are repeated; see the module.
    #[must_use]
    pub fn interval(&self) -> Duration {
        let questions = f64::from(self.questions.load(Ordering::Relaxed));
        STEADY.max(Duration::from_secs_f64(questions / (STEADY_SHARE * f64::from(self.limit))))
    }

    /// From now on so many more questions are repeated, until the answer is dropped.
    #[must_use]
    pub fn enlist(&self, questions: u32) -> Enlisted<'_> {
        self.questions.fetch_add(questions, Ordering::Relaxed);
        Enlisted { count: &self.questions, by: questions }
    }

    /// Waits for the right to make one probe that asks so many questions, two at most.
    pub async fn turn(&self, kind: Kind, urgency: Urgency, questions: u32) -> Turn<'_> {
        let begun = Instant::now();
        let lane = urgency as usize;
        let places = match kind {
            Kind::Port => &self.ports[lane],
            Kind::Address => &self.addresses[lane],
        };
        // Nobody closes it.
        let place = places.acquire().await.ok();
        self.waiting[lane].fetch_add(1, Ordering::Relaxed);
        let _waiting = Enlisted { count: &self.waiting[lane], by: 1 };
        let _first = self.queues[lane].lock().await;
        while let Err(wait) = self.take(urgency, questions) {
            sleep(wait).await;
        }
        Turn { _place: place, waited: begun.elapsed() }
    }

    fn take(&self, urgency: Urgency, questions: u32) -> Result<(), Duration> {
        let others_wait = self.waiting[1 - urgency as usize].load(Ordering::Relaxed) > 0;
        let mut bucket = self.bucket.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        bucket.take(Instant::now(), urgency, f64::from(questions), others_wait)
    }
}

/// Counts until it is dropped, which is also when a probe that waits is given up.
#[derive(Debug)]
pub struct Enlisted<'a> {
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
