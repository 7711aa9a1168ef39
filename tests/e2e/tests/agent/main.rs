//! The node agent on real clusters, where something is broken on purpose. Each group starts a cluster of its own and ends
//! it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod gateways;
mod history;
mod isolation;
mod layers;
mod many;
mod namespaced;
mod nodes;
mod permissions;
mod placed;
mod restarts;
mod session;
