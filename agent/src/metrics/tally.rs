//! Gauges that are sums over sessions: each session puts its part in, moves it, and takes it out when it ends.

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_model::endpoints::{AddressState, Endpoint, Identity, ListeningState, RouteState};
use prometheus::{IntGaugeVec, Opts, Registry};

/// What a session is to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// Its objects are there.
    Published,
    /// They are not, or not yet.
    Unpublished,
    /// It is not hardened.
    SlippedThrough,
    /// It succeeded or failed.
    Finished,
}

impl SessionState {
    const ALL: [Self; 4] = [Self::Published, Self::Unpublished, Self::SlippedThrough, Self::Finished];

    fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Unpublished => "unpublished",
            Self::SlippedThrough => "slipped_through",
            Self::Finished => "finished",
        }
    }
}

/// What one port counts for, by gauge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortState {
    route: Option<&'static str>,
    listening: Option<&'static str>,
    address: Option<(&'static str, &'static str)>,
}

impl PortState {
    /// Of what is told about the port.
    #[must_use]
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        Self {
            route: endpoint.route.as_ref().map(|route| match route.state {
                RouteState::Pending => "pending",
                RouteState::Programmed => "programmed",
                RouteState::Unprogrammed => "unprogrammed",
            }),
            listening: endpoint.listening.as_ref().map(|listening| match listening.state {
                ListeningState::Checking => "checking",
                ListeningState::Reachable => "reachable",
                ListeningState::Unreachable => "unreachable",
            }),
            address: endpoint.address.as_ref().map(|address| {
                let state = match address.state {
                    AddressState::Pending => "pending",
                    AddressState::Reachable => "reachable",
                    AddressState::Unreachable => "unreachable",
                };
                let proved = address.identity == Some(Identity::Proved);
                (state, if proved { "proved" } else { "unproved" })
            }),
        }
    }
}

/// The gauges.
#[derive(Debug)]
pub(super) struct Gauges {
    sessions: IntGaugeVec,
    routes: IntGaugeVec,
    ports: IntGaugeVec,
    addresses: IntGaugeVec,
    each: Option<IntGaugeVec>,
}

impl Gauges {
    pub(super) fn register(registry: &Registry, per_session: bool) -> prometheus::Result<Self> {
        let gauge = |name: &str, help: &str, labels: &[&str]| -> prometheus::Result<IntGaugeVec> {
            let gauge = IntGaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let gauges = Self {
            sessions: gauge("sessions", "Sessions on the node by what they are to the agent.", &["state"])?,
            routes: gauge("routes", "Routes by what the routing layer says of them.", &["state"])?,
            ports: gauge("ports", "Ports by whether they take connections on the node.", &["state"])?,
            addresses: gauge(
                "addresses",
                "Addresses by whether they work through the gateway, and whether it is known who answers.",
                &["state", "identity"],
            )?,
            each: if per_session {
                Some(gauge(
                    "session_address_reachable",
                    "Whether the address of a session's port works.",
                    &["namespace", "session", "port"],
                )?)
            } else {
                None
            },
        };
        for state in SessionState::ALL {
            gauges.sessions.with_label_values(&[state.as_str()]);
        }
        for state in ["pending", "programmed", "unprogrammed"] {
            gauges.routes.with_label_values(&[state]);
        }
        for state in ["checking", "reachable", "unreachable"] {
            gauges.ports.with_label_values(&[state]);
        }
        for state in ["pending", "reachable", "unreachable"] {
            for identity in ["proved", "unproved"] {
                gauges.addresses.with_label_values(&[state, identity]);
            }
        }
        Ok(gauges)
    }

    fn move_by(&self, session: Option<SessionState>, ports: &BTreeMap<u16, PortState>, by: i64) {
        if let Some(session) = session {
            self.sessions.with_label_values(&[session.as_str()]).add(by);
        }
        for port in ports.values() {
            for (gauge, state) in [(&self.routes, port.route), (&self.ports, port.listening)] {
                if let Some(state) = state {
                    gauge.with_label_values(&[state]).add(by);
                }
            }
            if let Some((state, identity)) = port.address {
                self.addresses.with_label_values(&[state, identity]).add(by);
            }
        }
    }
}

/// One session's part in the gauges. Dropped, it is taken out.
#[derive(Debug)]
pub(crate) struct Tally {
    gauges: Arc<Gauges>,
    session: Option<SessionState>,
    ports: BTreeMap<u16, PortState>,
    /// The labels of its own series, where those are switched on.
    series: Vec<[String; 3]>,
}

impl Tally {
    pub(super) fn new(gauges: Arc<Gauges>) -> Self {
        Self { gauges, session: None, ports: BTreeMap::new(), series: Vec::new() }
    }

    /// The session is this now, its ports are these. `namespace` and `id` name its own series.
    pub(crate) fn set(&mut self, session: SessionState, ports: BTreeMap<u16, PortState>, namespace: &str, id: &str) {
        if self.session == Some(session) && self.ports == ports {
            return;
        }
        self.gauges.move_by(self.session, &self.ports, -1);
        self.gauges.move_by(Some(session), &ports, 1);
        self.remove_series();
        if let Some(each) = &self.gauges.each {
            for (port, state) in &ports {
                let labels = [namespace.to_owned(), id.to_owned(), port.to_string()];
                let reachable = state.address.is_some_and(|(state, _)| state == "reachable");
                each.with_label_values(&labels).set(i64::from(reachable));
                self.series.push(labels);
            }
        }
        (self.session, self.ports) = (Some(session), ports);
    }

    fn remove_series(&mut self) {
        for labels in self.series.drain(..) {
            if let Some(each) = &self.gauges.each {
                // Another pod of the same id may have taken it away.
                let _ = each.remove_label_values(&labels);
            }
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.gauges.move_by(self.session, &self.ports, -1);
        self.remove_series();
    }
}

#[cfg(test)]
mod tests {
    use prometheus::TextEncoder;

    use super::*;

    fn text(registry: &Registry) -> String {
        TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
    }

    fn reachable() -> BTreeMap<u16, PortState> {
        let state = PortState {
            route: Some("programmed"),
            listening: Some("reachable"),
            address: Some(("reachable", "proved")),
        };
        BTreeMap::from([(3000, state)])
    }

    #[test]
    fn b154_the_registry_is_as_large_as_before_once_sessions_are_gone() {
        for per_session in [false, true] {
            let registry = Registry::new();
            let gauges = Arc::new(Gauges::register(&registry, per_session).unwrap());
            let before = text(&registry);
            let mut tallies: Vec<Tally> = Vec::new();
            for number in 0..100 {
                let mut tally = Tally::new(Arc::clone(&gauges));
                tally.set(SessionState::Unpublished, BTreeMap::new(), "n", &number.to_string());
                tally.set(SessionState::Published, reachable(), "n", &number.to_string());
                tallies.push(tally);
            }
            let during = text(&registry);
            assert!(during.contains("sessions{state=\"published\"} 100\n"), "{during}");
            assert!(during.contains("sessions{state=\"unpublished\"} 0\n"), "{during}");
            assert_eq!(during.matches("session_address_reachable{").count(), if per_session { 100 } else { 0 });
            drop(tallies);
            assert_eq!(text(&registry), before);
        }
    }

    #[test]
    fn b156_a_label_that_an_author_chose_is_escaped() {
        let registry = Registry::new();
        let gauges = Arc::new(Gauges::register(&registry, true).unwrap());
        let mut tally = Tally::new(gauges);
        tally.set(SessionState::Published, reachable(), "My 14\" box\n\\", "id");
        let text = text(&registry);
        assert!(text.contains(r#"namespace="My 14\" box\n\\""#), "{text}");
    }
}
