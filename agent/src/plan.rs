//! What has to be done to the objects of a session.

use serde_json::Value;

use crate::desired::Wanted;
use crate::objects::{Kind, Live};

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A plain create: of the Service, since its name is the claim.
    Create(Wanted),
    /// A server-side apply, forced, as [`cofferdam_model::keys::AGENT`].
    Apply(Wanted),
    /// Delete (that very object, by uid) and make it anew: what others added to it an apply cannot take away.
    Replace {
        /// The uid of what is deleted.
        uid: String,
        /// What is made.
        wanted: Wanted,
    },
    /// Delete that very object.
    Delete {
        /// Its kind.
        kind: Kind,
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
}

/// What has to be done so that `live` becomes `wanted`; nothing where it is so already. `live` are the objects that carry
/// our labels and belong to the session of this id; `uid` is the pod's. `applied` are those that were applied since they
/// last changed otherwise: where such a one still differs, only making it anew helps.
#[must_use]
pub fn plan(_uid: &str, _wanted: &[Wanted], _live: &[Live], _applied: &dyn Fn(Kind, &str) -> bool) -> Vec<Step> {
    Vec::new()
}

/// Whose a Service is that is in the way of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Its owner is this pod.
    Ours,
    /// Its owner is another pod, of this name and uid: whether that one lives has to be asked.
    Of {
        /// The pod's name.
        name: String,
        /// The pod's uid.
        uid: String,
        /// The Service's uid.
        service: String,
    },
    /// No pod owns it, and it carries our label: it belongs to nobody.
    Nobody {
        /// The Service's uid.
        service: String,
    },
    /// It is not Cofferdam's at all, and never taken over.
    Foreign,
}

/// Whose this Service is, for the pod of that uid.
#[must_use]
pub fn claim(_service: &Value, _uid: &str) -> Claim {
    Claim::Foreign
}
