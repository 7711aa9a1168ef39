//! Stop: a value that is passed around. The first signal drains, the second aborts.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The wish to stop. Clones share it; a test makes its own and needs no signal.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    drain: CancellationToken,
    abort: CancellationToken,
}

impl Stop {
    /// A stop that nobody has asked for yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for an orderly end.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Asks for an end now; whoever waits for [`draining`](Self::draining) is woken too.
    pub fn abort(&self) {
        self.drain.cancel();
        self.abort.cancel();
    }

    /// Waits until an end was asked for, orderly or not.
    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }

    /// Waits until an end without delay was asked for.
    pub async fn aborted(&self) {
        self.abort.cancelled().await;
    }

    /// Turns SIGTERM and SIGINT into [`drain`](Self::drain) first and [`abort`](Self::abort) second.
    ///
    /// The handlers are in place when this returns, so a signal that arrives later is never lost. Fails only where the
    /// operating system refuses a handler. Must be called inside a tokio runtime.
    pub fn on_signals(&self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = self.clone();
        tokio::spawn(async move {
            let mut first = true;
            loop {
                let name = tokio::select! {
                    Some(()) = terminate.recv() => "SIGTERM",
                    Some(()) = interrupt.recv() => "SIGINT",
                    else => return,
                };
                if first {
                    tracing::info!(signal = name, "asked to stop");
                    stop.drain();
                    first = false;
                } else {
                    tracing::warn!(signal = name, "second signal, stopping at once");
                    stop.abort();
                }
            }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_abort_also_wakes_who_waits_for_a_drain() {
        let stop = Stop::new();
        stop.clone().abort();
        stop.draining().await;
        stop.aborted().await;
    }

    #[tokio::test]
    async fn a_drain_is_not_an_abort() {
        let stop = Stop::new();
        stop.drain();
        stop.draining().await;
        assert!(!stop.abort.is_cancelled());
    }
}
