//! A connection that is read in pace, down to its bytes: heads that never end and chunks of nothing cost as much as events.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::pace::Pace;

/// What connections to the same inspector spend, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Spent(Arc<Mutex<Pace>>);

impl Spent {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Pace::new(Instant::now()))))
    }

    /// So many bytes or events came; until when no more is read.
    pub(super) fn spend(&self, bytes: usize, events: usize) -> Option<Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).spend(bytes, events, Instant::now())
    }
}

/// A connection. Writing to it is as it always is.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    spent: Spent,
    /// Until when nothing is read.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, spent: Spent) -> Self {
        Self { stream, spent, pause: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let until = self.spent.spend(buffer.filled().len() - before, 0);
        self.pause = until.map(|until| Box::pin(sleep_until(until)));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_at_length_is_read_in_pace() {
        let (ours, mut its) = duplex(64 * 1024);
        let begun = Instant::now();
        tokio::spawn(async move { while its.write_all(&[b'0'; 4096]).await.is_ok() {} });
        let mut metered = Metered::new(ours, Spent::new());
        let (mut buffer, mut read) = (vec![0; 16 * 1024], 0);
        while begun.elapsed() < Duration::from_mins(1) {
            read += metered.read(&mut buffer).await.unwrap();
        }
        let most = 256 * 1024 * 64 + 1024 * 1024;
        assert!(read <= most && read > most / 2, "{read}");
    }
}
