//! The kinds by which the Prometheus operator is told what to ask and which rules to evaluate, without the operator: so
//! the API server judges our manifests by their schema.

use super::manifests::Manifests;
use super::{Addon, AddonError, Installation, Ready, Workbench};
use crate::parts;

/// The kinds `PodMonitor` and `PrometheusRule`.
pub const PROMETHEUS_OPERATOR_CRDS: Addon = Addon { name: "prometheus-operator-crds", prepare };

const KINDS: Manifests = Manifests {
    part: parts::PROMETHEUS_OPERATOR,
    paths: &[
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ],
    edits: &[],
};

/// One of each.
const EMPTY: &str = "
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata: {name: ready, namespace: default}
spec: {selector: {}}
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: ready, namespace: default}
spec: {groups: []}
";

fn prepare(workbench: &Workbench) -> Result<Installation, AddonError> {
    Ok(Installation {
        images: Vec::new(),
        manifests: vec![KINDS.read(workbench)?],
        ready: vec![Ready::Accepted { what: "the kinds are served", manifest: EMPTY }],
    })
}
