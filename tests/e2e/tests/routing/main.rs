//! Sessions with an address, on one cluster with a real gateway: what disturbs nobody.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod claims;
mod diversions;
mod finished;
mod metrics;
mod objects;
mod programs;
mod reachable;
mod released;
mod shared;
mod slipped;
