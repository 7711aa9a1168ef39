//! What is kept of a pod.

use std::net::IpAddr;

use cofferdam_model::Reason;
use cofferdam_model::ports::{Ports, PortsError};
use cofferdam_model::session::SessionId;

/// A pod that is a session, or has to be one.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// Its namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's uid.
    pub uid: String,
    /// What its label says; none where that is missing or no id, which a webhook would not have let through.
    pub id: Option<SessionId>,
    /// What it wants to be published.
    pub ports: Result<Ports, PortsError>,
    /// Its first address; none before it has one.
    pub address: Option<IpAddr>,
    /// How far it is.
    pub phase: Phase,
    /// What an audit finds; empty for a hardened session.
    pub findings: Vec<Reason>,
    /// The profile that its label names.
    pub profile: String,
    /// Whether a controller owns it, and makes it anew.
    pub is_controlled: bool,
    /// For how many seconds it wants to be kept once it is finished.
    pub finished_grace_seconds: Option<u32>,
    /// What was last written about it.
    pub told: Told,
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No container of the pod's own runs yet.
    Starting,
    /// Its containers run.
    Running,
    /// It succeeded or failed.
    Finished,
    /// It is being deleted.
    Leaving,
}

impl Phase {
    /// Whether its objects serve, as soon as it has an address.
    #[must_use]
    pub fn is_live(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// What was last written about a pod, as it stands in its status and annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Our conditions, in the order of the status.
    pub conditions: Vec<Condition>,
    /// The annotation `cofferdam.dev/endpoints`.
    pub endpoints: Option<String>,
}

/// A condition of a pod, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type, such as `cofferdam.dev/RouteReachable`.
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One of [`crate::report`]'s.
    pub reason: String,
    /// For a person.
    pub message: String,
}
