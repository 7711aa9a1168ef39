//! The kinds of the Gateway API, standard channel, without anybody who serves them.

use super::manifests::Manifests;
use super::{Addon, AddonError, Installation, Workbench};
use crate::parts;

/// The kinds alone: for whoever stands in for a gateway.
pub const GATEWAY_API: Addon = Addon { name: "gateway-api", prepare };

/// They come from the Gateway API's own module.
pub(super) const KINDS: Manifests = Manifests { part: parts::GATEWAY_API, paths: &["config/crd/standard"], edits: &[] };

fn prepare(workbench: &Workbench) -> Result<Installation, AddonError> {
    Ok(Installation { images: Vec::new(), manifests: vec![KINDS.read(workbench)?], ready: Vec::new() })
}
