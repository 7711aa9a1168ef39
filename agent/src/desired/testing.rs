//! Sessions and layers for tests.

use cofferdam_model::policy::{ParentGateway, Routing};
use cofferdam_model::ports::Ports;
use cofferdam_model::session::SessionId;

use super::{Proof, Wanted, desired};
use crate::layer::Layer;
use crate::session::{Phase, Session, Told};

/// The node of all tests.
pub(crate) const NODE: &str = "node-1";

/// A hardened, running session `2abc` at 10.244.1.2.
pub(crate) fn session(ports: &str) -> Session {
    Session {
        namespace: "sess".to_owned(),
        name: "run-2abc".to_owned(),
        uid: "pod-uid".to_owned(),
        id: SessionId::parse("2abc").ok(),
        ports: Ports::parse(ports),
        address: Some([10, 244, 1, 2].into()),
        phase: Phase::Running,
        findings: Vec::new(),
        profile: "default".to_owned(),
        is_controlled: false,
        finished_grace_seconds: None,
        told: Told::default(),
    }
}

/// Routing that is on, with `sess` a home.
pub(crate) fn routing() -> Routing {
    Routing {
        base_domain: Some("sessions.example.test".to_owned()),
        home_namespace: Some("sess".to_owned()),
        ..Routing::default()
    }
}

/// `HTTPRoutes` for the Gateway `sessions` in namespace `gateway`.
pub(crate) fn gateway(proof: bool) -> Layer {
    let parent = ParentGateway { name: "sessions".to_owned(), namespace: "gateway".to_owned(), listener: None };
    Layer::Gateway { version: "v1".to_owned(), parent, proof }
}

/// Ingresses of class `contour`.
pub(crate) fn ingress() -> Layer {
    Layer::Ingress { class: "contour".to_owned(), tls_secret: None }
}

/// A proof that tells its port.
pub(crate) fn proof(port: u16) -> Proof {
    Proof { probe: format!("probe-{port}"), proof: format!("proof-{port}") }
}

/// What the session ought to have.
pub(crate) fn objects(session: &Session, layer: &Layer) -> Vec<Wanted> {
    let ports = session.ports.clone().unwrap_or_default();
    desired(session, &ports, layer, &routing(), NODE, &proof)
}
