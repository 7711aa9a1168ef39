//! Pods that disturb nobody, on one cluster: what is admitted, and what the process in the container really has.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod admission;
mod controllers;
mod fs_group;
mod manifests;
mod session;
mod software;
