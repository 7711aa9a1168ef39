//! The policy, where a program finds it: the file that is mounted, read at the start and again whenever it changes.
//!
//! * [`source`]: where it is, and what the file does not say;
//! * [`reload`]: a good change is taken up, a bad one keeps the last good policy;
//! * [`metrics`]: what is counted of it.

pub mod metrics;
pub mod reload;
pub mod source;

pub use metrics::PolicyMetrics;
pub use reload::{Outcome, Reloader};
pub use source::{Installation, PolicyFileError, PolicySource};
