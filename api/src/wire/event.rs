//! Events of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why something is missing: it is kept no more. Clients know no other reason.
pub const GAP_REASON: &str = "buffer_evicted";

/// One event: the `data` of a frame, and its `event` is the member `type`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Event {
    /// The session is in another state.
    Status {
        /// Which.
        status: Status,
    },
    /// A step on the way, for people.
    Progress {
        /// Of which app; none for the session's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app: Option<String>,
        /// Which part of the way.
        phase: Phase,
        /// One sentence.
        message: String,
        /// Whether the step is over.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        done: Option<bool>,
    },
    /// An event of the program's own inspector, passed on as it came.
    Debug {
        /// Of which app.
        app: String,
        /// What came.
        frame: serde_json::Value,
    },
    /// Whether the program listens on a port.
    Reachability {
        /// Of which app.
        app: String,
        /// Its number.
        port: u16,
        /// Whether it does.
        state: ListeningState,
    },
    /// Whether the routing layer has taken the route to a port.
    Route {
        /// Of which app.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        app: Option<String>,
        /// The host name of the route.
        host: String,
        /// The port.
        port: u16,
        /// Whether it has.
        state: RouteState,
        /// Why not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A run of an app within a session that outlives it.
    Run {
        /// Of which app.
        app: String,
        /// Which run of it, from 1.
        generation: u64,
        /// How far it is.
        #[serde(flatten)]
        run: RunPhase,
    },
    /// The ports of an app have changed.
    Endpoints {
        /// Of which app.
        app: String,
        /// New ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        added: Vec<Endpoint>,
        /// Those that are gone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        removed: Vec<Endpoint>,
        /// Those that cannot be had.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rejected: Vec<RejectedPort>,
    },
    /// Events that came before are not kept any more. It has no id.
    Gap {
        /// `buffer_evicted`.
        reason: String,
    },
}

/// The state of a session. `exited`, `failed` and `stopped` are final.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Status {
    /// It is on its way.
    Starting,
    /// Its program runs.
    Running {
        /// Where its ports are; none before that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        endpoints: Option<Vec<Endpoint>>,
    },
    /// Its program ended by itself.
    Exited {
        /// With this exit code.
        code: i32,
    },
    /// It could not start, or was ended by something that went wrong.
    Failed {
        /// What went wrong, in one sentence that is safe to show.
        message: String,
    },
    /// Somebody asked for its end.
    Stopped,
}

/// Where a port is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endpoint {
    /// The host name; empty where nothing routes to the port.
    pub host: String,
    /// Its number.
    pub port: u16,
    /// Its protocol.
    pub protocol: PortProtocol,
    /// What a browser opens; only where something routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PortProtocol {
    /// Routed.
    Tcp,
    /// Not routed.
    Udp,
}

/// Which part of the way to a running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nothing is built any more; the word stays in the vocabulary.
    Build,
    /// The cluster makes the pod.
    Provision,
    /// The program starts.
    Boot,
}

/// Whether a program listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListeningState {
    /// Not known yet.
    Checking,
    /// It does.
    Reachable,
    /// It does not, or not any more.
    Unreachable,
}

/// What a routing layer says of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RouteState {
    /// Nothing yet.
    Pending,
    /// It has taken it.
    Programmed,
    /// It has not, or not any more.
    Unprogrammed,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "phase", rename_all = "lowercase")]
pub enum RunPhase {
    /// It has begun.
    Started {
        /// Why.
        trigger: RunTrigger,
    },
    /// It ended by itself.
    Completed {
        /// With this exit code.
        code: i32,
        /// After so many milliseconds.
        #[serde(default, rename = "durationMs", skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// It could not be run.
    Failed {
        /// Why.
        reason: String,
    },
}

/// Why a run has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunTrigger {
    /// With the session.
    Initial,
    /// A file changed.
    Watch,
    /// Somebody asked for it.
    Manual,
    /// The session was resumed.
    Resume,
}

/// A port that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedPort {
    /// Its number.
    pub port: u16,
    /// Why.
    pub reason: String,
}

impl Event {
    /// The member `type`, which is the name of the frame too.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::Progress { .. } => "progress",
            Self::Debug { .. } => "debug",
            Self::Reachability { .. } => "reachability",
            Self::Route { .. } => "route",
            Self::Run { .. } => "run",
            Self::Endpoints { .. } => "endpoints",
            Self::Gap { .. } => "gap",
        }
    }
}

impl Status {
    /// Whether nothing follows.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Exited { .. } | Self::Failed { .. } | Self::Stopped)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_are_what_clients_of_the_contract_read() {
        let endpoint = Endpoint {
            host: "3000-a.example.com".to_owned(),
            port: 3000,
            protocol: PortProtocol::Tcp,
            url: Some("https://3000-a.example.com".to_owned()),
        };
        let shown = json!({"host": "3000-a.example.com", "port": 3000, "protocol": "tcp",
            "url": "https://3000-a.example.com"});
        let app = || "app".to_owned();
        for (event, expected) in [
            (Event::Status { status: Status::Starting }, json!({"type": "status", "status": {"kind": "starting"}})),
            (
                Event::Status { status: Status::Running { endpoints: Some(vec![endpoint.clone()]) } },
                json!({"type": "status", "status": {"kind": "running", "endpoints": [shown]}}),
            ),
            (
                Event::Status { status: Status::Exited { code: 3 } },
                json!({"type": "status", "status": {"kind": "exited", "code": 3}}),
            ),
            (
                Event::Progress { app: None, phase: Phase::Provision, message: "Scheduling".to_owned(), done: None },
                json!({"type": "progress", "phase": "provision", "message": "Scheduling"}),
            ),
            (
                Event::Reachability { app: app(), port: 3000, state: ListeningState::Checking },
                json!({"type": "reachability", "app": "app", "port": 3000, "state": "checking"}),
            ),
            (
                Event::Route {
                    app: Some(app()),
                    host: "h".to_owned(),
                    port: 1,
                    state: RouteState::Unprogrammed,
                    reason: Some("no".to_owned()),
                },
                json!({"type": "route", "app": "app", "host": "h", "port": 1, "state": "unprogrammed", "reason": "no"}),
            ),
            (
                Event::Run { app: app(), generation: 2, run: RunPhase::Completed { code: 0, duration_ms: Some(7) } },
                json!({"type": "run", "app": "app", "generation": 2, "phase": "completed", "code": 0, "durationMs": 7}),
            ),
            (
                Event::Endpoints { app: app(), added: vec![endpoint], removed: vec![], rejected: vec![] },
                json!({"type": "endpoints", "app": "app", "added": [shown]}),
            ),
            (Event::Gap { reason: "buffer_evicted".to_owned() }, json!({"type": "gap", "reason": "buffer_evicted"})),
        ] {
            let written = serde_json::to_value(&event).unwrap();
            assert_eq!(written, expected);
            assert_eq!(written["type"], event.name());
            assert_eq!(serde_json::from_value::<Event>(written).unwrap(), event);
        }
    }
}
