//! Routing, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::Given;

/// Whether sessions get an address, and where it is.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Routing")]
pub(in crate::policy) struct RoutingFile {
    /// The domain below which each session has its hosts, such as sessions.example.com. Without one there are no
    /// addresses.
    pub(in crate::policy) base_domain: Option<Given<String>>,
    /// Which kind of object makes an address.
    pub(in crate::policy) mode: Option<RoutingModeFile>,
    /// The namespace whose hosts are `<port>-<id>`. Elsewhere a hash of the namespace follows. Empty for none.
    pub(in crate::policy) home_namespace: Option<Given<String>>,
    /// The Gateway that routes are attached to.
    pub(in crate::policy) gateway: Option<GatewayFile>,
    /// What Ingresses are made of.
    pub(in crate::policy) ingress: Option<IngressFile>,
    /// How addresses are shown to people.
    #[serde(rename = "publicURL")]
    pub(in crate::policy) public_url: Option<PublicUrlFile>,
    /// Whether an HTTPRoute answers a probe with a secret that only it holds.
    pub(in crate::policy) proof: Option<ProofFile>,
    /// Where addresses are probed.
    pub(in crate::policy) probe: Option<ProbeFile>,
    /// A route that the routing layer has not taken for so many seconds is reported with what to check.
    #[schemars(range(min = 1, max = 3600))]
    pub(in crate::policy) deadline_seconds: Option<Given<i64>>,
    /// So many probes in a row have to fail until what worked is reported as unreachable.
    #[schemars(range(min = 1, max = 100))]
    pub(in crate::policy) failures: Option<Given<i64>>,
}

/// Which kind of object makes an address.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RoutingMode")]
pub(in crate::policy) enum RoutingModeFile {
    /// Whichever is configured, then whichever is installed.
    Auto,
    /// Gateway API's HTTPRoute.
    Gateway,
    /// Ingress.
    Ingress,
    /// None: sessions have no address.
    None,
}

/// The Gateway that routes are attached to.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Gateway")]
pub(in crate::policy) struct GatewayFile {
    /// Its name. Empty for a layer that is not configured.
    pub(in crate::policy) name: Option<Given<String>>,
    /// Its namespace, without which a name means nothing.
    pub(in crate::policy) namespace: Option<Given<String>>,
    /// The name of one of its listeners, a route's `sectionName`. Empty for all that take the route.
    pub(in crate::policy) listener: Option<Given<String>>,
}

/// What Ingresses are made of.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Ingress")]
pub(in crate::policy) struct IngressFile {
    /// Their `ingressClassName`. Empty for a layer that is not configured.
    pub(in crate::policy) class_name: Option<Given<String>>,
    /// A Secret with a certificate for all hosts, in each namespace of sessions. Empty for none. A Gateway has its
    /// certificate in its listener, so there it is refused.
    pub(in crate::policy) tls_secret: Option<Given<String>>,
}

/// How addresses are shown to people.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "PublicURL")]
pub(in crate::policy) struct PublicUrlFile {
    /// What they begin with.
    pub(in crate::policy) scheme: Option<SchemeFile>,
    /// Their port. 0 for the scheme's own.
    #[schemars(range(min = 0, max = 65535))]
    pub(in crate::policy) port: Option<Given<i64>>,
}

/// What addresses begin with.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Scheme")]
pub(in crate::policy) enum SchemeFile {
    /// In plain text.
    Http,
    /// By TLS.
    Https,
}

/// Whether an HTTPRoute answers a probe with a secret that only it holds.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Proof")]
pub(in crate::policy) enum ProofFile {
    /// Where the Gateway's class is known to be able to.
    Auto,
    /// Always.
    On,
    /// Never: that an address answers does not say who does.
    Off,
}

/// Where addresses are probed.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Probe")]
pub(in crate::policy) struct ProbeFile {
    /// Where the routing layer takes connections: an IP address, with or without a port, or a name with one. Empty for
    /// what the status of the Gateway or Ingress says.
    pub(in crate::policy) address: Option<Given<String>>,
    /// `http` or `https`. Empty for what the listener, or the Ingress, speaks.
    #[schemars(regex(pattern = "^(https?)?$"))]
    pub(in crate::policy) scheme: Option<Given<String>>,
    /// PEM certificates, one of which has to have signed the routing layer's. Empty to take any.
    pub(in crate::policy) ca_bundle: Option<Given<String>>,
}
