//! What the routing layer says of a route (contract 1.10, defect D21).

use serde_json::Value;

use crate::layer::Layer;

/// What is known of one port's route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
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
        /// A reason of [`crate::report`].
        reason: crate::report::Reason,
        /// What the controller said, or what to look at.
        message: String,
    },
}

/// What the status of a route is judged by.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
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
pub enum Known<'a> {
    /// It is.
    There(&'a Value),
    /// It is not.
    Missing,
    /// It could not be asked for.
    Unreadable,
}

/// Judges a route. Never final: it is asked again whenever a part of the evidence changes.
#[must_use]
pub fn verdict(_layer: &Layer, _evidence: Evidence<'_>) -> Verdict {
    Verdict::Pending(String::new())
}
