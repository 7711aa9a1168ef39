//! The API: HTTP requests become **bare** pods, and what the cluster says of them becomes events and terminal bytes.
//!
//! It holds no truth of its own: a session is its pod and its Secret, and the API may be restarted under it.
//!
//! * [`wire`]: what clients send and get;
//! * [`cluster`]: the API server, as clients get to know of it;
//! * [`session`]: one session, from a request to events.

pub mod cluster;
pub mod session;
pub mod wire;
