//! How a session's start was seen to begin, by this agent's own clock.

use std::time::Instant;

use crate::session::{Progress, Seen};

/// What is known of it from the first events, which are read at once; the work on a session may wait for its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// When it was first seen.
    pub at: Instant,
    /// How far it was then.
    pub progress: Progress,
    /// Whether it had no address yet, so that what follows is a start, and was no other agent's work.
    pub is_whole: bool,
    /// When it was first seen with an address.
    pub addressed: Option<Instant>,
}

impl Start {
    /// It is seen for the first time.
    pub(crate) fn new(seen: &Seen) -> Self {
        let (at, session) = (Instant::now(), &seen.session);
        let is_whole = session.address.is_none() && session.phase.is_live();
        Self { at, progress: seen.progress, is_whole, addressed: session.address.map(|_| at) }
    }

    pub(super) fn goes_on(&mut self, seen: &Seen) {
        if seen.session.address.is_some() {
            self.addressed.get_or_insert_with(Instant::now);
        }
    }
}
