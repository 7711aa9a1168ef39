//! The annotation [`crate::keys::ENDPOINTS`]: what is known about each port of a session.
//!
//! The agent writes it, together with the conditions; whoever serves sessions to people reads it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ports::Protocol;
use crate::text::{cut, one_line};

/// The format's version.
const VERSION: u8 = 1;

/// The most bytes of a reason, as JSON writes it: all that is said of 32 ports stays below 64 KiB, a quarter of what
/// all annotations of an object may hold together.
const REASON: usize = 256;

/// All that is known about a session's ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    v: u8,
    /// The ports that this is about, as [`crate::ports::Ports`] displays them: who asked for others has to wait.
    pub for_ports: String,
    /// One for each of them.
    pub ports: Vec<Endpoint>,
}

/// What is known about one port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// Its number.
    pub port: u16,
    /// Its protocol.
    pub protocol: Protocol,
    /// The host name of its route; none for UDP, and where nothing routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What a browser opens; there only where something routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether the routing layer has taken the route; none for UDP, and where nothing routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<State<RouteState>>,
    /// Whether the port takes connections on the node; none for UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listening: Option<State<ListeningState>>,
    /// Whether the address works through the gateway; none for UDP, and where nothing routes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
}

/// A state, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State<S> {
    /// The state.
    pub state: S,
    /// `Word: sentence` on one line, of at most 256 characters; none where there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether the public address works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The state.
    pub state: AddressState,
    /// Whether it is known that this session answers there; none before anything answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// `Word: sentence` on one line, of at most 256 characters; none where there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What the routing layer says of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteState {
    /// Nothing yet.
    Pending,
    /// It has taken it.
    Programmed,
    /// It has not, or not any more.
    Unprogrammed,
}

/// Whether a port takes connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListeningState {
    /// Not known yet.
    Checking,
    /// It does.
    Reachable,
    /// It does not, or not any more.
    Unreachable,
}

/// Whether an address works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressState {
    /// Not known yet.
    Pending,
    /// It does.
    Reachable,
    /// It does not, or not any more.
    Unreachable,
}

/// Who answers at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// This session's route, by the proof that only it holds.
    Proved,
    /// Somebody; the routing layer cannot hold a proof.
    Unproved,
}

impl Endpoints {
    /// Of these ports. Reasons are put on one line and cut where they are too long.
    #[must_use]
    pub fn new(for_ports: String, mut ports: Vec<Endpoint>) -> Self {
        for Endpoint { route, listening, address, .. } in &mut ports {
            let reasons = [
                route.as_mut().map(|route| &mut route.reason),
                listening.as_mut().map(|listening| &mut listening.reason),
                address.as_mut().map(|address| &mut address.reason),
            ];
            for reason in reasons.into_iter().flatten().flatten() {
                *reason = short(reason);
            }
        }
        Self { v: VERSION, for_ports, ports }
    }

    /// Reads the annotation; nothing where it is of another format, so that who cannot read it waits for the next.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|endpoints: &Self| endpoints.v == VERSION)
    }
}

/// As the annotation holds it: JSON on one line, the same for the same facts.
impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// On one line, and cut between two characters.
fn short(reason: &str) -> String {
    cut(&one_line(reason), REASON, |c| if matches!(c, '"' | '\\') { 2 } else { c.len_utf8() })
}

#[cfg(test)]
mod tests;
