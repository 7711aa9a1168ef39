//! What sessions may reach, and who may reach them.

/// The `NetworkPolicy` of session namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Whether the agents keep it, or whoever installs Cofferdam does.
    pub mode: NetworkMode,
    /// Namespaces of the routing layer's data plane, which may reach all ports of sessions.
    pub data_plane_namespaces: Vec<String>,
    /// CIDRs that sessions may not reach, IPv4 and IPv6, each with a prefix of at least one bit and no bits after it;
    /// the internet is all the rest.
    pub blocked: Vec<String>,
}

/// Who keeps the `NetworkPolicy` of session namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkMode {
    /// The agents.
    #[default]
    Managed,
    /// Whoever installs Cofferdam.
    Manual,
}

/// Private, shared, local, link-local with its metadata services, protocol, benchmark, multicast and reserved addresses
/// (RFC 6890), what is translated to IPv4 on the way (RFC 6052, RFC 8215), and the one by which Azure's nodes speak to their host.
const BLOCKED: [&str; 18] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
    "ff00::/8",
];

impl Default for Network {
    fn default() -> Self {
        Self {
            mode: NetworkMode::Managed,
            data_plane_namespaces: Vec::new(),
            blocked: BLOCKED.map(str::to_owned).to_vec(),
        }
    }
}
