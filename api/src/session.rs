//! One session: what is told of it.
//!
//! * [`hub`], [`ring`]: what was told, for whoever listens and for whoever comes back.

pub mod hub;
pub mod ring;
