//! What is probed of one session: its ports on the node, and its addresses once their routes are applied.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use cofferdam_kubernetes::json::{each, parsed};
use cofferdam_model::endpoints::{Address, AddressState, Endpoint, Endpoints, Identity, ListeningState};
use cofferdam_model::host::host;
use cofferdam_model::policy::Scheme;
use cofferdam_model::ports::Protocol;
use tokio::sync::Notify;

use super::publishing::{self, Publisher};
use crate::desired::proof_of;
use crate::ground::Ground;
use crate::layer::Layer;
use crate::objects::{Kind, Live, name};
use crate::plan::has_claim;
use crate::probe::{Aim, Closed, Known, Observation, Prober, Target, Watch};
use crate::reason::Reason;
use crate::session::Phase;
use crate::world::Snapshot;

mod via;

/// The probes of one session.
pub(super) struct Probes {
    wake: Arc<Notify>,
    watch: Option<Watch>,
    inherited: Inherited,
}

/// What the agent before this one had found out.
#[derive(Debug, Default, PartialEq)]
enum Inherited {
    /// Nobody has looked.
    #[default]
    Unread,
    /// For the first questions. What comes later, another address of the pod, a route that is made anew, a node that was
    /// lost, nobody has ever asked about.
    Read(BTreeMap<u16, Known>),
    Used,
}

impl Probes {
    /// None yet; each new finding wakes the session's work.
    pub(super) fn new(wake: Arc<Notify>) -> Self {
        Self { wake, watch: None, inherited: Inherited::Unread }
    }

    /// Looks at the session for the first time, before anything of it is written.
    pub(super) fn inherit(&mut self, snapshot: &Snapshot, ground: &Ground) {
        if self.inherited == Inherited::Unread {
            self.inherited = Inherited::Read(inherited(snapshot, ground));
        }
    }

    /// From now on probes these.
    pub(super) fn set(&mut self, prober: &Prober, failures: u32, mut aims: BTreeMap<u16, Aim>) {
        if let Inherited::Read(known) = std::mem::replace(&mut self.inherited, Inherited::Used) {
            for (port, known) in known {
                if let Some(aim) = aims.get_mut(&port) {
                    aim.known = known;
                }
            }
        }
        if aims.is_empty() {
            return self.stop();
        }
        let wake = Arc::clone(&self.wake);
        let watch = self.watch.get_or_insert_with(|| prober.watch(Arc::new(move |_, _| wake.notify_one())));
        watch.update(failures, &aims);
    }

    /// Probes a port's address at once, if it was not reached yet.
    pub(super) fn hurry(&self, port: u16) {
        if let Some(watch) = &self.watch {
            watch.hurry(port);
        }
    }

    /// Nothing is probed any more.
    pub(super) fn stop(&mut self) {
        self.inherited = Inherited::Used;
        self.watch = None;
    }

    /// What was found, by port.
    pub(super) fn seen(&self) -> BTreeMap<u16, Observation> {
        self.watch.as_ref().map(Watch::seen).unwrap_or_default()
    }
}

/// What is to be probed of a session now.
pub(super) fn aims(snapshot: &Snapshot, ground: &Ground, publisher: &Publisher) -> BTreeMap<u16, Aim> {
    let session = &snapshot.seen.session;
    let (Some(address), Ok(ports)) = (session.address, &session.ports) else { return BTreeMap::new() };
    if !session.phase.is_live() || !session.findings.is_empty() {
        return BTreeMap::new();
    }
    let aim = |port| {
        let pod = SocketAddr::new(address, port);
        let has_started = session.phase == Phase::Running;
        let address = target(snapshot, ground, publisher, port);
        (port, Aim { pod, has_started, address, known: Known::default() })
    };
    ports.tcp().map(aim).collect()
}

/// Where a port's address is asked for; none before its route is there.
fn target(snapshot: &Snapshot, ground: &Ground, publisher: &Publisher, port: u16) -> Option<Target> {
    let session = &snapshot.seen.session;
    let layer = ground.layer.as_ref().ok()?;
    let routing = ground.policy.routing();
    if !has_claim(session, &snapshot.live) {
        return None;
    }
    let route = publishing::route(session, layer, &snapshot.live, port)?;
    let proof = match layer {
        // Without its proof a route that has one would be told to answer for somebody unknown.
        Layer::Gateway { proof: true, .. } => Some(publisher.proof(port)?.clone()),
        _ => None,
    };
    let door = via::door(layer, routing, ground.gateway(), &route.object);
    let tls = match door.as_ref().map(|door| door.scheme) {
        Some(Scheme::Https) => Some(ground.tls.clone()),
        Some(Scheme::Http) | None => None,
    };
    Some(Target {
        via: door.map(|door| door.via),
        tls,
        host: host(port, session.id.as_ref()?, &session.namespace, routing)?,
        base_domain: routing.base_domain.clone()?,
        proof,
    })
}

/// What the agent before this one had found out, as far as it is about what is there now: the pod's address, by the endpoint
/// that is published, and the host and the proof of each route.
fn inherited(snapshot: &Snapshot, ground: &Ground) -> BTreeMap<u16, Known> {
    let session = &snapshot.seen.session;
    let (Some(id), Some(address)) = (&session.id, session.address) else { return BTreeMap::new() };
    let leads_here = |live: &Live| {
        let mut endpoints = each(&live.object["endpoints"]);
        live.kind == Kind::EndpointSlice
            && live.name == name(id.as_str())
            && endpoints.any(|endpoint| parsed(&endpoint["addresses"][0]) == Some(address))
    };
    if snapshot.is_node_lost || !has_claim(session, &snapshot.live) || !snapshot.live.iter().any(leads_here) {
        return BTreeMap::new();
    }
    // Whether a proof goes with the route that answers for that host, if it is the one that there is.
    let routed = |port: u16, told: Option<&str>| {
        let layer = ground.layer.as_ref().ok()?;
        let route = publishing::route(session, layer, &snapshot.live, port)?;
        let has_proof = matches!(layer, Layer::Gateway { proof: true, .. });
        let host = host(port, id, &session.namespace, ground.policy.routing())?;
        (has_proof == proof_of(&route.object).is_some() && Some(host.as_str()) == told).then_some(has_proof)
    };
    // Where a container has still to begin, what was bad is a matter of course.
    let is_running = session.phase == Phase::Running;
    let endpoints = session.told.endpoints.as_deref().and_then(Endpoints::parse);
    let of = |endpoint: Endpoint| {
        let listening = endpoint.listening.and_then(|listening| match listening.state {
            ListeningState::Reachable => Some(Ok(())),
            ListeningState::Unreachable => closed(listening.reason.as_deref()).filter(|_| is_running).map(Err),
            ListeningState::Checking => None,
        });
        let routed = routed(endpoint.port, endpoint.host.as_deref());
        let address = endpoint.address.filter(|_| routed.is_some());
        let is_unreachable = |address: &Address| {
            address.state == AddressState::Unreachable && is_running && was_probed(address.reason.as_deref())
        };
        let was_unreachable = address.as_ref().is_some_and(is_unreachable);
        let address = address.filter(|address| address.state == AddressState::Reachable);
        let identity = address.and_then(|address| address.identity);
        let identity = identity.filter(|identity| routed == Some(*identity == Identity::Proved));
        let seen = Observation { listening, address: identity.map(Ok), so_far: None };
        (endpoint.port, Known { seen, was_unreachable })
    };
    let endpoints = endpoints.into_iter().flat_map(|endpoints| endpoints.ports);
    // A UDP port of the same number has nothing to say.
    endpoints.filter(|endpoint| endpoint.protocol == Protocol::Tcp).map(of).collect()
}

/// Why a port was told to take no connections; none where that is told of a whole session.
fn closed(told: Option<&str>) -> Option<Closed> {
    match word(told)? {
        Reason::Refused => Some(Closed::Refused),
        Reason::TimedOut => Some(Closed::TimedOut),
        Reason::Unreachable => Some(Closed::Unreachable),
        _ => None,
    }
}

/// Whether it was by a question that an address was found not to work.
fn was_probed(told: Option<&str>) -> bool {
    matches!(
        word(told),
        Some(Reason::NoProbeAddress | Reason::TlsFailed | Reason::NoAnswer | Reason::NotRouted | Reason::BadGateway)
    )
}

/// The reason that begins what was told.
fn word(told: Option<&str>) -> Option<Reason> {
    let word = told?.split(':').next()?;
    Reason::ALL.iter().find(|reason| reason.as_str() == word).copied()
}

#[cfg(test)]
mod tests;
