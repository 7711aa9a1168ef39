//! What a panic leaves behind: its place in a log line, never its message.

use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::task::Poll;

/// Logs where a panic happened instead of printing what it said: a message may quote the input (slicing a string in
/// the middle of a character does), and input holds secrets.
pub fn log_places_only() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        tracing::error!(place, thread = thread.name().unwrap_or("unnamed"), "panicked");
    }));
}

/// Something panicked; the log says where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an internal error; the log says where")]
pub struct Panicked;

/// Does something and turns a panic into an error.
///
/// What it shares with others must stay whole when it is left in the middle; the types used here see to it.
pub(crate) fn caught<T>(act: impl FnOnce() -> T) -> Result<T, Panicked> {
    panic::catch_unwind(AssertUnwindSafe(act)).map_err(|_message| Panicked)
}

/// Runs `future` and turns a panic into an error. The future is not polled again after that.
///
/// What the future shares with others must stay whole when it is left in the middle; the types used here see to it.
pub async fn catch<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match caught(|| future.as_mut().poll(context)) {
        Ok(poll) => poll.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_an_error_and_an_answer_stays_one() {
        assert_eq!(catch(async { 7 }).await, Ok(7));
        let after_a_wait = catch(async {
            tokio::task::yield_now().await;
            panic!("on purpose")
        });
        assert_eq!(after_a_wait.await, Err::<(), _>(Panicked));
    }
}
