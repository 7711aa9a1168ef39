//! Whether ports and addresses work, asked again and again (contract 1.11, defect D22).
//!
//! ```text
//! port:     dial the pod ────────────────────────────▶ Flips ─┬▶ Observation
//! address:  HEAD / through the gateway ──▶ judge ────▶ Flips ─┘
//!           (and the pod itself, or a host that nobody has, where that tells more)
//! ```
//!
//! [`port`] and [`address`] ask once. [`judge`](mod@judge) says what an address's answer means.

use std::net::SocketAddr;

use cofferdam_model::endpoints::Identity;
use cofferdam_model::policy::ProbeHost;

use crate::desired::Proof;

pub mod address;
pub mod head;
pub mod judge;
pub mod port;
#[cfg(test)]
pub(crate) mod testing;
pub mod tls;

pub use tls::Tls;

/// What is known of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Whether it takes connections on the node; none while that is not known.
    pub listening: Option<Result<(), Closed>>,
    /// Whether its address works through the gateway; none while that is not known.
    pub address: Option<Result<Identity, Failure>>,
}

/// Why a port takes no connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// Nothing listens, or only on loopback.
    Refused,
    /// Nobody answers: a firewall, or a pod that hangs.
    TimedOut,
    /// There is no way to the pod.
    Unreachable,
}

/// Why an address does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The gateway takes no connection, or answers nothing. How, in words that follow "the gateway".
    NoAnswer(&'static str),
    /// Something answers, with this status, that is not the session's route.
    NotRouted(u16),
    /// The route answers with this status, and the pod itself does not.
    BadGateway(u16),
    /// No TLS comes about. Why, as a clause of its own.
    TlsFailed(&'static str),
    /// It is not known where to ask.
    NoProbeAddress,
}

/// Where and how an address is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Where the gateway takes connections; none while that is not known.
    pub via: Option<Via>,
    /// How to speak to it; none for plain text.
    pub tls: Option<Tls>,
    /// Host header and SNI.
    pub host: String,
    /// The base domain, below which a host that nobody has is asked for where there is no proof.
    pub base_domain: String,
    /// The route's secrets; none where it cannot hold them.
    pub proof: Option<Proof>,
}

/// Where connections are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via {
    /// By number or by name; a name is looked up for every question.
    pub host: ProbeHost,
    /// The port.
    pub port: u16,
}

impl From<SocketAddr> for Via {
    fn from(address: SocketAddr) -> Self {
        Self { host: ProbeHost::Address(address.ip()), port: address.port() }
    }
}
