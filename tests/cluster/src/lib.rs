//! A real Kubernetes on a bare machine.

pub mod cache;
pub mod image;
