//! The node agent: it publishes the routes of the sessions on its node, says whether they work, and tells Prometheus.
//!
//! ```text
//! pods of the node ──▶ Session ─┬▶ desired ─┐
//! our objects ───────▶ Live ────┼───────────┴▶ plan ─▶ steps ─▶ apply
//! route and Gateway status ─────┼▶ verdict ─┐
//! probes ───────────────────────┴───────────┴▶ report ─▶ one patch of pods/status, Events
//! ```
//!
//! What decides is pure: `session`, `layer`, `desired`, `plan`, `verdict`, `report`, about `objects` of a few kinds,
//! and in the words of [`reason`], which alone others need to know. What does is thin:
//!
//! * `informers`: what is watched;
//! * `world`: what is known of the node; `ground`: policy, routing layer, Gateway;
//! * `work`: one task for each session; `probe`: whether ports and addresses work; `events`, `metrics`;
//! * `elected`: what one agent does for all.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser as _;
use cofferdam_runtime::errors::with_causes;
use cofferdam_runtime::stop::Stop;
use cofferdam_runtime::{logs, panics};

mod args;
mod config;
mod desired;
mod elected;
mod events;
mod ground;
mod informers;
mod layer;
mod metrics;
mod network_policy;
mod node;
mod objects;
mod plan;
mod probe;
pub mod reason;
mod report;
mod serve;
mod session;
#[cfg(test)]
mod testing;
mod verdict;
mod work;
mod world;

/// Threads that work on sessions.
const THREADS: usize = 2;

/// Bad usage or configuration, as BSD's `sysexits` numbers it.
const USAGE: u8 = 64;

/// Runs the program with its command line, the program's name first.
///
/// Exit codes: 0 for an orderly end, 64 for bad usage or configuration (said on standard error), 1 for a start that failed
/// or an end that was not orderly (said in the log).
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match args::Args::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // A closed standard error leaves nobody to tell.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let (format, filter) = (arguments.log_format, arguments.log_filter.clone());
    let usage = |error: &dyn std::error::Error| {
        let _ = writeln!(io::stderr(), "cofferdam-agent: {}", with_causes(error));
        ExitCode::from(USAGE)
    };
    let config = match arguments.into_config() {
        Ok(config) => config,
        Err(error) => return usage(&error),
    };
    if let Err(error) = logs::init(format, &filter) {
        return usage(&error);
    }
    panics::log_places_only();
    // What a node's agent does is little, and each thread keeps memory of its own: on a node of 64 processors, much.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
    let outcome = runtime.map_err(serve::ServeError::Runtime).and_then(|runtime| {
        runtime.block_on(async {
            let stop = Stop::new();
            stop.on_signals().map_err(serve::ServeError::Runtime)?;
            serve::until_stopped(config, stop).await
        })
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = with_causes(&error), "not running");
            ExitCode::FAILURE
        }
    }
}
