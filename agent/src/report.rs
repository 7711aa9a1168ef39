//! What is told about a session: conditions and the annotation, from facts.

use std::collections::BTreeMap;

use cofferdam_model::endpoints::Endpoints;
use cofferdam_model::policy::Routing;
use cofferdam_model::text::shown;

use crate::layer::{Layer, LayerError};
use crate::probe::Observation;
use crate::reason::{ConditionType, Reason, Status};
use crate::session::Session;
use crate::verdict::Verdict;

mod cause;
mod endpoints;
mod patch;

use cause::Cause;
pub(crate) use patch::{changed, patch, time};

/// All that is known about a session.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
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

/// What keeps a session from being published as it ought to be, beside what the pod itself says. With one, no address is
/// told to work: a proof shows whose the route is, and not where the Service behind it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hindrance {
    /// Another live pod has the id.
    HostTaken {
        /// Which; none where that cannot be known.
        pod: Option<String>,
    },
    /// A Service of that name is there that is not ours.
    NameTaken,
    /// The namespace has no `NetworkPolicy` yet.
    WaitingForNetworkPolicy,
    /// An object could not be made what it ought to be. Which, and why, in words that are safe to show.
    PublishFailed(String),
    /// An object is being deleted, and not gone yet.
    Terminating {
        /// Which.
        object: String,
        /// What keeps it.
        finalizers: Vec<String>,
    },
    /// A write waits, since too many came lately. Of what, as a clause.
    PublishDelayed(String),
}

impl Hindrance {
    /// The reason that is told of it.
    #[must_use]
    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::HostTaken { .. } | Self::NameTaken => Reason::HostTaken,
            Self::WaitingForNetworkPolicy => Reason::WaitingForNetworkPolicy,
            Self::PublishFailed(_) => Reason::PublishFailed,
            Self::Terminating { .. } => Reason::Terminating,
            Self::PublishDelayed(_) => Reason::PublishDelayed,
        }
    }
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The four conditions, in a fixed order.
    pub conditions: Vec<Condition>,
    /// What the annotation says.
    pub endpoints: Endpoints,
}

/// What is told of one condition; its status is that of its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Which.
    pub type_: ConditionType,
    /// Why it holds, or does not.
    pub reason: Reason,
    /// For a person.
    pub message: String,
}

/// What the facts come to.
#[must_use]
pub(crate) fn report(facts: &Facts<'_>) -> Report {
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
    Condition { type_, reason, message: shown(&message, MOST_IN_MESSAGE) }
}

/// Bytes of a condition's message. Kubernetes' own conditions take 32768 characters, and nobody reads so many.
const MOST_IN_MESSAGE: usize = 8192;

/// The worst of all ports, and in words what is wrong with each port that something is wrong with; where nothing is, what
/// holds of them. Ports of which the same is said are named together.
fn all_ports(facts: &Facts<'_>, type_: ConditionType) -> (Reason, String) {
    let mut causes: BTreeMap<Cause, Vec<String>> = BTreeMap::new();
    for port in cause::tcp(facts) {
        causes.entry(cause::of_port(facts, type_, port)).or_default().push(port.to_string());
    }
    let Some(worst) = causes.keys().next().map(|cause| cause.reason) else {
        // A session without TCP ports has been given a cause of its own before.
        return (Reason::NothingToRoute, String::new());
    };
    let is_told = |cause: &Cause| worst.status() == Status::True || cause.reason.status() != Status::True;
    let told = causes.iter().filter(|(cause, _)| is_told(cause));
    let told: Vec<String> = told.map(|(cause, ports)| format!("{}: {}", ports.join(", "), cause.says)).collect();
    (worst, told.join(" "))
}

#[cfg(test)]
mod tests;
