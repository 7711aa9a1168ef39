//! Gauges that are sums over sessions: each session puts its part in, moves it, and takes it out when it ends.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

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
    each: Option<Arc<Each>>,
}

/// Series that are named for sessions.
#[derive(Debug)]
struct Each {
    reachable: IntGaugeVec,
    /// By the labels of a series, the pods that have it, and those of them whose address works: a pod that goes may be there
    /// for a while after another took its id over.
    pods: Mutex<HashMap<[String; 3], (i64, i64)>>,
}

/// A pod's part in a series. Dropped, it is taken out, and with the last the series.
#[derive(Debug)]
struct Part {
    each: Arc<Each>,
    labels: [String; 3],
    works: bool,
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
                let help = "Whether the address of a session's port works.";
                let reachable = gauge("session_address_reachable", help, &["namespace", "session", "port"])?;
                Some(Arc::new(Each { reachable, pods: Mutex::default() }))
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

impl Each {
    fn part(self: &Arc<Self>, labels: [String; 3], works: bool) -> Part {
        self.move_by(&labels, works, 1);
        Part { each: Arc::clone(self), labels, works }
    }

    fn move_by(&self, labels: &[String; 3], works: bool, by: i64) {
        // Held until the series says so too, or another pod's part could come between.
        let mut all = self.pods.lock().unwrap_or_else(PoisonError::into_inner);
        let (pods, working) = all.entry(labels.clone()).or_default();
        *pods += by;
        *working += if works { by } else { 0 };
        if *pods > 0 {
            self.reachable.with_label_values(labels).set(i64::from(*working > 0));
        } else {
            all.remove(labels);
            // It is there: whoever took part has set it.
            let _ = self.reachable.remove_label_values(labels);
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.each.move_by(&self.labels, self.works, -1);
    }
}

/// One session's part in the gauges. Dropped, it is taken out.
#[derive(Debug)]
pub(crate) struct Tally {
    gauges: Arc<Gauges>,
    session: Option<SessionState>,
    ports: BTreeMap<u16, PortState>,
    /// In the series of its own, where those are switched on.
    parts: Vec<Part>,
}

impl Tally {
    pub(super) fn new(gauges: Arc<Gauges>) -> Self {
        Self { gauges, session: None, ports: BTreeMap::new(), parts: Vec::new() }
    }

    /// The session is this now, its ports are these. `namespace` and `id` name its own series.
    pub(crate) fn set(&mut self, session: SessionState, ports: BTreeMap<u16, PortState>, namespace: &str, id: &str) {
        if self.session == Some(session) && self.ports == ports {
            return;
        }
        self.gauges.move_by(self.session, &self.ports, -1);
        self.gauges.move_by(Some(session), &ports, 1);
        if let Some(each) = &self.gauges.each {
            let part = |(port, state): (&u16, &PortState)| {
                let works = state.address.is_some_and(|(state, _)| state == "reachable");
                each.part([namespace.to_owned(), id.to_owned(), port.to_string()], works)
            };
            self.parts = ports.iter().map(part).collect();
        }
        (self.session, self.ports) = (Some(session), ports);
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.gauges.move_by(self.session, &self.ports, -1);
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
        port(("reachable", "proved"))
    }

    fn port(address: (&'static str, &'static str)) -> BTreeMap<u16, PortState> {
        let state = PortState { route: Some("programmed"), listening: Some("reachable"), address: Some(address) };
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
    fn a_series_goes_with_the_last_pod_that_has_it() {
        let registry = Registry::new();
        let gauges = Arc::new(Gauges::register(&registry, true).unwrap());
        let before = text(&registry);
        let says = |value: u8| {
            let series = format!("session_address_reachable{{namespace=\"n\",port=\"3000\",session=\"id\"}} {value}\n");
            assert!(text(&registry).contains(&series), "not {series}{}", text(&registry));
        };
        let [mut first, mut second] = [(); 2].map(|()| Tally::new(Arc::clone(&gauges)));
        first.set(SessionState::Published, reachable(), "n", "id");
        second.set(SessionState::Published, reachable(), "n", "id");
        first.set(SessionState::Finished, port(("unreachable", "unproved")), "n", "id");
        says(1);
        drop(first);
        says(1);
        second.set(SessionState::Published, port(("unreachable", "unproved")), "n", "id");
        says(0);
        drop(second);
        assert_eq!(text(&registry), before);
        assert!(gauges.each.as_ref().unwrap().pods.lock().unwrap().is_empty());
    }
}
