//! Which ports of a pod are published.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::keys;

/// The most ports that a session may have: each TCP port is a route, and all of a session's fit one `EndpointSlice`.
pub const MOST: usize = 32;

/// Where a program's inspector listens, if a client asked for one. It is published only where the program serves it itself.
pub const INSPECTOR: u16 = 9230;

/// TCP before UDP: a gateway was seen to pick a Service's port by its number alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Routed.
    Tcp,
    /// In the Service, and no further.
    Udp,
}

/// One port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// 1 to 65535.
    pub number: u16,
    /// Of which protocol.
    pub protocol: Protocol,
}

/// A session's ports: each once, TCP first, then by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports(Vec<Port>);

/// Why a pod's ports cannot be told. The messages say what to write instead, and repeat nothing of the pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortsError {
    /// A part of the annotation is no port.
    #[error("part {part} of the list is no port; write numbers from 1 to 65535, such as `3000/tcp,4000/udp`")]
    NotAPort {
        /// Which one, counted from 1.
        part: usize,
    },
    /// A part of the annotation is a port of another protocol.
    #[error("part {part} of the list is of a protocol that is not published; write tcp or udp, such as `3000/tcp`")]
    NotPublished {
        /// Which one, counted from 1.
        part: usize,
    },
    /// More than [`MOST`].
    #[error("names more than {MOST} ports; list those to publish in the annotation {}", keys::PORTS)]
    TooMany,
}

impl Ports {
    /// Reads the annotation [`keys::PORTS`]: numbers, each with `/tcp`, `/udp` or neither for TCP, between commas. An
    /// empty one asks for no port.
    pub fn parse(text: &str) -> Result<Self, PortsError> {
        let listed = text.split(',').map(str::trim).enumerate().filter(|(_, part)| !part.is_empty());
        Self::sorted(listed.map(|(index, part)| listed_port(index + 1, part)).collect::<Result<_, _>>()?)
    }

    /// The ports of a pod: those of its annotation, or else those that its containers and native sidecars declare. Of
    /// those, what is no port of TCP or UDP is left out.
    pub fn of(pod: &Value) -> Result<Self, PortsError> {
        if let Some(text) = pod["metadata"]["annotations"][keys::PORTS].as_str() {
            return Self::parse(text);
        }
        let list = |key: &str| pod["spec"][key].as_array().into_iter().flatten();
        let sidecars = list("initContainers").filter(|container| container["restartPolicy"] == "Always");
        let declared = list("containers").chain(sidecars).filter_map(|container| container["ports"].as_array());
        Self::sorted(declared.flatten().filter_map(declared_port).collect())
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = Port> + '_ {
        self.0.iter().copied()
    }

    /// The numbers of those that are routed.
    pub fn tcp(&self) -> impl Iterator<Item = u16> + '_ {
        self.iter().filter(|port| port.protocol == Protocol::Tcp).map(|port| port.number)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of them that are among `others` too.
    #[must_use]
    pub fn among(&self, others: &Self) -> Self {
        Self(self.iter().filter(|port| others.0.contains(port)).collect())
    }

    fn sorted(mut ports: Vec<Port>) -> Result<Self, PortsError> {
        ports.sort_by_key(|port| (port.protocol, port.number));
        ports.dedup();
        if ports.len() > MOST { Err(PortsError::TooMany) } else { Ok(Self(ports)) }
    }
}

/// `part` is which of the list it is, for messages.
fn listed_port(part: usize, text: &str) -> Result<Port, PortsError> {
    let (number, protocol) = text.split_once('/').map_or((text, "tcp"), |(number, name)| (number.trim(), name.trim()));
    // `parse` alone would take a sign.
    let number = Some(number).filter(|number| number.bytes().all(|b| b.is_ascii_digit()));
    let number = number.and_then(|number| number.parse().ok()).filter(|number| *number > 0);
    let number = number.ok_or(PortsError::NotAPort { part })?;
    match protocol.to_ascii_lowercase().as_str() {
        "tcp" => Ok(Port { number, protocol: Protocol::Tcp }),
        "udp" => Ok(Port { number, protocol: Protocol::Udp }),
        _ => Err(PortsError::NotPublished { part }),
    }
}

fn declared_port(declared: &Value) -> Option<Port> {
    let protocol = match declared["protocol"].as_str() {
        None | Some("" | "TCP") => Protocol::Tcp,
        Some("UDP") => Protocol::Udp,
        _ => return None,
    };
    let number = declared["containerPort"].as_u64().and_then(|number| u16::try_from(number).ok());
    Some(Port { number: number.filter(|number| *number > 0)?, protocol })
}

impl Protocol {
    /// As in an annotation and in the name of a Service's port.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// As in the annotation: `3000/tcp`.
impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.protocol.as_str())
    }
}

/// As the annotation could say it; empty for none.
impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, port) in self.0.iter().enumerate() {
            write!(f, "{}{port}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
