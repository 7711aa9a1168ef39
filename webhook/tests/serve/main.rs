//! The program itself, as a process on loopback: what it answers, what it survives, how it starts and how it ends.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails in a helper fails the test")]

mod certificates;
mod client;
mod drain;
mod hostile;
mod policy;
mod program;
mod secrets;
mod start;
