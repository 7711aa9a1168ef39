//! What is told about a session: conditions and the annotation, from facts.

use std::collections::BTreeMap;

use cofferdam_model::policy::Routing;
use serde_json::Value;

use crate::layer::{Layer, LayerError};
use crate::probe::Observation;
use crate::session::{Condition, Session, Told};
use crate::verdict::Verdict;

mod reason;

pub use reason::{ConditionType, Reason, Status};

/// All that is known about a session.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The pod.
    pub session: &'a Session,
    /// The policy's routing.
    pub routing: &'a Routing,
    /// The layer that was resolved, or why there is none.
    pub layer: Result<&'a Layer, &'a LayerError>,
    /// What keeps it from being published.
    pub hindrance: Option<Hindrance>,
    /// What the routing layer says, by port.
    pub verdicts: BTreeMap<u16, Verdict>,
    /// What probes found, by port.
    pub probes: BTreeMap<u16, Observation>,
}

/// What keeps a session from being published, beside what the pod itself says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// Another live pod has the id.
    HostTaken {
        /// Which.
        pod: String,
    },
    /// A Service of that name is there that is not ours.
    NameTaken,
    /// The namespace has no `NetworkPolicy` yet.
    WaitingForNetworkPolicy,
    /// The API server refused an object, in words that are safe to show.
    PublishFailed(String),
    /// The node is lost; for the elected agent.
    NodeLost,
    /// The node's agent is silent; for the elected agent.
    AgentSilent,
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The four conditions, in a fixed order.
    pub conditions: Vec<Condition>,
    /// The annotation's text.
    pub endpoints: String,
}

/// What the facts come to.
#[must_use]
pub fn report(_facts: &Facts<'_>) -> Report {
    Report { conditions: Vec::new(), endpoints: String::new() }
}

/// The strategic merge patch of `pods/status` that makes `told` into `report`, `now` being RFC 3339; nothing where that
/// would change nothing. A condition keeps its transition time unless its status changes.
#[must_use]
pub fn patch(_told: &Told, _report: &Report, _now: &str) -> Option<Value> {
    None
}
