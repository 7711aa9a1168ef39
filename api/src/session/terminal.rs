//! The terminal of a session's program: what it writes and what it is sent.
//!
//! What is written before anybody is attached is in the log alone, and so is what a program wrote that ended before (defect
//! D04). So the log is read first whenever one attaches, and a last time when the program has ended.

use std::net::IpAddr;
use std::time::Duration;

use cofferdam_kubernetes::{Backoff, Failed};
use cofferdam_model::session::SessionId;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::hub::Stream;
use super::pod::pod_name;
use crate::cluster::{Home, tell};
use crate::wire::{Io, TerminalInput};

mod attach;
mod log;
mod shown;

use shown::{Beginning, Shown, skip};

/// Between attempts to attach.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// That it fails is told with this attempt.
const TOLD: u32 = 3;

/// A program whose terminal was closed has ended, and its pod says so after so long at the latest.
const FAREWELL: Duration = Duration::from_secs(10);

/// A terminal whose program has ended is closed after so long at the latest: what is missing then is in the log.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How often the log of a program that has ended is asked for, where that may help.
const ATTEMPTS: u32 = 5;

/// How far the program is, as its pod says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// It has not begun.
    Waiting,
    /// It runs.
    Running {
        /// Where; none as long as its pod does not say, or what it says may be old.
        address: Option<IpAddr>,
    },
    /// It has ended.
    Ended,
}

/// Gives `output` all that the program writes, once and in its order as far as that can be known, and the program all of
/// `input`. Ends when the program has ended and all of it was given, or when nobody tells any more how far it is.
///
/// An API server that cannot be reached keeps it from nothing but the terminal: a line there says so, and it goes on.
pub async fn run(
    home: &Home,
    id: &SessionId,
    io: Io,
    mut program: watch::Receiver<Program>,
    mut input: mpsc::Receiver<TerminalInput>,
    mut output: impl FnMut(Stream, &[u8]),
) {
    let (pod, mut shown) = (pod_name(id), Shown::default());
    let mut failures = Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE);
    loop {
        match program.wait_for(|program| *program != Program::Waiting).await.map(|program| *program) {
            Ok(Program::Ended) => break,
            Ok(_) => {}
            Err(_) => return,
        }
        let begun = Instant::now();
        let failed = tokio::select! {
            done = attached(home, &pod, io, &mut shown, &mut input, &mut output) => done.err(),
            () = over(program.clone()) => break,
        };
        if begun.elapsed() > LONGEST_PAUSE {
            failures.over();
        }
        let pause = if failed.is_some() { failures.failed() } else { FAREWELL };
        match timeout(pause, program.wait_for(|program| *program == Program::Ended)).await.map(|ended| ended.is_ok()) {
            Ok(true) => break,
            Ok(false) => return,
            Err(_) => {}
        }
        let Some(failed) = failed else { continue };
        // Once, and not at once: a program that ends cannot be attached to before its pod says so.
        if failures.failures() == TOLD {
            let line = format!("\r\n[attach: {}]\r\n", tell("attaching to a session's terminal", &failed));
            output(notices(io), line.as_bytes());
        }
    }
    finish(home, &pod, io, &mut shown, &mut output).await;
}

/// Waits until the program's terminal has nothing more to give: one that is cut off unnoticed would never close.
async fn over(mut program: watch::Receiver<Program>) {
    // Where nobody tells any more it is over, too.
    let _ = program.wait_for(|program| *program == Program::Ended).await.map(drop);
    sleep(LAST_WORDS).await;
}

/// Gives what was written before, attaches, and goes on until the terminal is closed.
async fn attached(
    home: &Home,
    pod: &str,
    io: Io,
    shown: &mut Shown,
    input: &mut mpsc::Receiver<TerminalInput>,
    output: &mut impl FnMut(Stream, &[u8]),
) -> Result<(), Failed> {
    // What was written before is given at once, and only what is written from now on can be in both.
    log::read(home, pod, io, shown, |bytes| output(stream(io), bytes)).await?;
    let mut terminal = attach::attach(home, pod, io).await?;
    // Not before something came: the API server says that one is attached before it is so.
    let (early, ended) = terminal.early().await?;
    let mut beginning = Beginning::new(&early.iter().flat_map(|(_, bytes)| bytes).copied().collect::<Vec<_>>());
    log::read(home, pod, io, shown, |bytes| {
        beginning.look(bytes);
        output(stream(io), bytes);
    })
    .await?;
    let mut in_log = beginning.in_log();
    let mut give = |stream, bytes: &[u8]| {
        let new = &bytes[skip(bytes, &mut in_log)..];
        if !new.is_empty() {
            shown.add(new);
            output(stream, new);
        }
    };
    for (stream, bytes) in &early {
        give(*stream, bytes);
    }
    if ended { Ok(()) } else { terminal.pump(input, give).await }
}

/// What the program wrote last, where nobody has seen it.
async fn finish(home: &Home, pod: &str, io: Io, shown: &mut Shown, output: &mut impl FnMut(Stream, &[u8])) {
    let mut failures = Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE);
    loop {
        match log::read(home, pod, io, shown, |bytes| output(stream(io), bytes)).await {
            Err(failed) if failed.class.passes() && failures.failures() < ATTEMPTS => sleep(failures.failed()).await,
            // A pod that is gone has no log any more; nothing can be done about that.
            Err(failed) => {
                return tracing::info!(pod, error = %failed, "the log of a session that has ended cannot be read");
            }
            Ok(()) => return,
        }
    }
}

/// What the log's bytes are taken for. It has both streams in one, and asking for one alone is a feature of Kubernetes'
/// (`PodLogsQuerySplitStreams`) that clusters are without unless somebody turns it on.
fn stream(io: Io) -> Stream {
    match io {
        Io::Tty => Stream::Tty,
        Io::Streams => Stream::Stdout,
    }
}

/// Where lines of ours go: not into what a program writes for other programs.
pub(crate) fn notices(io: Io) -> Stream {
    match io {
        Io::Tty => Stream::Tty,
        Io::Streams => Stream::Stderr,
    }
}

#[cfg(test)]
mod tests;
