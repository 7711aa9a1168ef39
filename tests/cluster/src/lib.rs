//! A real Kubernetes on a bare machine.

pub mod cache;
pub mod containerfile;
pub mod image;
pub mod packages;
pub mod parts;
pub mod progress;
