//! The API: HTTP requests become **bare** pods, and what the cluster says of them becomes events and terminal bytes.
//!
//! It holds no truth of its own: a session is its pod and its Secret, and the API may be restarted under it.
//!
//! * [`wire`]: what clients send and get;
//! * [`cluster`]: the API server, as clients get to know of it;
//! * [`session`]: one session, from a request to events; [`sessions`]: all that there are, each with its task;
//! * [`bodies`]: how what a session runs gets into its pod;
//! * [`catalogue`], [`apps`], [`terms`], [`capabilities`]: what they may ask for, and how they learn of it;
//! * [`token`]: what is kept of whatever opens something; [`quota`]: what all sessions may use together;
//! * [`http`]: the port that clients use, and [`routes`]: what each route does;
//! * [`metrics`]: what is counted; `args` and `config`: what was typed, and what it means; `serve`: the life of the API.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use cofferdam_runtime::errors::with_causes;
use cofferdam_runtime::stop::Stop;
use cofferdam_runtime::{logs, panics};

pub mod apps;
mod args;
pub mod bodies;
pub mod capabilities;
pub mod catalogue;
pub mod cluster;
mod config;
pub mod http;
pub mod metrics;
pub mod quota;
pub mod routes;
mod serve;
pub mod session;
pub mod sessions;
pub mod terms;
pub mod token;
pub mod wire;

/// Bad usage or configuration, as BSD's `sysexits` numbers it.
const USAGE: u8 = 64;

/// Runs the program with its command line, the program's name first.
///
/// Exit codes: 0 for an orderly end, 64 for bad usage or configuration (said on standard error), 1 for a start that failed
/// or an end that was not orderly (said in the log).
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let usage = |error: &dyn std::error::Error| {
        // A closed standard error leaves nobody to tell.
        let _ = writeln!(io::stderr(), "cofferdam-api: {}", with_causes(error));
        ExitCode::from(USAGE)
    };
    // A word of its own, so that serving has none: it is what the program is for.
    if arguments.get(1).is_some_and(|word| word == "quota") {
        return match parsed::<args::QuotaArgs>(arguments.into_iter().skip(1)) {
            Ok(arguments) => match arguments.render().map(|yaml| io::stdout().write_all(yaml.as_bytes())) {
                Ok(Ok(())) => ExitCode::SUCCESS,
                Ok(Err(error)) => usage(&error),
                Err(error) => usage(&error),
            },
            Err(code) => code,
        };
    }
    let arguments = match parsed::<args::Args>(arguments) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    if let Err(error) = logs::init(arguments.log_format, &arguments.log_filter) {
        return usage(&error);
    }
    let config = match arguments.into_config() {
        Ok(config) => config,
        Err(error) => return usage(&error),
    };
    panics::log_places_only();
    let outcome = tokio::runtime::Runtime::new().map_err(serve::ServeError::Runtime).and_then(|runtime| {
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

/// What was typed; an exit code where that says nothing, or asks for help.
fn parsed<A: clap::Parser>(arguments: impl IntoIterator<Item = OsString>) -> Result<A, ExitCode> {
    A::try_parse_from(arguments).map_err(|error| {
        let _ = error.print();
        if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS }
    })
}
