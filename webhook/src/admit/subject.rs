//! What a review is about, as far as it is any business of ours.

use cofferdam_model::{Operation, Scope};
use serde_json::Value;

use super::entry::{Entry, Webhook};
use crate::review::{Resource, Review};
use crate::workload::{VERSION, Workload};

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A pod is created.
    Creation,
    /// A pod gets containers for debugging.
    EphemeralContainers,
    /// A pod is changed: its resources, or what else an update may change.
    Update,
    /// A workload is created or changed. Its pods come later, and warnings about them would reach nobody but its
    /// controller.
    Workload(&'static Workload),
}

impl Subject {
    /// What a review that came in by `entry` is about; `None` for what no entry is registered for.
    #[must_use]
    pub fn of(entry: Entry, review: &Review<'_>) -> Option<Self> {
        let Resource { group, version, resource } = &review.resource;
        if version != VERSION {
            return None;
        }
        let (operation, part) = (review.operation.as_str(), review.sub_resource.as_str());
        match (entry.webhook, group.as_str(), resource.as_str(), part, operation) {
            (Webhook::Mutating, "", "pods", "", "CREATE") => Some(Self::Creation),
            (Webhook::Mutating, "", "pods", "ephemeralcontainers", "UPDATE") => Some(Self::EphemeralContainers),
            (Webhook::Mutating, "", "pods", "resize", "UPDATE") | (Webhook::Validating, "", "pods", "", "UPDATE") => {
                Some(Self::Update)
            }
            (Webhook::Validating, group, resource, "", "CREATE" | "UPDATE") => {
                Workload::of_resource(group, resource).map(Self::Workload)
            }
            _ => None,
        }
    }

    /// Whether the pod that was there before is needed to decide.
    #[must_use]
    pub fn needs_old(self) -> bool {
        matches!(self, Self::EphemeralContainers | Self::Update)
    }

    /// Where the pod stands in the object; empty where it is the object.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Creation | Self::EphemeralContainers | Self::Update => "",
            Self::Workload(workload) => workload.at,
        }
    }

    /// Whether the pod is only a template, of which nothing is refused and nothing changed.
    #[must_use]
    pub fn is_template(self) -> bool {
        !self.path().is_empty()
    }

    /// The pod in the object; `null` where there is none.
    #[must_use]
    pub fn pod(self, object: &Value) -> &Value {
        self.path().split('.').filter(|key| !key.is_empty()).fold(object, |value, key| &value[key])
    }

    /// What the rules call it.
    #[must_use]
    pub fn operation(self, old: &Value) -> Operation<'_> {
        match self {
            Self::Creation => Operation::Create,
            Self::EphemeralContainers => Operation::AddEphemeralContainers { old },
            Self::Update => Operation::Update { old },
            Self::Workload(workload) => Operation::Template(workload.template),
        }
    }

    /// The scope in which the rules are asked. Of a template nothing but advice is wanted anyway, and only the advice
    /// made here knows where the template stands.
    #[must_use]
    pub fn scope(self, entry: Entry) -> Scope {
        match entry.scope {
            Scope::Warn if self.is_template() => Scope::Enforced,
            scope => scope,
        }
    }
}
