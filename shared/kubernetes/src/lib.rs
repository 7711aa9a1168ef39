//! The API server, as our programs speak to it: raw JSON, errors by class, and watches that hear of everything.
//!
//! ```text
//! Cluster ─┬▶ get, create, apply, delete ─▶ an object, or Failed by Class
//!          └▶ Pages, then a watch (follow) ─▶ Change ─▶ Collected | Lookout
//! ```
//!
//! What an object is of, and what is made of it, its reader knows. This room knows how objects are asked for, told apart where
//! they are too large ([`Bounded`]), and read ([`json`]).

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
