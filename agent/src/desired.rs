//! The objects that a session ought to have.

use cofferdam_model::host::host;
use cofferdam_model::policy::Routing;
use cofferdam_model::ports::Ports;
use serde_json::Value;

use crate::layer::Layer;
use crate::objects::Kind;
use crate::session::Session;

mod metadata;
mod route;
mod service;

use metadata::Whose;
pub(crate) use metadata::node_hash;
pub(crate) use route::{PROBE_HEADER, PROOF_HEADER, proof_of};

/// The two secrets of a route: who sends the first gets the second, from nobody but this route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// The value of the request's header [`PROBE_HEADER`].
    pub probe: String,
    /// The value of the response's header [`PROOF_HEADER`].
    pub proof: String,
}

/// An object that ought to be there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// All of it that is ours to say: what is applied.
    pub object: Value,
}

/// The objects that a session ought to have, the Service first. Nothing for a session that is not published: one that
/// slipped through, has no id, no ports or no address, or is finished or being deleted.
///
/// `ports` are those to publish now, which may be others than it asks for. `node` is the name of the node. `proof` is the one
/// of that port's route, so that it stays the same while the route lives; it is asked for only where the layer can hold one.
#[must_use]
pub(crate) fn desired(
    session: &Session,
    ports: &Ports,
    layer: &Layer,
    routing: &Routing,
    node: &str,
    proof: &dyn Fn(u16) -> Proof,
) -> Vec<Wanted> {
    let (Some(id), Some(address)) = (&session.id, session.address) else {
        return Vec::new();
    };
    if ports.is_empty() || !session.is_publishable() {
        return Vec::new();
    }
    let whose = Whose { session, id, node };
    let mut wanted = vec![service::service(&whose, ports), service::slice(&whose, ports, address)];
    // A host for each TCP port; none where routing is off.
    let hosts = ports.tcp().filter_map(|port| Some((port, host(port, id, &session.namespace, routing)?)));
    match layer {
        Layer::Off => {}
        Layer::Gateway { version, parent, proof: with_proof } => wanted.extend(hosts.map(|(port, host)| {
            let proof = with_proof.then(|| proof(port));
            route::http_route(&whose, version, parent, port, &host, proof.as_ref())
        })),
        Layer::Ingress { class, tls_secret } => {
            wanted.extend(route::ingress(&whose, class, tls_secret.as_deref(), &hosts.collect::<Vec<_>>()));
        }
    }
    wanted
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
