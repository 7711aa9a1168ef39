//! Pods that disturb nobody, on one cluster: what is admitted, and what the process in the container really has.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod agent_rights;
mod as_said;
mod body;
mod controllers;
mod debugging;
mod fs_group;
#[path = "../loosened/loosened.rs"]
#[expect(dead_code, reason = "what only the tests of the admission policies ask for")]
mod loosened;
mod manifests;
mod scratch;
mod session;
mod software;
mod telling;
mod updates;
