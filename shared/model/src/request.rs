//! The question about a pod: what is about to happen to it, where, and who asks.

use serde_json::Value;

/// Which webhook entry brought the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The namespace is labelled `enforced`: every pod in it becomes a session.
    Enforced,
    /// The namespace is labelled `warn`: what would happen to a pod is told, and nothing is done.
    Warn,
    /// Any other namespace: a pod becomes a session by its own label.
    Labelled,
}

/// What is about to happen to a pod.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// It is created.
    Create,
    /// It is the template that a workload makes pods from, as `{"metadata": …, "spec": …}`.
    Template(Template),
    /// A live pod gets containers for debugging (subresource `ephemeralcontainers`). The new ones are hardened.
    AddEphemeralContainers {
        /// The pod before.
        old: &'a Value,
    },
    /// A live pod is changed in place, its resources (subresource `resize`) or anything else that an update may
    /// change. What is no looser than before is allowed; nothing is patched.
    Update {
        /// The pod before.
        old: &'a Value,
    },
}

impl<'a> Operation<'a> {
    /// The pod before, where it was there.
    pub(crate) fn old(&self) -> Option<&'a Value> {
        match *self {
            Self::Create | Self::Template(_) => None,
            Self::AddEphemeralContainers { old } | Self::Update { old } => Some(old),
        }
    }
}

/// What a workload's controller forbids in its template. Its pods get that when they are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// A Deployment's and its like: restarted always, without a deadline.
    RunsForever,
    /// A Job's: it may have a deadline, and its restart policy is the Job's affair.
    RunsToCompletion,
}

/// A question about a pod.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The uid of the admission request; a missing session id is derived from it. Without a uid none is made up.
    pub uid: Option<&'a str>,
    /// The namespace of the request. The one in the object is not believed.
    pub namespace: &'a str,
    /// Which webhook entry brought the pod.
    pub scope: Scope,
    /// Who asks.
    pub user: User<'a>,
    /// What is about to happen.
    pub operation: Operation<'a>,
    /// The pod as it is to be.
    pub pod: &'a Value,
}

/// Who asks, as the API server authenticated them.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// The user's name.
    pub name: &'a str,
    /// The user's groups.
    pub groups: &'a [String],
}

impl User<'_> {
    /// Nobody is known to ask, as of a file. What hangs on who asks is left open.
    pub const UNKNOWN: Self = Self { name: "", groups: &[] };
}
