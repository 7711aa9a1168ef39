//! The API on a real cluster, as its manifests install it: one cluster for all tests.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod client;
mod debug;
mod disturbed;
mod docs;
mod faults;
mod installed;
mod isolation;
mod load;
mod openapi;
mod refusals;
mod sessions;
mod streams;
