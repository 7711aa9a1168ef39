//! Serving HTTP/1.1, plain or over TLS, to clients that may be slow, broken or hostile.
//!
//! * [`bind()`]: taking a port;
//! * [`server`]: the accept loop, its phases and its end;
//! * [`limits`]: every bound, with the reason for its number;
//! * [`body`] and [`budget`]: reading a request body without ever holding more than was granted;
//! * [`reply`]: building answers, whole or made while they are sent, and [`upgrade`]: what follows when they switch to
//!   another protocol;
//! * [`counts`]: what a listener counts.
//!
//! HTTP/2 is not offered. A client that multiplexes everything over one connection stays with one replica, even a dead
//! one, until that connection times out; the API server itself went back to HTTP/1.1 for webhooks.

mod bind;
pub mod body;
pub mod budget;
mod connection;
pub mod counts;
pub mod limits;
mod places;
pub mod reply;
pub mod server;
mod timed;
pub mod upgrade;

pub use bind::{BindError, bind};
pub use body::{Body, BodyError};
pub use budget::Budget;
pub use counts::{Counts, ListenerCounts};
pub use limits::Limits;
pub use reply::{Outgoing, Reply};
pub use server::{Drained, Phases, Server};
pub use upgrade::Upgraded;
