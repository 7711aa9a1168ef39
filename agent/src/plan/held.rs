//! What is judged where not all of it can be: the rest is held as it is.

use cofferdam_kubernetes::json::each;
use cofferdam_model::ports::Ports;
use serde_json::{Value, json};

use super::{find, has_claim};
use crate::desired::Wanted;
use crate::objects::{Kind, Live, name, route_name};
use crate::session::Session;

/// What is judged of `live` while nobody can tell the routing layer: all but the routes of `ports`, which people are using. An
/// Ingress stays as long as one port has use for it: a port that the Service has no more is gone for it too.
#[must_use]
pub(crate) fn without_layer(session: &Session, ports: &Ports, live: &[Live]) -> Vec<Live> {
    let Some(id) = session.id.as_ref().filter(|_| session.is_publishable()) else { return live.to_vec() };
    let is_asked_for = |live: &&Live| match live.kind {
        Kind::Service | Kind::EndpointSlice => false,
        Kind::HttpRoute => ports.tcp().any(|port| live.name == route_name(id.as_str(), port)),
        Kind::Ingress => live.name == name(id.as_str()) && ports.tcp().next().is_some(),
    };
    live.iter().filter(|live| !is_asked_for(live)).cloned().collect()
}

/// What is wanted, and what is judged for that, while the node is lost: what is wanted no more goes, and nothing is published
/// that the elected agent would have to take away. An endpoint that leads to an address which the pod has not any more goes too.
#[must_use]
pub(crate) fn while_lost(session: &Session, wanted: &[Wanted], live: &[Live]) -> (Vec<Wanted>, Vec<Live>) {
    let astray = wanted.iter().filter(|wanted| wanted.kind == Kind::EndpointSlice && has_claim(session, live));
    let astray: Vec<Wanted> = astray.filter_map(|wanted| emptied(wanted, &find(wanted, live)?.object)).collect();
    let is_in =
        |wanted: &[Wanted], live: &Live| wanted.iter().any(|one| one.kind == live.kind && one.name == live.name);
    let live = live.iter().filter(|live| !is_in(wanted, live) || is_in(&astray, live)).cloned().collect();
    (astray, live)
}

/// The slice without endpoints, if it leads elsewhere than it ought to.
fn emptied(wanted: &Wanted, live: &Value) -> Option<Wanted> {
    let leads_to =
        |endpoint: &Value| each(&wanted.object["endpoints"]).any(|wanted| wanted["addresses"] == endpoint["addresses"]);
    each(&live["endpoints"]).any(|endpoint| !leads_to(endpoint)).then(|| {
        let mut emptied = wanted.clone();
        emptied.object["endpoints"] = json!([]);
        // It can never be changed.
        emptied.object["addressType"] = live["addressType"].clone();
        emptied
    })
}
