//! Where pods may run, as it is written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::Given;

/// Where pods may run.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Scheduling")]
pub(in crate::policy) struct SchedulingFile {
    /// Runtime classes that a pod may name. Any other is refused.
    pub(in crate::policy) runtime_classes: Option<Vec<RuntimeClassFile>>,
    /// What a pod gets that names no runtime class.
    pub(in crate::policy) runtime_class: Option<Given<RuntimeClassChoice>>,
    /// Schedulers that a pod may name besides default-scheduler. Any other is refused.
    pub(in crate::policy) scheduler_names: Option<Vec<Given<String>>>,
    /// Put into every pod.
    pub(in crate::policy) node_selector: Option<BTreeMap<Given<String>, Given<String>>>,
    /// Labels of nodes that a pod may choose by, in a node selector or node affinity. Any other is refused.
    pub(in crate::policy) node_labels: Option<Vec<Given<String>>>,
    /// Put into every pod.
    pub(in crate::policy) tolerations: Option<Vec<Given<TolerationFile>>>,
    /// Tolerations that a pod may bring besides; a key, value or effect that is left out means any. Others are removed,
    /// with a warning.
    pub(in crate::policy) allowed_tolerations: Option<Vec<Given<TolerationFile>>>,
    /// Names of Secrets that are put into every pod's `imagePullSecrets`, beside its own.
    pub(in crate::policy) image_pull_secrets: Option<Vec<Given<String>>>,
    /// The most that a pod's resolved `priority` may be. Above it, the pod is refused.
    #[schemars(range(min = -2_147_483_648, max = 2_147_483_647))]
    pub(in crate::policy) max_priority: Option<Given<i64>>,
}

/// What a pod gets that names no runtime class.
#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::policy) enum RuntimeClassChoice {
    /// None.
    Leave,
    /// The first of `runtimeClasses`.
    Inject,
}

/// A runtime class, and what its own `scheduling` puts into pods before a webhook sees them.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "RuntimeClass")]
pub(in crate::policy) struct RuntimeClassFile {
    /// Its name.
    pub(in crate::policy) name: Given<String>,
    /// Its `scheduling.nodeSelector`.
    pub(in crate::policy) node_selector: Option<BTreeMap<Given<String>, Given<String>>>,
    /// Its `scheduling.tolerations`.
    pub(in crate::policy) tolerations: Option<Vec<Given<TolerationFile>>>,
}

/// A toleration, as in a pod.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Toleration")]
pub(in crate::policy) struct TolerationFile {
    /// The taint's key. Without one, every taint; `operator` is Exists then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::policy) key: Option<Given<String>>,
    /// `Equal` if it is left out.
    pub(in crate::policy) operator: Option<Operator>,
    /// The taint's value, for Equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::policy) value: Option<Given<String>>,
    /// The taint's effect. Without one, every effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::policy) effect: Option<TaintEffect>,
}

/// How a toleration compares.
#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub(in crate::policy) enum Operator {
    /// The taint has this value.
    Equal,
    /// The taint is there.
    Exists,
}

/// What a taint does.
#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
pub(in crate::policy) enum TaintEffect {
    /// Nothing is placed there.
    NoSchedule,
    /// Nothing is placed there if there is another node.
    PreferNoSchedule,
    /// What runs there is evicted.
    NoExecute,
}

impl TaintEffect {
    /// The effect of that name.
    pub(in crate::policy) fn of(name: &str) -> Option<Self> {
        [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute].into_iter().find(|effect| effect.name() == name)
    }

    /// Its name in Kubernetes.
    pub(in crate::policy) fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}
