//! Where sessions are.

use cofferdam_kubernetes::{Cluster, Failed, Resource, Selection, json};
use cofferdam_model::keys;
use serde_json::Value;

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

    /// Whether a pod could be made now; none is. Gives it as it would be made.
    ///
    /// # Errors
    /// With what a creation would fail by.
    pub async fn try_pod(&self, pod: &Value) -> Result<Value, Failed> {
        self.cluster.try_out(&Self::pods(), &self.namespace, pod).await
    }

    /// Whether a pod, as the API server took it, was hardened: the webhook notes that it was asked. It is not in a namespace
    /// that nobody has labelled, or where its configuration is gone (case B36).
    #[must_use]
    pub fn is_hardened(pod: &Value) -> bool {
        json::annotation(pod, keys::HARDENED).is_some()
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
