//! Benchmarks of the webhook: what a review costs, what a server gives, what a creation waits; and of the agent: how soon
//! it publishes, what it takes, how soon it says that an address works. They report, and decide nothing; how to run them and what came out is in `docs/performance.md`.
//!
//! ```text
//! review    bytes ─▶ Review ─▶ decide ─▶ bytes        in this process: time and allocations, whole and by stage
//! serving   connections ══TLS══▶ webhook │ bare       two processes on one processor, in turns
//! creation  kube client ──▶ API server ──▶ webhook    a real cluster, with and without, in turns
//! agent     pods that nobody runs ──▶ API server ──▶ agent ──▶ a gateway that takes everything
//! address   client ──▶ gateway ──▶ pod ◀── agent      a real cluster: who is the first to see that it works
//! ```
//!
//! Figures of one run are compared with figures of the same run only; what can be said of other machines is a ratio.

pub mod address;
pub mod agent;
pub mod bare;
pub mod connection;
pub mod creation;
pub mod distribution;
pub mod fixture;
pub mod load;
pub mod markdown;
pub mod mutating_policy;
pub mod processor;
pub mod review;
pub mod server;
pub mod serving;
pub mod stages;

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Long enough for figures to keep.
    Full,
    /// Just to see that everything works.
    Smoke,
}

impl Effort {
    /// The one or the other.
    #[must_use]
    pub fn pick<T>(self, full: T, smoke: T) -> T {
        match self {
            Self::Full => full,
            Self::Smoke => smoke,
        }
    }
}
