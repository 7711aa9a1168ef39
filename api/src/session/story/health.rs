//! What the agent knows of a session's ports, and what of it is new.

use std::collections::BTreeMap;

use cofferdam_model::endpoints::{self, AddressState, Endpoints};
use cofferdam_model::keys;
use cofferdam_model::ports::{Ports, Protocol};
use serde_json::Value;

use crate::wire::{Endpoint, Event, ListeningState, Phase, PortProtocol, RouteState};

/// What was told of each port.
#[derive(Debug, Default)]
pub(super) struct Health(Option<BTreeMap<(Protocol, u16), endpoints::Endpoint>>);

/// What the agent wrote about these ports of a pod; nothing where it has not, or about others. Of no ports all is known.
pub(super) fn known(pod: &Value, ports: &Ports) -> Option<Vec<endpoints::Endpoint>> {
    if ports.is_empty() {
        return Some(Vec::new());
    }
    let written = Endpoints::parse(pod["metadata"]["annotations"][keys::ENDPOINTS].as_str()?)?;
    (written.for_ports == ports.to_string()).then_some(written.ports)
}

/// Where these ports are.
pub(super) fn endpoints(known: &[endpoints::Endpoint]) -> Vec<Endpoint> {
    let endpoint = |port: &endpoints::Endpoint| Endpoint {
        host: port.host.clone().unwrap_or_default(),
        port: port.port,
        protocol: protocol(port.protocol),
        url: port.url.clone(),
    };
    known.iter().map(endpoint).collect()
}

/// These ports, as long as it is not known where they are.
pub(super) fn without_addresses(ports: &Ports) -> Vec<Endpoint> {
    let endpoint = |port: cofferdam_model::ports::Port| Endpoint {
        host: String::new(),
        port: port.number,
        protocol: protocol(port.protocol),
        url: None,
    };
    ports.iter().map(endpoint).collect()
}

/// What to tell where ports have come or gone, or are somewhere else.
pub(super) fn moved(app: &str, before: &[Endpoint], after: &[Endpoint]) -> Event {
    let without = |these: &[Endpoint], others: &[Endpoint]| -> Vec<Endpoint> {
        these.iter().filter(|endpoint| !others.contains(endpoint)).cloned().collect()
    };
    let (added, removed) = (without(after, before), without(before, after));
    Event::Endpoints { app: app.to_owned(), added, removed, rejected: Vec::new() }
}

impl Health {
    /// Whether anything was told of the ports.
    pub(super) fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// What is new about these ports: each of a port's three states for itself.
    pub(super) fn changes(&mut self, app: &str, known: &[endpoints::Endpoint]) -> Vec<Event> {
        let before = self.0.take().unwrap_or_default();
        let mut events = Vec::new();
        for port in known {
            changes(app, before.get(&(port.protocol, port.port)), port, &mut events);
        }
        self.0 = Some(known.iter().map(|port| ((port.protocol, port.port), port.clone())).collect());
        events
    }
}

fn changes(app: &str, before: Option<&endpoints::Endpoint>, port: &endpoints::Endpoint, events: &mut Vec<Event>) {
    let number = port.port;
    let listening = |port: &endpoints::Endpoint| port.listening.as_ref().map(|listening| listening.state);
    if let Some(state) = listening(port).filter(|state| before.and_then(listening) != Some(*state)) {
        events.push(Event::Reachability { app: app.to_owned(), port: number, state: listening_state(state) });
    }
    let Some(host) = &port.host else { return };
    if let Some(route) = port.route.as_ref().filter(|route| before.and_then(|it| it.route.as_ref()) != Some(*route)) {
        events.push(Event::Route {
            app: Some(app.to_owned()),
            host: host.clone(),
            port: number,
            state: route_state(route.state),
            reason: route.reason.clone(),
        });
    }
    let address = |port: &endpoints::Endpoint| port.address.as_ref().map(|address| address.state);
    let state = address(port).filter(|state| before.and_then(address) != Some(*state));
    let reason = port.address.as_ref().and_then(|address| address.reason.as_deref());
    let (message, done) = match state {
        Some(AddressState::Reachable) => (format!("Port {number} answers at {host}"), Some(true)),
        Some(AddressState::Unreachable) => {
            let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            (format!("Port {number} does not answer at {host}{why}"), None)
        }
        Some(AddressState::Pending) | None => return,
    };
    events.push(Event::Progress { app: Some(app.to_owned()), phase: Phase::Boot, message, done });
}

fn protocol(protocol: Protocol) -> PortProtocol {
    match protocol {
        Protocol::Tcp => PortProtocol::Tcp,
        Protocol::Udp => PortProtocol::Udp,
    }
}

fn listening_state(state: endpoints::ListeningState) -> ListeningState {
    match state {
        endpoints::ListeningState::Checking => ListeningState::Checking,
        endpoints::ListeningState::Reachable => ListeningState::Reachable,
        endpoints::ListeningState::Unreachable => ListeningState::Unreachable,
    }
}

fn route_state(state: endpoints::RouteState) -> RouteState {
    match state {
        endpoints::RouteState::Pending => RouteState::Pending,
        endpoints::RouteState::Programmed => RouteState::Programmed,
        endpoints::RouteState::Unprogrammed => RouteState::Unprogrammed,
    }
}
