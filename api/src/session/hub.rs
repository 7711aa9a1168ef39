//! What a session tells, for whoever listens and for whoever comes back: events, and the bytes of its terminal.
//!
//! A reader is a place in a [`Ring`] that all readers share, and is woken when there is more. So it holds nothing of its
//! own, however slow it is: what it has not read in time is dropped for all, and it is told that something is missing.
//! All that the sessions of a process can hold is [`Limits::most`].

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::ring::Ring;
use crate::wire;

/// The longest chunk: what is read at once is dropped at once, too.
const LONGEST_CHUNK: usize = 64 * 1024;

/// How much a session keeps for those who come back, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of events, as JSON.
    pub events: usize,
    /// Of terminal bytes.
    pub bytes: usize,
}

/// One session's.
#[derive(Debug)]
pub struct Hub {
    events: Arc<Channel<Told>>,
    bytes: Arc<Channel<Chunk>>,
}

/// An event as it is sent. Its `Debug` shows its name alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Told {
    /// Its type, which names the frame.
    pub name: &'static str,
    /// The whole event as JSON, on one line.
    pub json: Bytes,
}

/// Some bytes of the terminal. Its `Debug` shows how many: a program may print its secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Chunk {
    /// What they were written to.
    pub stream: Stream,
    /// At most 64 KiB.
    pub bytes: Bytes,
}

/// What a program writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Its terminal.
    Tty,
    /// Standard output, where it has no terminal.
    Stdout,
    /// Standard error, where it has no terminal.
    Stderr,
}

/// What a reader gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// An entry, and its id: an event's id, or a chunk's sequence number.
    Entry {
        /// Above that of every entry before.
        id: u64,
        /// What was told.
        entry: T,
    },
    /// Something is missing between what came before and what comes next.
    Gap,
    /// Nothing follows.
    End,
}

/// A reader of events.
pub type Events = Reader<Told>;

/// A reader of terminal bytes.
pub type Chunks = Reader<Chunk>;

/// Reads what is kept and then what comes, each entry once and in order.
#[derive(Debug)]
pub struct Reader<T> {
    channel: Arc<Channel<T>>,
    more: watch::Receiver<()>,
    /// The id of what was read last.
    last: u64,
    /// Whether it was said that something is missing after `last`.
    in_gap: bool,
}

#[derive(Debug)]
struct Channel<T> {
    kept: Mutex<Kept<T>>,
    more: watch::Sender<()>,
}

#[derive(Debug)]
struct Kept<T> {
    ring: Ring<T>,
    is_over: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { events: 5_000_000, bytes: 5_000_000 }
    }
}

impl Limits {
    /// The most bytes that so many sessions hold, however many read and however slowly (defect D15). An event that is larger
    /// than its limit alone is kept as the last one: whoever passes on what a program says has to cut it.
    #[must_use]
    pub fn most(self, sessions: usize) -> usize {
        sessions.saturating_mul(self.events.saturating_add(self.bytes.max(LONGEST_CHUNK)))
    }
}

impl Hub {
    /// Of a session of which nothing was told yet by this process. The first event and the first chunk get the id `first`:
    /// 1, or [`first_id`] for a session that another process has told of.
    #[must_use]
    pub fn new(limits: Limits, first: u64) -> Self {
        Self {
            events: Channel::new(Ring::new(limits.events, first)),
            bytes: Channel::new(Ring::new(limits.bytes, first)),
        }
    }

    /// Tells an event, and gives its id. A final status ends the events: what comes after it is not told (defect D07), and
    /// has no id.
    #[expect(clippy::must_use_candidate, reason = "it is told whether or not somebody wants its id")]
    pub fn tell(&self, event: &wire::Event) -> Option<u64> {
        // No key of an event is anything but a string, so it can always be written.
        let json = Bytes::from(serde_json::to_vec(event).ok()?.into_boxed_slice());
        let is_last = matches!(event, wire::Event::Status { status } if status.is_final());
        self.events.add(|kept| {
            let size = json.len();
            kept.is_over = is_last;
            kept.ring.push(Told { name: event.name(), json }, size)
        })
    }

    /// Adds bytes that the program wrote, in chunks of at most 64 KiB. They are copied: a part of a larger buffer would keep
    /// all of it.
    pub fn output(&self, stream: Stream, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.add(|kept| {
            for chunk in bytes.chunks(LONGEST_CHUNK) {
                kept.ring.push(Chunk { stream, bytes: Bytes::copy_from_slice(chunk) }, chunk.len());
            }
        });
    }

    /// Ends both: who reads comes to an end after what is kept. Events end by their final status already, bytes only here,
    /// once all of them are there.
    pub fn finish(&self) {
        self.events.finish();
        self.bytes.finish();
    }

    /// Whether nothing more will be told.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.events.kept().is_over && self.bytes.kept().is_over
    }

    /// The events after that of this id: 0 for all that are kept.
    #[must_use]
    pub fn events(&self, after: u64) -> Events {
        self.events.read(after)
    }

    /// The chunks after that of this number: 0 for all that are kept.
    #[must_use]
    pub fn bytes(&self, after: u64) -> Chunks {
        self.bytes.read(after)
    }

    /// How many read events or bytes just now.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.events.more.receiver_count() + self.bytes.more.receiver_count()
    }
}

/// The first id of a session that is found rather than begun, by the age of its pod: milliseconds. What was told before got
/// lower ones, as long as that was less than one thing in a millisecond; so no client takes what is new for what it knows.
#[must_use]
pub fn first_id(age: Duration) -> u64 {
    u64::try_from(age.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Nobody waits for a session that is kept no more.
impl Drop for Hub {
    fn drop(&mut self) {
        self.finish();
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {} bytes", self.stream, self.bytes.len())
    }
}

impl Stream {
    /// The byte that stands for it in frames of the byte channel.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Tty => 0,
            Self::Stdout => 1,
            Self::Stderr => 2,
        }
    }
}

impl<T: Clone> Reader<T> {
    /// The id after which it goes on; 0 for all that is kept.
    #[must_use]
    pub fn after(&self) -> u64 {
        self.last
    }

    /// What is next, as soon as there is something. After [`Next::End`] it is that for ever. Nothing is lost where the
    /// future is dropped.
    pub async fn next(&mut self) -> Next<T> {
        loop {
            // Seen before looking, so that what comes while it looks wakes it.
            self.more.borrow_and_update();
            if let Some(next) = self.try_next() {
                return next;
            }
            // It cannot fail: the reader holds the sender.
            let _ = self.more.changed().await;
        }
    }

    /// What is next; nothing where one has to wait.
    pub fn try_next(&mut self) -> Option<Next<T>> {
        let kept = self.channel.kept();
        if !self.in_gap && kept.ring.lacks_after(self.last) {
            self.in_gap = true;
            return Some(Next::Gap);
        }
        let Some((id, entry)) = kept.ring.after(self.last) else {
            return kept.is_over.then_some(Next::End);
        };
        (self.last, self.in_gap) = (id, false);
        Some(Next::Entry { id, entry: entry.clone() })
    }
}

impl<T> Channel<T> {
    fn new(ring: Ring<T>) -> Arc<Self> {
        let kept = Mutex::new(Kept { ring, is_over: false });
        Arc::new(Self { kept, more: watch::Sender::new(()) })
    }

    fn kept(&self) -> MutexGuard<'_, Kept<T>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds something and wakes readers; nothing where it is over.
    fn add<R>(&self, add: impl FnOnce(&mut Kept<T>) -> R) -> Option<R> {
        let mut kept = self.kept();
        let added = (!kept.is_over).then(|| add(&mut kept))?;
        drop(kept);
        self.more.send_replace(());
        Some(added)
    }

    fn finish(&self) {
        self.add(|kept| kept.is_over = true);
    }

    /// A reader of what comes after `after`. An id that nobody was given yet is another process's, whose clock was ahead:
    /// such a reader gets all there is.
    fn read(self: &Arc<Self>, after: u64) -> Reader<T> {
        let more = self.more.subscribe();
        let last = if after > self.kept().ring.last() { 0 } else { after };
        Reader { channel: Arc::clone(self), more, last, in_gap: false }
    }
}

#[cfg(test)]
mod tests;
