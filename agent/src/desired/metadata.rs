//! What all objects of a session say of themselves: whose they are.

use std::fmt::Write as _;

use cofferdam_model::keys;
use cofferdam_model::session::SessionId;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::session::Session;

/// Bytes of a node's hash: 48 bits, so nodes of one cluster do not meet by chance.
const HASH_BYTES: usize = 6;

/// Whose objects are made.
pub(super) struct Whose<'a> {
    pub(super) session: &'a Session,
    pub(super) id: &'a SessionId,
    pub(super) node: &'a str,
}

impl Whose<'_> {
    /// The metadata of the object of that name. The pod owns it, so that it goes with the pod. It is no controller, and
    /// blocks no deletion: that would need the right to update the pod's finalizers where the API server checks it (defect
    /// D19).
    pub(super) fn metadata(&self, name: &str) -> Value {
        json!({
            "name": name,
            "namespace": self.session.namespace,
            "labels": {
                keys::SESSION: self.id.as_str(),
                keys::MANAGED_BY: keys::AGENT,
                keys::NODE_HASH: node_hash(self.node),
            },
            "annotations": { keys::NODE: self.node },
            "ownerReferences": [
                { "apiVersion": "v1", "kind": "Pod", "name": self.session.name, "uid": self.session.uid },
            ],
        })
    }
}

/// The value of the label [`keys::NODE_HASH`]: 12 hex digits of the SHA-256 of a node's name, which may itself be too long
/// for a label.
#[must_use]
pub(crate) fn node_hash(node: &str) -> String {
    let mut hash = String::new();
    for byte in Sha256::digest(node.as_bytes()).iter().take(HASH_BYTES) {
        // Writing to a string cannot fail.
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}
