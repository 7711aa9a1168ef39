//! The init container's program: it fetches a body over HTTP, checks its digest, unpacks it safely and acknowledges it
//! where that is asked for.
//!
//! ```text
//! args ─▶ place: is it there already? ──────────────────────────────────────┐
//!           │ no                                                            ▼
//!           └▶ remote::download ─▶ unpack (gunzip, tar, tree) ─▶ digest ─▶ place ─▶ marker ─▶ acknowledge
//! ```
//!
//! The archive is unpacked while it comes, into a hidden directory on the same volume, and moved into place by renaming
//! once its digest is right. It is never stored: the volume's `sizeLimit` is `--max-bytes`, and a kubelet evicts a pod
//! whose volume is above it. An archive that is kept beside what comes out of it needs room for both: 256 MiB of images
//! and their archive are 512 MiB, so a body could only be half as large. Streamed, the most that is ever there is what
//! stays in the end, and one block for the hidden directory, whose place the marker takes.
//!
//! * [`failure`]: exit codes and sentences; `args`: the command line;
//! * `remote`: addresses, connections, and a download that goes on until its deadline, whatever passes;
//! * [`unpack`]: what an archive may hold, and how it is written without ever following a link;
//! * `directory`: how directories are opened, listed and cleared;
//! * `place`: what an earlier run left, what is complete, and how a body appears;
//! * `watchdog`: the end of what takes too long elsewhere;
//! * `deliver`: one after the other.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::args::{Args, TERMINATION_LOG};
use crate::failure::Failure;

mod args;
mod deliver;
mod directory;
pub mod failure;
mod place;
mod remote;
pub mod unpack;
mod watchdog;

/// Ended by SIGTERM, as a shell numbers it.
const TERMINATED: i32 = 128 + 15;

/// Runs the program with its command line, the program's name first.
///
/// Exit codes are those of [`Failure::exit_code`], and 0 for a body that is there.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::parse_from(arguments) {
        Ok(args) => args,
        Err(error) if !error.use_stderr() => {
            // A closed standard output leaves nobody to tell.
            let _ = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail(&args::mistake(&error), Path::new(TERMINATION_LOG)),
    };
    end_on_signals();
    match deliver::deliver(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure, &args.termination_log),
    }
}

/// Says why, and returns the exit code.
fn fail(failure: &Failure, termination_log: &Path) -> ExitCode {
    let sentence = failure.sentence();
    say(&sentence);
    // A kubelet makes the file. Where there is none, it takes the last lines of the log instead.
    let _ = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(termination_log)
        .and_then(|mut file| file.write_all(sentence.as_bytes()));
    ExitCode::from(failure.exit_code())
}

/// A line for the log, no longer than a reason may be: what it repeats of others, they might make as long as they like.
fn say(text: &str) {
    // A closed standard error leaves nobody to tell.
    let _ = writeln!(io::stderr(), "cofferdam-fetch: {}", failure::line(text));
}

/// The first process of a container ignores a signal that it does not handle, and would hold up the end of its pod. What
/// it leaves behind, the next run clears away.
fn end_on_signals() {
    let start = || -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (mut terminate, mut interrupt) = {
            let _guard = runtime.enter();
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
        };
        let wait = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            });
            std::process::exit(TERMINATED)
        };
        thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
    };
    // Without it, it is as for any program that handles no signal.
    let _ = start();
}
