//! The port that clients use.
//!
//! ```text
//! request ─▶ router ─▶ origin ─▶ access ─▶ body ─▶ route ─▶ reply
//!               │         │         │        │       │
//!               └─────────┴─ refusal┴────────┴───────┘
//! ```
//!
//! * [`service`]: a request, from its head to its answer; [`router`]: which route it is for; [`call`]: what a route gets;
//! * [`origin`]: which pages may use the service; [`access`]: who may call, by [`tokens`] or by a [`reviewer`] with its [`verdicts`];
//! * [`body`]: reading what was sent: a [`document`], checked and corrected by [`validation`];
//! * [`turns`]: how much is begun at a time; [`refusal`]: every answer that is no success;
//! * [`events`]: a stream of events; [`websocket`] and [`byte_channel`]: a terminal;
//! * [`openapi`]: what all of it looks like.

use std::time::Duration;

pub mod access;
pub mod body;
pub mod byte_channel;
pub mod call;
pub mod document;
pub mod events;
pub mod openapi;
pub mod origin;
pub mod refusal;
pub mod reviewer;
pub mod router;
pub mod service;
#[cfg(test)]
mod testing;
pub mod tokens;
pub mod turns;
pub mod validation;
pub mod verdicts;
pub mod websocket;

/// How long nothing happens on a stream before there is a sign of life: a comment among events, a ping on a socket.
const QUIET: Duration = Duration::from_secs(20);

/// About how much of a stream is sent at once.
const BATCH_BYTES: usize = 32 * 1024;
