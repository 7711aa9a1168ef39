//! The node agent: it publishes the routes of the sessions on its node, says whether they work, and tells Prometheus.
//!
//! ```text
//! pods of the node ──▶ Session ─┬▶ desired ─┐
//! our objects ───────▶ Live ────┼───────────┴▶ plan ─▶ steps ─▶ apply
//! route and Gateway status ─────┼▶ verdict ─┐
//! probes ───────────────────────┴───────────┴▶ report ─▶ one patch of pods/status, Events
//! ```
//!
//! What decides is pure: [`session`], [`layer`], [`desired`](mod@desired), [`plan`](mod@plan), [`verdict`],
//! [`report`]. What does is thin.

use std::ffi::OsString;
use std::process::ExitCode;

pub mod desired;
pub mod elected;
pub mod layer;
pub mod objects;
pub mod plan;
pub mod probe;
pub mod report;
pub mod session;
pub mod verdict;

/// Runs the program with its command line, the program's name first.
pub fn run(_arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    ExitCode::FAILURE
}
