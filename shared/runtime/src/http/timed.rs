//! A stream whose peer cannot stall it: the head of a request and the writing of an answer have a deadline.
//!
//! hyper has one timer for "no complete head yet", and it runs while a connection lies idle too. Idle may be long, a
//! head that has begun may not; telling them apart takes someone who sees when the first byte arrives.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::places::Place;

/// How far a connection is; written by the service, read by the stream and by the connection's end. It keeps the
/// connection's place, which goes by the same.
#[derive(Default)]
pub(super) struct Progress {
    heads: AtomicUsize,
    answering: AtomicBool,
    streaming: AtomicBool,
    place: Option<Place>,
}

impl Progress {
    /// That of a new connection.
    pub(super) fn new(place: Option<Place>) -> Self {
        Self { place, ..Self::default() }
    }

    /// A head is complete.
    pub(super) fn head_complete(&self) {
        self.heads.fetch_add(1, Ordering::Relaxed);
        self.answering.store(true, Ordering::Relaxed);
        if let Some(place) = &self.place {
            place.answering();
        }
    }

    /// The answer to the last head is made as it is sent, from now on.
    pub(super) fn streaming(&self) {
        self.streaming.store(true, Ordering::Relaxed);
        if let Some(place) = &self.place {
            place.streaming();
        }
    }

    /// The answer to the last head is made.
    pub(super) fn answered(&self) {
        self.answering.store(false, Ordering::Relaxed);
        self.streaming.store(false, Ordering::Relaxed);
        if let Some(place) = &self.place {
            place.idle();
        }
    }

    /// Heads seen so far.
    pub(super) fn heads(&self) -> usize {
        self.heads.load(Ordering::Relaxed)
    }

    /// Whether an answer is being made as it is sent: then leaving is how a client ends it.
    pub(super) fn is_streaming(&self) -> bool {
        self.streaming.load(Ordering::Relaxed)
    }

    fn answering(&self) -> bool {
        self.answering.load(Ordering::Relaxed)
    }
}

/// A stream with deadlines; see the module.
pub(super) struct Timed<S> {
    stream: S,
    progress: Arc<Progress>,
    head_within: Duration,
    write_within: Duration,
    /// Running since the first byte of the head with this number.
    head: Option<(usize, Pin<Box<Sleep>>)>,
    /// Running since the peer last took a byte, if there is one that it has to take.
    write: Option<Pin<Box<Sleep>>>,
}

impl<S> Timed<S> {
    pub(super) fn new(stream: S, progress: Arc<Progress>, head_within: Duration, write_within: Duration) -> Self {
        Self { stream, progress, head_within, write_within, head: None, write: None }
    }

    /// Pending, unless the peer has left us waiting to write for too long.
    fn stalled<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let within = self.write_within;
        let timer = self.write.get_or_insert_with(|| Box::pin(tokio::time::sleep(within)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }

    fn written<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_pending() {
            return self.stalled(context);
        }
        self.write = None;
        outcome
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut this.stream).poll_read(context, buffer);
        let heads = this.progress.heads();
        // A timer of an earlier head has done its work.
        if this.head.as_ref().is_some_and(|(number, _)| *number != heads) {
            this.head = None;
        }
        if this.head.is_none() && buffer.filled().len() > before && !this.progress.answering() {
            this.head = Some((heads, Box::pin(tokio::time::sleep(this.head_within))));
        }
        // A peer that never lets us wait fills the read buffer, and that is a bound too.
        if outcome.is_pending()
            && let Some((_, timer)) = &mut this.head
        {
            ready!(timer.as_mut().poll(context));
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the request's head is incomplete")));
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.written(context, outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.written(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
