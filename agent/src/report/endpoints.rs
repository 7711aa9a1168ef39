//! The annotation `cofferdam.dev/endpoints`, port by port. No times stand in it, so that it is written once for each state.

use cofferdam_model::endpoints::{Address, AddressState, Endpoint, Endpoints, ListeningState, RouteState, State};
use cofferdam_model::ports::{Port, Ports, Protocol};

use super::Facts;
use super::cause::{Cause, host_of, identity, of_port, of_session};
use crate::layer::Layer;
use crate::reason::{ConditionType, Reason, Status};

/// What the annotation says.
pub(super) fn endpoints(facts: &Facts<'_>) -> Endpoints {
    let none = Ports::default();
    let ports = facts.session.ports.as_ref().unwrap_or(&none);
    Endpoints::new(ports.to_string(), ports.iter().map(|port| endpoint(facts, port)).collect())
}

fn endpoint(facts: &Facts<'_>, Port { number, protocol }: Port) -> Endpoint {
    let mut endpoint =
        Endpoint { port: number, protocol, host: None, url: None, route: None, listening: None, address: None };
    if protocol == Protocol::Udp {
        return endpoint;
    }
    let cause = |type_| of_session(facts, type_).unwrap_or_else(|| of_port(facts, type_, number));
    let listening = cause(ConditionType::PortsReachable);
    endpoint.listening = Some(State {
        state: match listening.reason.status() {
            Status::True => ListeningState::Reachable,
            Status::Unknown => ListeningState::Checking,
            Status::False => ListeningState::Unreachable,
        },
        reason: told(&listening),
    });
    if matches!(facts.layer, Ok(Layer::Off)) {
        return endpoint;
    }
    endpoint.host = host_of(facts, number);
    endpoint.url = endpoint.host.as_deref().map(|host| facts.routing.public_url.of(host));
    let route = cause(ConditionType::RouteProgrammed);
    endpoint.route = Some(State {
        state: match route.reason.status() {
            Status::True => RouteState::Programmed,
            Status::Unknown => RouteState::Pending,
            Status::False => RouteState::Unprogrammed,
        },
        reason: told(&route),
    });
    let address = cause(ConditionType::RouteReachable);
    let state = match address.reason.status() {
        Status::True => AddressState::Reachable,
        Status::Unknown => AddressState::Pending,
        Status::False => AddressState::Unreachable,
    };
    let identity = identity(facts, number).filter(|_| state == AddressState::Reachable);
    endpoint.address = Some(Address { state, identity, reason: told(&address) });
    endpoint
}

/// `Word: sentence`; nothing where the state says it all.
fn told(cause: &Cause) -> Option<String> {
    let says_it_all = cause.reason.status() == Status::True && cause.reason != Reason::AddressAssigned;
    (!says_it_all).then(|| format!("{}: {}", cause.reason.as_str(), cause.says))
}
