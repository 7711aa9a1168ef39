//! The end of what nothing else ends.
//!
//! The download looks at the clock; what comes between and after its bytes does not: an archive of a few KiB can ask for
//! minutes of work, and a volume or a file can hang.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::failure::Failure;
use crate::remote::deadline::Deadline;

/// How long after the deadline: whoever knows a better reason has that long to say it.
const GRACE: Duration = Duration::from_secs(5);

/// Ends the process a while after its deadline, unless it is dropped before.
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Its end disarms.
    armed: Option<Sender<Infallible>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts to watch; the reason goes to where that of any failure does.
    pub(crate) fn arm(deadline: &Deadline, termination_log: PathBuf) -> Result<Self, Failure> {
        let (armed, disarmed) = mpsc::channel();
        let (whole, patience) = (deadline.whole(), deadline.left() + GRACE);
        let watch = move || {
            if disarmed.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                let failure = Failure::NotReached(format!(
                    "the body was not unpacked within {whole:?}: it takes too long; make it simpler, or raise \
                     bodies.deadlineSeconds in the policy"
                ));
                // Its exit code is what the process ends with here, too.
                let _ = crate::fail(&failure, &termination_log);
                std::process::exit(failure.exit_code().into());
            }
        };
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(watch);
        let thread = thread.map_err(|error| Failure::disk("start", error))?;
        Ok(Self { armed: Some(armed), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.armed.take());
        // Where it has begun to end the process, nothing else begins any more.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
