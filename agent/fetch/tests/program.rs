//! The real program against a server that has its moods.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "program/answers.rs"]
mod answers;
mod archive;
#[path = "program/fetch.rs"]
mod fetch;
#[path = "program/secrets.rs"]
mod secrets;
#[path = "program/server.rs"]
mod server;
#[path = "program/tree.rs"]
mod tree;
