//! Tests that disturb what they stand on. Each group starts a cluster of its own and ends it; groups run side by side.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod admission_policies;
mod certificate_renewal;
mod demo_on_current;
mod demo_on_own;
mod policy_reload;
mod webhook_faults;
