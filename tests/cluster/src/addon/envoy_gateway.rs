//! Envoy Gateway: the Gateway API, standard channel, with the class `envoy`.
//!
//! The CRDs come from the Gateway API's own module, the rest from Envoy Gateway's chart. What is routed by the Gateway
//! `sessions` in the namespace `gateway` is served at an address of the cluster's load balancer, which stands in the
//! Gateway's status; its listeners are `http` (80) and `https` (443, with a certificate of its own authority, in the
//! Secret `sessions-tls`).

use super::chart::Chart;
use super::manifests::Manifests;
use super::workload::Workload;
use super::{Addon, AddonError, Installation, Ready, Workbench, envoy, gateway, gateway_api};
use crate::parts;

/// Envoy Gateway, in the namespace `envoy-gateway-system`, and the Gateway `gateway/sessions`.
pub const ENVOY_GATEWAY: Addon = Addon { name: "envoy-gateway", prepare };

/// Where Envoy Gateway and its data planes run.
pub const NAMESPACE: &str = "envoy-gateway-system";

/// What reads routes and programs the data plane. Without it the data plane goes on with what it knows.
pub const CONTROL_PLANE: Workload = Workload { namespace: NAMESPACE, selector: "control-plane=envoy-gateway" };

/// The proxy of the Gateway `gateway/sessions`.
pub const DATA_PLANE: Workload = Workload {
    namespace: NAMESPACE,
    selector: "gateway.envoyproxy.io/owning-gateway-name=sessions,\
               gateway.envoyproxy.io/owning-gateway-namespace=gateway",
};

const OWN_KINDS: Manifests =
    Manifests { part: parts::ENVOY_GATEWAY, paths: &["charts/gateway-helm/charts/crds/crds/generated"], edits: &[] };

const VALUES: &str = include_str!("../../addons/envoy-gateway/values.yaml");

fn prepare(workbench: &Workbench) -> Result<Installation, AddonError> {
    let version = parts::ENVOY_GATEWAY.version()?;
    let reference = format!("cofferdam.test/envoy-gateway:v{version}");
    let chart = Chart {
        name: "eg",
        part: parts::ENVOY_GATEWAY,
        folder: "charts/gateway-helm",
        namespace: NAMESPACE,
        values: &VALUES.replace("{version}", &version),
    };
    Ok(Installation {
        images: vec![
            workbench.image(&reference, &parts::ENVOY_GATEWAY, "envoy-gateway", &[])?,
            envoy::image(workbench)?,
        ],
        manifests: vec![
            gateway_api::KINDS.read(workbench)?,
            OWN_KINDS.read(workbench)?,
            format!(
                "{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}\n---\n{}",
                gateway::namespace()?
            ),
            chart.render(workbench)?,
            include_str!("../../addons/envoy-gateway/class.yaml").replace("{envoy}", envoy::version()),
            gateway::manifest("envoy"),
        ],
        ready: vec![
            Ready::Condition { namespace: NAMESPACE, object: "deployment/envoy-gateway", condition: "Available" },
            gateway::PROGRAMMED,
        ],
    })
}
