//! The API server, as clients get to know of it.
//!
//! * [`Home`]: where sessions are;
//! * [`tell`]: what a client is told when the API server fails or refuses: one of a closed set of sentences (lesson L04);
//! * [`user_of`], [`is_allowed`]: what it says of callers.

mod home;
mod reviews;
mod told;

pub use home::Home;
pub use reviews::{PodAccess, User, is_allowed, user_of};
pub use told::{Trouble, tell, tell_unhardened};
