//! What `kubectl kustomize` makes of `manifests/`, judged without a cluster.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test that called them")]

mod agent;
mod agreement;
mod entries;
mod examples;
mod monitoring;
mod names;
mod objects;
mod permissions;
mod pods;
mod policies;
