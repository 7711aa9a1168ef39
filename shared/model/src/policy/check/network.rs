//! Whom sessions reach, and who reaches them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Checked, Checker};
use crate::policy::{
    Network, NetworkMode,
    file::{
        network::{NetworkFile, NetworkModeFile},
        value::Given,
    },
};

impl Checker<'_> {
    pub(super) fn network(&self, file: NetworkFile) -> Checked<Network> {
        let defaults = Network::default();
        Ok(Network {
            mode: match file.mode {
                Some(NetworkModeFile::Managed) => NetworkMode::Managed,
                Some(NetworkModeFile::Manual) => NetworkMode::Manual,
                None => defaults.mode,
            },
            data_plane_namespaces: match file.data_plane_namespaces {
                Some(names) => self.namespaces("dataPlaneNamespaces", names)?,
                None => defaults.data_plane_namespaces,
            },
            blocked: match file.blocked {
                Some(blocked) => blocked.iter().map(|cidr| self.blocked(cidr)).collect::<Result<_, _>>()?,
                None => defaults.blocked,
            },
        })
    }

    /// A CIDR as a `NetworkPolicy` takes it under `except`: never all there is, and nothing after the prefix, which the
    /// API server is about to refuse.
    fn blocked(&self, cidr: &Given<String>) -> Checked<String> {
        let problem = match Cidr::parse(&cidr.value) {
            None => "must hold CIDRs, such as 10.0.0.0/8 or fc00::/7".to_owned(),
            Some(Cidr { prefix: 0, .. }) => {
                "cannot hold all addresses at once; write two halves, such as 0.0.0.0/1 and \
                                             128.0.0.0/1, or ::/1 and 8000::/1"
                    .to_owned()
            }
            Some(cidr) if cidr.network() != cidr.address => {
                let meant = Cidr { address: cidr.network(), ..cidr };
                format!("holds a CIDR with an address that does not end with its prefix; did you mean {meant}?")
            }
            Some(cidr) => return Ok(cidr.to_string()),
        };
        Err(self.invalid(cidr.line, "blocked", problem))
    }
}

/// An address, and how many of its bits count.
#[derive(Clone, Copy)]
struct Cidr {
    address: IpAddr,
    prefix: u32,
}

impl Cidr {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address = address.parse().ok()?;
        let bits = match address {
            IpAddr::V4(_) => Ipv4Addr::BITS,
            // The same address in two spellings is blocked in only one of them.
            IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => return None,
            IpAddr::V6(_) => Ipv6Addr::BITS,
        };
        let number: u32 = prefix.parse().ok().filter(|number| *number <= bits)?;
        // As Kubernetes writes it: no sign, no zero before it.
        (number.to_string() == prefix).then_some(Self { address, prefix: number })
    }

    /// The address with the bits that do not count set to nothing.
    fn network(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(Ipv4Addr::BITS - self.prefix).unwrap_or_default();
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(Ipv6Addr::BITS - self.prefix).unwrap_or_default();
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        }
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
