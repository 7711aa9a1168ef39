//! The API server, as our programs speak to it: raw JSON, errors by class, and watches that hear of everything.
//!
//! ```text
//! Cluster ─┬▶ get, create, apply, delete ─▶ an object, or Failed by Class
//!          └▶ Pages, then a watch (follow) ─▶ Change ─▶ Collected | Lookout
//! ```
//!
//! What an object means, and what is to become of it, its reader knows. Here is how it is asked for, and read ([`json`]): whole,
//! in its metadata, or of one that somebody made too large an outline ([`Bounded`]).

mod backoff;
mod bounded;
mod cluster;
pub mod json;
mod until;
pub mod watch;

pub use backoff::Backoff;
pub use bounded::{Bounded, outline};
pub use cluster::{Class, Cluster, Failed, Page, Pages, Refusal, Resource, Selection, client};
pub use until::until;
