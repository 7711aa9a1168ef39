//! CoreDNS: names of Services and pods. Every cluster has it.

use super::{Addon, AddonError, Installation, Ready, Workbench};
use crate::parts;

/// The cluster's DNS, as Service `kube-dns` in `kube-system`.
pub const COREDNS: Addon = Addon { name: "CoreDNS", prepare };

fn prepare(workbench: &Workbench) -> Result<Installation, AddonError> {
    Ok(Installation {
        images: vec![workbench.image("cofferdam.test/coredns:1", &parts::COREDNS, "coredns", &[])?],
        manifests: vec![include_str!("../../addons/coredns.yaml").to_owned()],
        ready: vec![Ready::Condition {
            namespace: "kube-system",
            object: "deployment/coredns",
            condition: "Available",
        }],
    })
}
