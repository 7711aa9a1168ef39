//! The API server, as clients get to know of it.
//!
//! * [`tell`]: what a client is told when it fails or refuses: one of a closed set of sentences (lesson L04).

mod told;

pub use told::{Trouble, tell};
