//! The API server, as clients get to know of it.
//!
//! * [`Home`]: where sessions are;
//! * [`tell`]: what a client is told when the API server fails or refuses: one of a closed set of sentences (lesson L04).

mod home;
mod told;

pub use home::Home;
pub use told::{Trouble, tell};
