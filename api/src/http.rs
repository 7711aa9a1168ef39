//! The port that clients use.
//!
//! ```text
//! request ─▶ router ─▶ origin ─▶ access ─▶ body ─▶ route ─▶ reply
//!               │         │         │        │       │
//!               └─────────┴─ refusal┴────────┴───────┘
//! ```
//!
//! * [`service`]: a request, from its head to its answer; [`router`]: which route it is for; [`call`]: what a route gets;
//! * [`origin`]: which pages may use the service; [`access`] and [`tokens`]: who may call;
//! * [`body`]: reading what was sent: a [`document`], checked and corrected by [`validation`];
//! * [`turns`]: how much is begun at a time; [`refusal`]: every answer that is no success;
//! * [`events`]: a stream of events; [`websocket`] and [`byte_channel`]: a terminal;
//! * [`openapi`]: what all of it looks like.

pub mod access;
pub mod body;
pub mod byte_channel;
pub mod call;
pub mod document;
pub mod events;
pub mod openapi;
pub mod origin;
pub mod refusal;
pub mod router;
pub mod service;
#[cfg(test)]
mod testing;
pub mod tokens;
pub mod turns;
pub mod validation;
pub mod websocket;
