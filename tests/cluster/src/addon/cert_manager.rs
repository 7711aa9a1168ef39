//! cert-manager: controller, CA injector and webhook, with its real CRDs, RBAC and both webhook configurations.
//!
//! All of it but the programs' main functions is cert-manager's own: the chart and the CRDs lie in its Go module.

use super::chart::Chart;
use super::{Addon, AddonError, Installation, Ready, Workbench};
use crate::parts;

/// cert-manager, in the namespace `cert-manager`, with issuers of the kinds CA and self-signed.
pub const CERT_MANAGER: Addon = Addon { name: "cert-manager", prepare };

const NAMESPACE: &str = "cert-manager";

const CHART: Chart<'static> = Chart {
    name: "cert-manager",
    part: parts::CERT_MANAGER,
    folder: "deploy/charts/cert-manager",
    namespace: NAMESPACE,
    values: include_str!("../../addons/cert-manager/values.yaml"),
};

/// The image names that the chart makes of the values, and the program that each stands for.
const IMAGES: [(&str, &str); 3] = [
    ("cofferdam.test/cert-manager/cert-manager-controller", "controller"),
    ("cofferdam.test/cert-manager/cert-manager-cainjector", "cainjector"),
    ("cofferdam.test/cert-manager/cert-manager-webhook", "webhook"),
];

const ISSUER: &str = "
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: ready, namespace: cert-manager}
spec: {selfSigned: {}}
";

fn prepare(workbench: &Workbench) -> Result<Installation, AddonError> {
    let version = parts::CERT_MANAGER.version()?;
    let image = |(name, program): (&str, &str)| {
        workbench.image(&format!("{name}:v{version}"), &parts::CERT_MANAGER, "launcher", &[program])
    };
    let available = |object| Ready::Condition { namespace: NAMESPACE, object, condition: "Available" };
    Ok(Installation {
        images: IMAGES.into_iter().map(image).collect::<Result<_, _>>()?,
        manifests: vec![
            format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {NAMESPACE}}}}}"),
            CHART.render(workbench)?,
        ],
        ready: vec![
            available("deployment/cert-manager"),
            available("deployment/cert-manager-cainjector"),
            available("deployment/cert-manager-webhook"),
            // The webhook's certificate is its own, and only with the injected CA does the API server believe it.
            Ready::Accepted { what: "an Issuer is accepted", manifest: ISSUER },
        ],
    })
}
