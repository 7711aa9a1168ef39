//! What is kept of a pod.

use std::net::IpAddr;

use cofferdam_model::Reason;
use cofferdam_model::ports::{Ports, PortsError};
use cofferdam_model::session::SessionId;

mod read;

pub(crate) use read::has_ended;

/// What the namespace of a pod makes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Membership {
    /// Every pod in it has to be a session.
    Enforced,
    /// A pod in it is a session by its label.
    #[default]
    Other,
    /// No pod in it is one: Cofferdam itself, the cluster's own, and where the webhook only warns. One that was a session
    /// before that was so is [`Phase::Released`].
    Exempt,
}

impl Membership {
    /// By the label `cofferdam.dev/sessions` of the namespace.
    #[must_use]
    pub(crate) fn of_label(label: Option<&str>) -> Self {
        match label {
            Some("enforced") => Self::Enforced,
            Some("warn") => Self::Exempt,
            _ => Self::Other,
        }
    }
}

/// A session, and what is only of use while it starts or ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The session.
    pub session: Session,
    /// Who makes pods like it: its controller's uid, or its namespace.
    pub owner: String,
    /// Whether its profile, by the policy that it was judged by, says that such a pod is deleted where it slipped through.
    pub is_unwelcome: bool,
    /// The version of the pod that this is about.
    pub resource_version: u64,
    /// How far its start or end is.
    pub progress: Progress,
}

/// How far a pod's start or end is. Times are in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// When it was created.
    pub created: Option<i64>,
    /// When it got its node.
    pub scheduled: Option<i64>,
    /// Whether its body is there, or it wants none.
    pub has_body: bool,
    /// Whether all its containers run.
    pub is_running: bool,
    /// When the last of its containers ended.
    pub ended: Option<i64>,
}

/// A pod that is a session, or has to be one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Session {
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

impl Session {
    /// Whether anything of it may be published: one that slipped through never is.
    #[must_use]
    pub(crate) fn is_publishable(&self) -> bool {
        self.phase.is_live() && self.findings.is_empty() && self.id.is_some() && self.address.is_some()
    }
}

/// How far a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Not every container of the pod's own has begun.
    Starting,
    /// Its containers run.
    Running,
    /// It succeeded or failed.
    Finished,
    /// It is being deleted.
    Leaving,
    /// It was a session, and its namespace has none any more: what was published goes, and the pod is its owner's.
    Released,
}

impl Phase {
    /// Whether its objects serve, as soon as it has an address.
    #[must_use]
    pub(crate) fn is_live(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// What was last written about a pod, as it stands in its status and annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Our conditions, in the order of the status.
    pub conditions: Vec<Condition>,
    /// The annotation `cofferdam.dev/endpoints`.
    pub endpoints: Option<String>,
}

/// A condition of a pod, without its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Its type, such as `cofferdam.dev/RouteReachable`.
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One of [`crate::reason`]'s.
    pub reason: String,
    /// For a person.
    pub message: String,
}
