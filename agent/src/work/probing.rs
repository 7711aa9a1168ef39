//! What is probed of one session: its ports on the node, and its addresses once their routes are applied.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use cofferdam_model::endpoints::{AddressState, Endpoints, ListeningState};
use cofferdam_model::host::host;
use cofferdam_model::policy::Scheme;
use tokio::sync::Notify;

use super::publishing::{self, Publisher};
use crate::ground::Ground;
use crate::layer::Layer;
use crate::plan::has_claim;
use crate::probe::{Aim, Observation, Prober, Target, Watch};
use crate::session::Session;
use crate::world::Snapshot;

mod via;

/// The probes of one session.
pub(super) struct Probes {
    wake: Arc<Notify>,
    watch: Option<Watch>,
}

impl Probes {
    /// None yet; each new finding wakes the session's work.
    pub(super) fn new(wake: Arc<Notify>) -> Self {
        Self { wake, watch: None }
    }

    /// From now on probes these.
    pub(super) fn set(&mut self, prober: &Prober, failures: u32, aims: &BTreeMap<u16, Aim>) {
        if aims.is_empty() {
            return self.stop();
        }
        let wake = Arc::clone(&self.wake);
        let watch = self.watch.get_or_insert_with(|| prober.watch(Arc::new(move |_, _| wake.notify_one())));
        watch.update(failures, aims);
    }

    /// Probes a port's address at once, if it was not reached yet.
    pub(super) fn hurry(&self, port: u16) {
        if let Some(watch) = &self.watch {
            watch.hurry(port);
        }
    }

    /// Nothing is probed any more.
    pub(super) fn stop(&mut self) {
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
    let known = known(session);
    let aim = |port| {
        let pod = SocketAddr::new(address, port);
        let aim = Aim {
            pod,
            address: target(snapshot, ground, publisher, port),
            known: known.get(&port).cloned().unwrap_or_default(),
        };
        (port, aim)
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

/// What the agent before this one had found out.
fn known(session: &Session) -> BTreeMap<u16, Observation> {
    let endpoints = session.told.endpoints.as_deref().and_then(Endpoints::parse);
    let of = |endpoint: cofferdam_model::endpoints::Endpoint| {
        let listens = endpoint.listening.is_some_and(|listening| listening.state == ListeningState::Reachable);
        let address = endpoint.address.filter(|address| address.state == AddressState::Reachable);
        let identity = address.and_then(|address| address.identity);
        (endpoint.port, Observation { listening: listens.then_some(Ok(())), address: identity.map(Ok) })
    };
    endpoints.into_iter().flat_map(|endpoints| endpoints.ports).map(of).collect()
}
