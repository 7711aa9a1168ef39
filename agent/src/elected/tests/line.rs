//! A client's way to the API server.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::sleep;

#[derive(Clone, Default)]
pub(super) struct Line(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    is_cut: bool,
    is_broken: bool,
    late: Duration,
}

impl Line {
    /// From now on nothing is answered.
    pub(super) fn cut(&self) {
        self.state().is_cut = true;
    }

    /// From now on no connection is made; or one is again.
    pub(super) fn breaks(&self, is_broken: bool) {
        self.state().is_broken = is_broken;
    }

    /// From now on what is written arrives at once, and is answered so much later.
    pub(super) fn answers_writes_after(&self, late: Duration) {
        self.state().late = late;
    }

    /// Until a request has arrived, if it can.
    pub(super) async fn sends(&self) -> io::Result<()> {
        let (is_cut, is_broken) = {
            let state = self.state();
            (state.is_cut, state.is_broken)
        };
        if is_cut {
            std::future::pending::<()>().await;
        }
        if is_broken { Err(io::ErrorKind::ConnectionRefused.into()) } else { Ok(()) }
    }

    /// Until its answer has.
    pub(super) async fn answers(&self, is_write: bool) {
        let late = self.state().late;
        if is_write {
            sleep(late).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}
