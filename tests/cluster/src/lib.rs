//! A real Kubernetes on a bare machine.

pub mod addon;
mod api;
pub mod build_programs;
pub mod cache;
mod cgroup;
pub mod cli;
pub mod cluster;
pub mod containerfile;
mod control_plane;
pub mod debian;
pub mod error;
pub mod gate;
mod hold;
pub mod image;
mod init;
pub mod inside;
mod load_balancer;
mod network;
mod node;
mod node_spec;
pub mod own_images;
pub mod packages;
pub mod parts;
pub mod paths;
mod pki;
pub mod programs;
pub mod progress;
