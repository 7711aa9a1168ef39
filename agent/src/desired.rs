//! The objects that a session ought to have.

use cofferdam_model::policy::Routing;
use serde_json::Value;

use crate::layer::Layer;
use crate::objects::Kind;
use crate::session::Session;

/// The two secrets of a route: who sends the first gets the second, from nobody but this route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The value of the request's header `x-cofferdam-probe`.
    pub probe: String,
    /// The value of the response's header `x-cofferdam-proof`.
    pub proof: String,
}

/// An object that ought to be there.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// All of it that is ours to say: what is applied.
    pub object: Value,
}

/// The objects that a session ought to have, the Service first. Nothing for a session that is not published: one that
/// slipped through, has no id, whose ports cannot be read, has no address, or is finished or being deleted.
///
/// `node` is the name of the node. `proof` is the one of that port's route, so that it stays the same while the route
/// lives; it is asked for only where the layer can hold one.
#[must_use]
pub fn desired(
    _session: &Session,
    _layer: &Layer,
    _routing: &Routing,
    _node: &str,
    _proof: &dyn Fn(u16) -> Proof,
) -> Vec<Wanted> {
    Vec::new()
}
