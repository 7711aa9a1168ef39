//! Whether sessions get an address.

/// What the webhook knows of routing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// The domain below which sessions have their hosts; without one there are no addresses.
    pub base_domain: Option<String>,
    /// Which kind of object makes an address.
    pub mode: RoutingMode,
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

impl Routing {
    /// Whether sessions get an address.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.base_domain.is_some() && self.mode != RoutingMode::None
    }
}
