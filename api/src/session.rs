//! One session: what is kept of it, what is made for it, and what is told of it.
//!
//! ```text
//! wire::CreateSession ─▶ record, pod ─▶ cluster ─▶ state ─▶ story ─▶ wire::Event ─▶ hub ─▶ streams of events
//!                                          terminal bytes ────────────────────────▶ hub ─▶ byte channels
//! ```
//!
//! * [`record`], [`pod`]: its Secret and its pod, from what was asked for;
//! * [`state`], [`story`]: how far it is, by its pod; and what of that is to be told now;
//! * [`start`], [`stop`], [`sweep`]: what is done in the cluster, by [`marks`] on its [`secret`] too; [`informer`]: what is seen
//!   of it there; [`terminal`], [`inspector`]: its program's;
//! * [`hub`], [`ring`]: what was told, for whoever listens and for whoever comes back;
//! * [`retention`]: how many sessions are kept, and for how long.

pub mod hub;
pub mod informer;
pub mod inspector;
pub mod marks;
pub mod pod;
pub mod record;
pub mod retention;
pub mod ring;
pub mod secret;
pub mod start;
pub mod state;
pub mod stop;
pub mod story;
pub mod sweep;
pub mod terminal;
#[cfg(test)]
pub(crate) mod testing;
