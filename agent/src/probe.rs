//! Whether ports and addresses work, asked again and again (contract 1.11, defect D22).

use std::net::SocketAddr;
use std::sync::Arc;

use cofferdam_model::endpoints::Identity;
use cofferdam_model::policy::Scheme;

use crate::desired::Proof;

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
    /// The gateway takes no connection, or answers nothing. How.
    NoAnswer(&'static str),
    /// Something answers, with this status, that is not the session's route.
    NotRouted(u16),
    /// The route answers with this status, and the pod itself does not.
    BadGateway(u16),
    /// No TLS comes about.
    TlsFailed(&'static str),
    /// It is not known where to ask.
    NoProbeAddress,
}

/// Where and how an address is asked.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where the gateway takes connections.
    pub via: SocketAddr,
    /// How to speak to it.
    pub scheme: Scheme,
    /// Trusted by TLS; none to trust any certificate.
    pub roots: Option<Arc<rustls::RootCertStore>>,
    /// Host header and SNI.
    pub host: String,
    /// The base domain, below which a host that nobody has is asked for where there is no proof.
    pub base_domain: String,
    /// The route's secrets; none where it cannot hold them.
    pub proof: Option<Proof>,
    /// The pod itself.
    pub pod: SocketAddr,
}
