//! Whether ports and addresses work, asked again and again (contract 1.11, defect D22).
//!
//! ```text
//! port:     dial the pod ────────────────────────────▶ Flips ─┬▶ Observation
//! address:  HEAD / through the gateway ──▶ judge ────▶ Flips ─┘
//!           (and the pod itself, or a host that nobody has, where that tells more)
//! ```
//!
//! [`port`] and [`address`] ask once. [`judge`](mod@judge) says what an address's answer means, [`flips`] when that
//! changes a verdict, [`pace`] when to ask again, [`budget`] how many questions the whole agent asks.
//! [`watch`] does all that for the ports of a session.

use std::net::SocketAddr;

use cofferdam_model::endpoints::Identity;
use cofferdam_model::policy::ProbeHost;

use crate::desired::Proof;

pub(crate) mod address;
pub(crate) mod budget;
pub(crate) mod flips;
pub(crate) mod head;
pub(crate) mod judge;
mod loops;
mod names;
pub(crate) mod pace;
pub(crate) mod port;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tls;
pub(crate) mod watch;

pub(crate) use tls::Tls;
pub(crate) use watch::{Aim, Prober, Record, Watch};

/// What is known of one port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observation {
    /// Whether it takes connections on the node; none while that is not known.
    pub listening: Option<Result<(), Closed>>,
    /// What dialling has found so far, while it is not known whether that counts.
    pub so_far: Option<Closed>,
    /// Whether its address works through the gateway; none while that is not known.
    pub address: Option<Result<Identity, Failure>>,
}

/// What was known of one port before anybody here had asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// As far as it can be told again. What of it is bad has been waited for.
    pub seen: Observation,
    /// Whether its address did not work: it has been waited for too, and how it fails has to be asked.
    pub was_unreachable: bool,
}

/// Why a port takes no connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    /// Nothing listens, or only on loopback.
    Refused,
    /// Nobody answers: a firewall, or a pod that hangs.
    TimedOut,
    /// There is no way to the pod.
    Unreachable,
}

/// Why an address does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
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

/// How a gateway answers nothing that may be waiting for the program.
const SLOW: &str = "does not answer in time; it may be waiting for the program";

impl Failure {
    /// Whether it may be the program that has not begun, and not the gateway's own doing.
    pub(crate) fn may_be_the_program(&self) -> bool {
        matches!(self, Self::BadGateway(_) | Self::NoAnswer(SLOW))
    }
}

/// What is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A port, on the node.
    Port,
    /// An address, through the gateway.
    Address,
}

/// What became of a probe, for those who count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is reached.
    Ok,
    /// No connection is taken.
    Refused,
    /// No connection, or no answer, in time.
    TimedOut,
    /// There is no way there.
    Unreachable,
    /// The connection ends without an answer.
    NoAnswer,
    /// [`Failure::NotRouted`].
    NotRouted,
    /// [`Failure::BadGateway`].
    BadGateway,
    /// [`Failure::TlsFailed`].
    TlsFailed,
    /// Anything else: no HTTP, a name that is not resolved, a probe that could not be made.
    Other,
}

/// Where and how an address is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
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
pub(crate) struct Via {
    /// By number or by name; a name is looked up every few seconds.
    pub host: ProbeHost,
    /// The port.
    pub port: u16,
}

impl From<SocketAddr> for Via {
    fn from(address: SocketAddr) -> Self {
        Self { host: ProbeHost::Address(address.ip()), port: address.port() }
    }
}

impl Kind {
    /// As a metric's label.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Address => "address",
        }
    }
}

impl Outcome {
    /// All of them.
    pub(crate) const ALL: [Self; 9] = [
        Self::Ok,
        Self::Refused,
        Self::TimedOut,
        Self::Unreachable,
        Self::NoAnswer,
        Self::NotRouted,
        Self::BadGateway,
        Self::TlsFailed,
        Self::Other,
    ];

    /// As a metric's label.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::Unreachable => "unreachable",
            Self::NoAnswer => "no_answer",
            Self::NotRouted => "not_routed",
            Self::BadGateway => "bad_gateway",
            Self::TlsFailed => "tls_failed",
            Self::Other => "other",
        }
    }
}

impl From<Closed> for Outcome {
    fn from(closed: Closed) -> Self {
        match closed {
            Closed::Refused => Self::Refused,
            Closed::TimedOut => Self::TimedOut,
            Closed::Unreachable => Self::Unreachable,
        }
    }
}

impl From<port::Dial> for Outcome {
    fn from(dial: port::Dial) -> Self {
        match dial {
            port::Dial::Open => Self::Ok,
            port::Dial::Closed(closed) => closed.into(),
            port::Dial::NotMade => Self::Other,
        }
    }
}
