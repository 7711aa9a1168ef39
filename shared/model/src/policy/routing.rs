//! Whether sessions get an address, and where it is.

use std::{fmt, net::IpAddr};

/// Whether sessions get an address, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// The domain below which sessions have their hosts; without one there are no addresses.
    pub base_domain: Option<String>,
    /// Which kind of object makes an address.
    pub mode: RoutingMode,
    /// The one namespace whose hosts carry no hash of it; none where all do.
    pub home_namespace: Option<String>,
    /// The Gateway that routes are attached to; none for a layer that is not configured.
    pub gateway: Option<ParentGateway>,
    /// The class of Ingresses; none for one that is not configured.
    pub ingress_class: Option<String>,
    /// The Secret with the certificate of all hosts, in the session's namespace; for Ingresses alone.
    pub ingress_tls_secret: Option<String>,
    /// How addresses are shown.
    pub public_url: PublicUrl,
    /// Whether routes carry a proof of who answers.
    pub proof: ProofMode,
    /// Where addresses are probed.
    pub probe: ProbeRouting,
    /// A route that is pending for longer is told with what to look at.
    pub deadline_seconds: u32,
    /// So many failed probes in a row change a verdict.
    pub failures: u32,
}

/// Which kind of object makes an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutingMode {
    /// Whichever is configured, then whichever is installed.
    #[default]
    Auto,
    /// Gateway API's `HTTPRoute`.
    Gateway,
    /// `Ingress`.
    Ingress,
    /// None: sessions have no address.
    None,
}

/// A Gateway, as a route names its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentGateway {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// One of its listeners; none for all that take the route.
    pub listener: Option<String>,
}

/// How addresses are shown to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicUrl {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// None for the scheme's own.
    pub port: Option<u16>,
}

/// How to speak to a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// In plain text.
    Http,
    /// By TLS.
    #[default]
    Https,
}

/// Whether routes carry a proof of who answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProofMode {
    /// Where the routing layer is known to be able to.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// Where addresses are probed; what is none comes from the status of Gateway or Ingress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeRouting {
    /// Where the gateway takes connections.
    pub address: Option<ProbeAddress>,
    /// How to speak to it.
    pub scheme: Option<Scheme>,
    /// PEM certificates that the gateway's must be signed by; none to trust any.
    pub ca_bundle: Option<String>,
}

/// Where a gateway takes connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeAddress {
    /// By number or by name.
    pub host: ProbeHost,
    /// None for the listener's, or the scheme's own.
    pub port: Option<u16>,
}

/// A gateway's address or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeHost {
    /// By number.
    Address(IpAddr),
    /// By a name that the DNS knows.
    Name(String),
}

impl Routing {
    /// Whether sessions get an address.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.base_domain.is_some() && self.mode != RoutingMode::None
    }
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            base_domain: None,
            mode: RoutingMode::Auto,
            home_namespace: Some("cofferdam-sessions".to_owned()),
            gateway: None,
            ingress_class: None,
            ingress_tls_secret: None,
            public_url: PublicUrl { scheme: Scheme::Https, port: None },
            proof: ProofMode::Auto,
            probe: ProbeRouting::default(),
            deadline_seconds: 60,
            failures: 3,
        }
    }
}

impl Scheme {
    /// As in a URL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL without one means.
    #[must_use]
    pub fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl PublicUrl {
    /// The address that is shown for a host.
    #[must_use]
    pub fn of(&self, host: &str) -> String {
        let scheme = self.scheme.as_str();
        match self.port.filter(|port| *port != self.scheme.port()) {
            Some(port) => format!("{scheme}://{host}:{port}/"),
            None => format!("{scheme}://{host}/"),
        }
    }
}

/// As in the policy: an IPv6 address is in brackets where a port follows.
impl fmt::Display for ProbeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.port) {
            (ProbeHost::Address(IpAddr::V6(address)), Some(port)) => write!(f, "[{address}]:{port}"),
            (ProbeHost::Address(address), Some(port)) => write!(f, "{address}:{port}"),
            (ProbeHost::Address(address), None) => write!(f, "{address}"),
            (ProbeHost::Name(name), Some(port)) => write!(f, "{name}:{port}"),
            (ProbeHost::Name(name), None) => f.write_str(name),
        }
    }
}
