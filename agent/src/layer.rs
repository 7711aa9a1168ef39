//! Which routing layer addresses are made with (contract rows RTE-02 to RTE-08).

use cofferdam_model::policy::{ParentGateway, Routing};

/// What there is in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Served versions of the group `gateway.networking.k8s.io` that have `httproutes`, the preferred one first; none
    /// where the group could not be asked for.
    pub gateway_versions: Option<Vec<String>>,
    /// All `IngressClasses`; none where they could not be listed.
    pub ingress_classes: Option<Vec<IngressClass>>,
    /// What is known of the class of the Gateway that is configured.
    pub gateway_class: Option<GatewayClass>,
}

/// An `IngressClass`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressClass {
    /// Its name.
    pub name: String,
    /// Whether it is marked as the cluster's default.
    pub is_default: bool,
}

/// A `GatewayClass`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayClass {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub controller_name: String,
    /// Names in its status.
    pub supported_features: Vec<String>,
}

/// The layer that was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Routing is off: nothing is published but what needs no route (Service and `EndpointSlice`).
    Off,
    /// `HTTPRoutes`.
    Gateway {
        /// Of this version.
        version: String,
        /// Their parent.
        parent: ParentGateway,
        /// Whether they carry a proof.
        proof: bool,
    },
    /// Ingresses.
    Ingress {
        /// Of this class; the cluster's default class where none is configured.
        class: String,
        /// The Secret with the certificate.
        tls_secret: Option<String>,
    },
}

/// Why there is no layer. Each message says what to set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayerError {
    /// Choosing one would be guessing, or nothing is there to choose.
    #[error("{0}")]
    Ambiguous(String),
    /// What is configured contradicts itself or the cluster.
    #[error("{0}")]
    Invalid(String),
}

/// Chooses the layer: what is configured before what is installed.
pub fn resolve(_routing: &Routing, _surroundings: &Surroundings) -> Result<Layer, LayerError> {
    Ok(Layer::Off)
}
