//! What is told about a session: conditions and the annotation, from facts.

use std::collections::BTreeMap;

use cofferdam_model::endpoints::Endpoints;
use cofferdam_model::policy::Routing;

use crate::layer::{Layer, LayerError};
use crate::probe::Observation;
use crate::session::{Condition, Session};
use crate::verdict::Verdict;

mod cause;
mod endpoints;
mod patch;
mod reason;

use cause::Cause;
pub use patch::patch;
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
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The four conditions, in a fixed order.
    pub conditions: Vec<Condition>,
    /// What the annotation says.
    pub endpoints: Endpoints,
}

/// What the facts come to.
#[must_use]
pub fn report(facts: &Facts<'_>) -> Report {
    let conditions = ConditionType::ALL.iter().map(|type_| condition(facts, *type_)).collect();
    Report { conditions, endpoints: endpoints::endpoints(facts) }
}

fn condition(facts: &Facts<'_>, type_: ConditionType) -> Condition {
    let (reason, message) = match (type_, cause::of_session(facts, type_)) {
        (_, Some(Cause { reason, says })) => (reason, says),
        (ConditionType::Hardened, None) => {
            (Reason::Hardened, format!("The audit by profile {} finds nothing.", facts.session.profile))
        }
        (_, None) => all_ports(facts, type_),
    };
    Condition {
        type_: type_.as_str().to_owned(),
        status: reason.status().as_str().to_owned(),
        reason: reason.as_str().to_owned(),
        message: cut(&message),
    }
}

/// Characters of a condition's message.
const MOST_IN_MESSAGE: usize = 4096;

/// With a sign where something is missing.
fn cut(message: &str) -> String {
    if message.chars().nth(MOST_IN_MESSAGE).is_none() {
        return message.to_owned();
    }
    message.chars().take(MOST_IN_MESSAGE - 1).chain(['…']).collect()
}

/// The worst of all ports, and in words what is wrong with each port that something is wrong with; where nothing is, what
/// holds of them. Ports of which the same is said are named together.
fn all_ports(facts: &Facts<'_>, type_: ConditionType) -> (Reason, String) {
    let mut causes: BTreeMap<Cause, Vec<String>> = BTreeMap::new();
    for port in cause::tcp(facts) {
        causes.entry(cause::of_port(facts, type_, port)).or_default().push(port.to_string());
    }
    let Some(worst) = causes.keys().next().map(|cause| cause.reason) else {
        // Ports are what a session is asked for last: without any it has a cause of its own.
        return (Reason::NothingToRoute, String::new());
    };
    let is_told = |cause: &Cause| worst.status() == Status::True || cause.reason.status() != Status::True;
    let told = causes.iter().filter(|(cause, _)| is_told(cause));
    let told: Vec<String> = told.map(|(cause, ports)| format!("{}: {}", ports.join(", "), cause.says)).collect();
    (worst, told.join(" "))
}

#[cfg(test)]
mod tests;
