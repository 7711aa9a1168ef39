//! The admission server: it shows every pod that is created or changed to the rules, and answers with what has to change.
//!
//! ```text
//!  POST /mutate/{enforced,warn,labelled}   ─┐  http     review      harden (model, pure)     review
//!  POST /validate/{enforced,warn,labelled} ─┴─ bounds ─ parse ───▶ Hardened, Refused, … ──▶ answer ─▶ patch, warnings, or
//!                                                 │                        │                           a refusal
//!                                                 └──── 4xx, 5xx ◀─ admit ─┴─▶ record: one log line, metrics: one outcome
//! ```
//!
//! * [`admit`]: every kind of input becomes an answer here;
//! * [`review`]: the admission API's `AdmissionReview`, read and written;
//! * `workload`: the kinds of objects that make pods;
//! * [`weight`]: what a pod may cost in memory before it is looked at;
//! * [`record`]: the log line of a decision;
//! * [`metrics`]: what is counted;
//! * `args` and `config`: what was typed, and what it means;
//! * `offline`: the same rules over files; `policy_command`: a policy file by itself; `plugin`: `kubectl cofferdam`;
//! * `serve`: the life of the server.
//!
//! It needs nothing from the cluster and asks nobody: all it knows is the policy, the certificate and the request.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use cofferdam_runtime::errors::with_causes;
use cofferdam_runtime::stop::Stop;
use cofferdam_runtime::{logs, panics};

pub mod admit;
mod args;
mod config;
pub mod metrics;
mod offline;
mod plugin;
mod policy_command;
pub mod record;
pub mod review;
mod serve;
pub mod weight;
mod workload;

use args::{Cli, Command, ServeArgs};
use config::Config;
use offline::args::HardenArgs;
use plugin::PluginCommand;
use policy_command::PolicyArgs;

/// Bad usage or configuration, as BSD's `sysexits` numbers it.
const USAGE: u8 = 64;

/// An unusable input or policy, of the commands that read files.
const UNUSABLE: u8 = 2;

/// Runs the program with its command line, the program's name first; by the name `kubectl-cofferdam` it is a plugin of
/// kubectl.
///
/// Exit codes of `serve`: 0 for an orderly end, 64 for bad usage or configuration (said on standard error), 1 for a
/// start that failed or an end that was not orderly (said in the log). Of the other commands: 0, 1 and 3 as
/// `offline::Outcome` says, 2 for bad usage and whatever cannot be read or written.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if plugin::is_called(&arguments) {
        return match plugin::Cli::try_parse_from(&arguments) {
            Ok(cli) => match cli.command {
                PluginCommand::Explain(arguments) => {
                    said(plugin::explain(&arguments, &mut io::stdout().lock()).map(|()| ExitCode::SUCCESS))
                }
                PluginCommand::List(arguments) => {
                    said(plugin::list(&arguments, &mut io::stdout().lock()).map(|()| ExitCode::SUCCESS))
                }
                PluginCommand::Harden(arguments) => harden(arguments),
                PluginCommand::Policy(arguments) => policy(arguments),
            },
            Err(error) => misused(&error, UNUSABLE),
        };
    }
    match Cli::try_parse_from(&arguments) {
        Ok(cli) => match cli.command {
            Command::Serve(arguments) => serve(arguments),
            Command::Harden(arguments) => harden(arguments),
            Command::Policy(arguments) => policy(arguments),
        },
        Err(error) => {
            let is_for_serving = arguments.get(1).is_none_or(|word| word == "serve");
            misused(&error, if is_for_serving { USAGE } else { UNUSABLE })
        }
    }
}

/// Says what was wrong with the command line, or what it asked to be told about itself.
fn misused(error: &clap::Error, code: u8) -> ExitCode {
    // A closed standard error leaves nobody to tell.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(code) } else { ExitCode::SUCCESS }
}

fn harden(arguments: HardenArgs) -> ExitCode {
    let options = arguments.into_options();
    let outcome = offline::run(&options, &mut io::stdout().lock(), &mut io::stderr().lock());
    said(outcome.map(ExitCode::from))
}

fn policy(arguments: PolicyArgs) -> ExitCode {
    said(policy_command::run(arguments, &mut io::stdout().lock()).map(|()| ExitCode::SUCCESS))
}

/// The exit code, after saying on standard error what went wrong.
fn said<E: std::error::Error>(done: Result<ExitCode, E>) -> ExitCode {
    done.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "cofferdam: {}", plain(&with_causes(&error)));
        ExitCode::from(UNUSABLE)
    })
}

fn serve(arguments: ServeArgs) -> ExitCode {
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
    serve::until_stopped(config, stop).await
}

/// What a person may see of a text that anybody may have written: one line, no escape sequences.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}
