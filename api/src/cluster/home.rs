//! Where sessions are.

use cofferdam_kubernetes::{Cluster, Resource, Selection};
use cofferdam_model::keys;

/// The namespace of sessions, and the way to it. Clones share the way.
#[derive(Clone, Debug)]
pub struct Home {
    /// The way to the API server.
    pub cluster: Cluster,
    /// The namespace.
    pub namespace: String,
}

impl Home {
    /// Pods, as they are watched.
    #[must_use]
    pub fn pods() -> Resource {
        Resource::core("pods").small()
    }

    /// Secrets, of which nothing but the metadata is ever sent to us: what they hold is for the session alone.
    #[must_use]
    pub fn secrets() -> Resource {
        Resource::core("secrets").metadata()
    }

    /// Where pods are asked for.
    pub(crate) fn pods_path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    /// What we made there.
    #[must_use]
    pub fn ours(&self) -> Selection {
        Selection {
            namespace: Some(self.namespace.clone()),
            labels: format!("{}={}", keys::MANAGED_BY, keys::API),
            fields: String::new(),
        }
    }
}
