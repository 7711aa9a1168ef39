//! A real Kubernetes on a bare machine.

pub mod cache;
pub mod containerfile;
pub mod image;
