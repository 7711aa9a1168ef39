//! The commands that need no cluster, as they are typed: what goes in, what comes out, and the exit code.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod documents;
mod harden;
mod plugin;
mod policy;
mod program;
mod review;
