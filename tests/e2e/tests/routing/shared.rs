//! The cluster that all tests of this program share: two nodes, Envoy Gateway, and Cofferdam with routing on.

use std::sync::OnceLock;

use cofferdam_cluster::addon::ENVOY_GATEWAY;
use cofferdam_e2e::namespace::{Sessions, TestNamespace};
use cofferdam_e2e::routing::{Door, ENVOY_GATEWAY_NETWORK, policy, through_gateway};
use cofferdam_e2e::stage::{Setup, Stage};

/// The cluster.
pub(crate) fn stage() -> &'static Stage {
    static SHARED: OnceLock<Stage> = OnceLock::new();
    SHARED.get_or_init(|| {
        let policy = policy(&through_gateway(), ENVOY_GATEWAY_NETWORK);
        let setup =
            Setup { name: "e2e-routing", nodes: 2, addons: &[ENVOY_GATEWAY], policy: &policy, not_ready_after: None };
        Stage::set_up(&setup).unwrap()
    })
}

/// Its gateway.
pub(crate) fn door() -> Door {
    static SHARED: OnceLock<Door> = OnceLock::new();
    *SHARED.get_or_init(|| Door::of_gateway(stage()).unwrap())
}

/// A namespace in which every pod is a session.
pub(crate) fn sessions(name: &str) -> TestNamespace {
    stage().namespace(name, Sessions::Enforced)
}
