//! How a process of ours lives: logs, stop, readiness, metrics, and serving HTTP.
//!
//! No word of the domain occurs here; nothing in this crate knows what a pod is.
//!
//! ```text
//!            first signal                drain delay over            deadline over
//!  serving ───────────────▶ retiring ─────────────────────▶ closing ───────────────▶ cut off
//!  ready                    unready, answers say            no new connections,
//!                           "connection: close"             requests are finished
//! ```
//!
//! * [`logs`]: one subscriber, JSON or text, on standard error.
//! * [`stop`]: the first signal drains, the second aborts.
//! * [`ready`]: named gates; ready when none is left.
//! * [`metrics`]: the registry, and who we are (`build_info`).
//! * [`panics`]: a panic's place is logged, never what it said.
//! * [`http`]: the accept loop, its bounds, request bodies, replies.
//! * [`admin`]: `/livez`, `/readyz`, `/metrics`.
//! * [`drain`]: the end, in that order.
//! * [`duration`]: `5s` on a command line.
//! * [`errors`]: an error and its causes on one line.

pub mod admin;
pub mod drain;
pub mod duration;
pub mod errors;
pub mod http;
pub mod logs;
pub mod metrics;
pub mod panics;
pub mod ready;
pub mod stop;
