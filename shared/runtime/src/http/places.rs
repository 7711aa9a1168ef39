//! The places of a listener: so many connections at the same time.
//!
//! Connections cost a client nothing, and one that lies idle may do so for long. So when all places are taken, whoever
//! has been waiting for its client longest makes room for the next: clients that hold connections open cannot keep
//! others out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::limits::Limits;

/// The places; clones share them.
#[derive(Clone)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    taken: Arc<Mutex<Taken>>,
    idle: Duration,
    answering: Duration,
    streaming: Duration,
}

/// Connections that have a place and have not been asked to leave, by the number under which they came.
#[derive(Default)]
struct Taken {
    came: u64,
    seats: BTreeMap<u64, Seat>,
}

struct Seat {
    /// From when on the connection has to make room if somebody needs it.
    due: Instant,
    leave: CancellationToken,
}

/// A place, until it is dropped.
pub(super) struct Place {
    /// Cancelled when the connection has to make room.
    pub(super) leave: CancellationToken,
    number: u64,
    places: Places,
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            free: Arc::new(Semaphore::new(limits.connections)),
            taken: Arc::default(),
            idle: limits.idle_when_full,
            answering: limits.answering_when_full,
            streaming: limits.streaming_when_full,
        }
    }

    /// A place, if one is free.
    pub(super) fn try_take(&self) -> Option<Place> {
        Arc::clone(&self.free).try_acquire_owned().ok().map(|permit| self.seat(permit))
    }

    /// A place, as soon as one is free or somebody has to make room. Calls `made_room` for each who does.
    pub(super) async fn take(&self, made_room: impl Fn()) -> Place {
        loop {
            if let Some(place) = self.try_take() {
                return place;
            }
            let next = self.clear_one();
            if next.is_none() {
                made_room();
            }
            let until = next.unwrap_or_else(|| Instant::now() + self.idle);
            // Nobody closes the semaphore, so a permit is all that comes of it.
            if let Ok(Ok(permit)) = tokio::time::timeout_at(until, Arc::clone(&self.free).acquire_owned()).await {
                return self.seat(permit);
            }
        }
    }

    fn seat(&self, permit: OwnedSemaphorePermit) -> Place {
        let leave = CancellationToken::new();
        let mut taken = self.taken();
        let number = taken.came;
        taken.came += 1;
        taken.seats.insert(number, Seat { due: Instant::now() + self.idle, leave: leave.clone() });
        Place { leave, number, places: self.clone(), _permit: permit }
    }

    /// Asks the connection that is due longest to leave; where none is due, says when the first will be.
    fn clear_one(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut taken = self.taken();
        let first = taken.seats.iter().min_by_key(|(_, seat)| seat.due).map(|(number, seat)| (*number, seat.due));
        match first {
            Some((number, due)) if due <= now => {
                if let Some(seat) = taken.seats.remove(&number) {
                    seat.leave.cancel();
                }
                None
            }
            Some((_, due)) => Some(due),
            // All have been asked already.
            None => Some(now + self.idle),
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // A map is whole whatever happened to whoever held it.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// A request is being answered from now on.
    pub(super) fn answering(&self) {
        self.due_in(self.places.answering);
    }

    /// An answer is made as it is sent from now on.
    pub(super) fn streaming(&self) {
        self.due_in(self.places.streaming);
    }

    /// It is the client's turn from now on.
    pub(super) fn idle(&self) {
        self.due_in(self.places.idle);
    }

    fn due_in(&self, within: Duration) {
        if let Some(seat) = self.places.taken().seats.get_mut(&self.number) {
            seat.due = Instant::now() + within;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().seats.remove(&self.number);
    }
}
