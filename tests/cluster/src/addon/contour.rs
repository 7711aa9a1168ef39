//! Contour with Envoy: Ingress, or the Gateway API as it was at version 1.3, experimental channel.
//!
//! The manifests are its own examples. Neither is anybody's default, and Envoy takes no port of a node: both add-ons give
//! its Service an address of the cluster's load balancer.

use super::manifests::Manifests;
use super::workload::Workload;
use super::{Addon, AddonError, Installation, Ready, Workbench, envoy, gateway};
use crate::parts;

/// Contour as Ingress controller, in the namespace `projectcontour`, and the `IngressClass` `contour`. Runs beside
/// [`ENVOY_GATEWAY`](super::ENVOY_GATEWAY).
pub const CONTOUR: Addon = Addon { name: "contour", prepare: prepare_ingress };

/// Contour for the Gateway `gateway/sessions` of class `contour`. On a cluster of its own: its Gateway API is older than
/// [`ENVOY_GATEWAY`](super::ENVOY_GATEWAY)'s, and the newer one forbids to go back.
pub const CONTOUR_GATEWAY: Addon = Addon { name: "contour-gateway", prepare: prepare_gateway };

/// Where Contour and its data plane run.
pub const NAMESPACE: &str = "projectcontour";

/// What reads routes and programs the data plane. Without it the data plane goes on with what it knows.
pub const CONTROL_PLANE: Workload = Workload { namespace: NAMESPACE, selector: "app=contour" };

/// The proxy.
pub const DATA_PLANE: Workload = Workload { namespace: NAMESPACE, selector: "app=envoy" };

/// Its namespace and its own kinds, which it wants even if nobody uses them.
const BASE: Manifests = Manifests {
    part: parts::CONTOUR,
    paths: &["examples/contour/00-common.yaml", "examples/contour/01-crds.yaml"],
    edits: &[],
};

/// The Gateway API as this version of Contour wants it.
const GATEWAY_API: Manifests =
    Manifests { part: parts::CONTOUR, paths: &["examples/gateway/00-crds.yaml"], edits: &[] };

const CONFIGURATION: Manifests =
    Manifests { part: parts::CONTOUR, paths: &["examples/contour/01-contour-config.yaml"], edits: &[] };

const CONTROLLER: Manifests = Manifests {
    part: parts::CONTOUR,
    paths: &[
        "examples/contour/02-job-certgen.yaml",
        "examples/contour/02-rbac.yaml",
        "examples/contour/02-role-contour.yaml",
        "examples/contour/02-service-contour.yaml",
        "examples/contour/02-service-envoy.yaml",
        "examples/contour/03-contour.yaml",
        "examples/deployment/03-envoy-deployment.yaml",
    ],
    edits: &[
        ("ghcr.io/projectcontour/contour:v{version}", "cofferdam.test/contour:v{version}"),
        ("docker.io/envoyproxy/envoy:distroless-v1.38.9", "cofferdam.test/envoy:pinned"),
        ("  replicas: 2\n", "  replicas: 1\n"),
        ("        - --config-path=", "        - --ingress-class-name=contour\n        - --config-path="),
        // Nobody is there whose requests have to be waited for.
        ("terminationGracePeriodSeconds: 300", "terminationGracePeriodSeconds: 1"),
        // A port of a node is another's as well.
        ("              hostPort: 80\n", ""),
        ("              hostPort: 443\n", ""),
        // From every node, wherever the proxy runs.
        ("externalTrafficPolicy: Local", "externalTrafficPolicy: Cluster"),
        // Ready as soon as it serves.
        ("            initialDelaySeconds: 3\n            periodSeconds: 4\n", "            periodSeconds: 1\n"),
        ("          periodSeconds: 10\n", "          periodSeconds: 1\n"),
    ],
};

fn prepare_ingress(workbench: &Workbench) -> Result<Installation, AddonError> {
    let class = include_str!("../../addons/contour/ingress.yaml").to_owned();
    Ok(Installation {
        images: images(workbench)?,
        manifests: vec![BASE.read(workbench)?, CONFIGURATION.read(workbench)?, controller(workbench)?, class],
        ready: vec![CONTOUR_AVAILABLE, ENVOY_AVAILABLE],
    })
}

fn prepare_gateway(workbench: &Workbench) -> Result<Installation, AddonError> {
    Ok(Installation {
        images: images(workbench)?,
        manifests: vec![
            GATEWAY_API.read(workbench)?,
            BASE.read(workbench)?,
            gateway::namespace()?,
            include_str!("../../addons/contour/gateway.yaml").to_owned(),
            controller(workbench)?,
            gateway::manifest("contour"),
        ],
        ready: vec![CONTOUR_AVAILABLE, ENVOY_AVAILABLE, gateway::PROGRAMMED],
    })
}

const CONTOUR_AVAILABLE: Ready =
    Ready::Condition { namespace: NAMESPACE, object: "deployment/contour", condition: "Available" };

const ENVOY_AVAILABLE: Ready =
    Ready::Condition { namespace: NAMESPACE, object: "deployment/envoy", condition: "Available" };

fn images(workbench: &Workbench) -> Result<Vec<std::path::PathBuf>, AddonError> {
    let reference = format!("cofferdam.test/contour:v{}", parts::CONTOUR.version()?);
    Ok(vec![workbench.image(&reference, &parts::CONTOUR, "contour", &[])?, envoy::image(workbench)?])
}

fn controller(workbench: &Workbench) -> Result<String, AddonError> {
    let manifests = CONTROLLER.read(workbench)?;
    Ok(manifests.replace("cofferdam.test/envoy:pinned", &format!("cofferdam.test/envoy:{}", envoy::version())))
}
