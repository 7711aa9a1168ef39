//! The admission server: it shows every pod that is created to the rules, and answers with what has to change.
//!
//! ```text
//!  POST /mutate/enforced ─┐  http     review      harden (model, pure)     review
//!  POST /mutate/labelled ─┴─ bounds ─ parse ───▶ Hardened, Refused, … ──▶ answer ─▶ patch, warnings, or a refusal
//!                              │                        │
//!                              └──── 4xx, 5xx ◀─ admit ─┴─▶ record: one log line, metrics: one outcome
//! ```
//!
//! * [`admit`]: every kind of input becomes an answer here;
//! * [`review`]: the admission API's `AdmissionReview`, read and written;
//! * [`weight`]: what a pod may cost in memory before it is looked at;
//! * [`record`]: the log line of a decision;
//! * [`metrics`]: what is counted;
//! * [`args`] and [`config`]: what was typed, and what it means;
//! * [`serve`]: the life of the server.
//!
//! It needs nothing from the cluster and asks nobody: all it knows is the policy, the certificate and the request.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use cofferdam_runtime::stop::Stop;
use cofferdam_runtime::{logs, panics};

pub mod admit;
pub mod args;
pub mod config;
pub mod metrics;
pub mod record;
pub mod review;
pub mod serve;
pub mod weight;

pub use config::Config;
pub use serve::{Running, start};

/// Bad usage or configuration, as BSD's `sysexits` numbers it.
const USAGE: u8 = 64;

/// Runs the program with its command line, the program's name first.
///
/// Exit codes: 0 for an orderly end, 64 for bad usage or configuration (said on standard error), 1 for a start that
/// failed or an end that was not orderly (said in the log).
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match args::Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // A closed standard error leaves nobody to tell.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    let args::Command::Serve(arguments) = arguments.command;
    let (format, filter) = (arguments.log_format, arguments.log_filter.clone());
    let usage = arguments.into_config().and_then(|config| {
        logs::init(format, &filter)?;
        Ok(config)
    });
    let config = match usage {
        Ok(config) => config,
        Err(error) => {
            let _ = writeln!(io::stderr(), "cofferdam-webhook: {}", with_causes(&error));
            return ExitCode::from(USAGE);
        }
    };
    panics::log_places_only();
    let outcome = tokio::runtime::Runtime::new()
        .map_err(serve::ServeError::Runtime)
        .and_then(|runtime| runtime.block_on(until_stopped(config)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = with_causes(&error), "not running");
            ExitCode::FAILURE
        }
    }
}

async fn until_stopped(config: Config) -> Result<(), serve::ServeError> {
    let stop = Stop::new();
    stop.on_signals().map_err(serve::ServeError::Runtime)?;
    start(config, stop).await?.wait().await
}

/// An error and what led to it, on one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    line
}
