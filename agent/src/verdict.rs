//! What the routing layer says of a route (contract 1.10, defect D21).

use serde_json::Value;

use crate::layer::Layer;
use crate::reason::Reason;

mod condition;
mod gateway;
mod ingress;
mod listener;

/// What is known of one port's route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing yet, or nothing of the current generation. What is waited for, in a sentence.
    Pending(String),
    /// Nothing is known, since it could not be read. What, in a sentence.
    Unreadable(String),
    /// The layer took it.
    Programmed {
        /// An Ingress has an address: all that its status can say.
        is_weak: bool,
    },
    /// The layer did not take it, or not any more.
    Refused {
        /// Which.
        reason: Reason,
        /// What the controller said, or what to look at.
        message: String,
    },
}

/// What the status of a route is judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence<'a> {
    /// The route or Ingress, if it is there.
    pub route: Option<&'a Value>,
    /// The Gateway that is its parent, as far as it could be read.
    pub gateway: Known<'a>,
    /// Whether the deadline has passed since the route was last changed by us.
    pub is_overdue: bool,
    /// Whether the last attempt to read the route's status failed, so that nothing newer is known.
    pub is_unreadable: bool,
}

/// An object that may be there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known<'a> {
    /// It is.
    There(&'a Value),
    /// It is not.
    Missing,
    /// It could not be asked for.
    Unreadable,
}

/// Judges a route. Never final: it is asked again whenever a part of the evidence changes.
#[must_use]
pub(crate) fn verdict(layer: &Layer, evidence: Evidence<'_>) -> Verdict {
    let is_weak = matches!(layer, Layer::Ingress { .. });
    let finding = match (layer, evidence.route) {
        (Layer::Off, _) => Finding::Waiting { told: "Routing is off.".to_owned(), overdue: None },
        (_, None) => Finding::Waiting { told: "The route is not there yet.".to_owned(), overdue: None },
        (Layer::Gateway { parent, .. }, Some(route)) => gateway::judge(parent, route, evidence.gateway),
        (Layer::Ingress { class, .. }, Some(ingress)) => ingress::judge(class, ingress),
    };
    match finding {
        Finding::Taken => Verdict::Programmed { is_weak },
        Finding::Refused(reason, message) => Verdict::Refused { reason, message },
        Finding::Unreadable(told) => Verdict::Unreadable(told),
        // Who cannot read the answer does not know that there is none (contract L11).
        Finding::Waiting { told, .. } if evidence.is_unreadable => {
            Verdict::Unreadable(format!("The route's status could not be read. Last known: {told}"))
        }
        Finding::Waiting { overdue: Some((reason, message)), .. } if evidence.is_overdue => {
            Verdict::Refused { reason, message }
        }
        Finding::Waiting { told, .. } => Verdict::Pending(told),
    }
}

/// What a status comes to, before it is asked how long that has been so.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    Taken,
    Refused(Reason, String),
    Unreadable(String),
    Waiting {
        /// What is waited for.
        told: String,
        /// What it is once the deadline has passed; none for what only stays unknown.
        overdue: Option<(Reason, String)>,
    },
}

#[cfg(test)]
mod tests;
