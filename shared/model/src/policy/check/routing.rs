//! Whether sessions get an address, and where it is.

use super::{Checked, Checker};
use crate::{
    names::{LABEL, is_dns_label, is_dns_name, is_object_name},
    policy::{
        ParentGateway, ProofMode, PublicUrl, Routing, RoutingMode, Scheme,
        file::{
            routing::{GatewayFile, IngressFile, ProofFile, PublicUrlFile, RoutingFile, RoutingModeFile, SchemeFile},
            value::Given,
        },
    },
};

/// Longest base domain. `<port>-<id>--<hash>.` takes 64 characters of the 253 that a host may have.
const BASE_DOMAIN: usize = 189;

/// Whether a namespace can have that name.
fn is_namespace(name: &str) -> bool {
    is_dns_label(name, LABEL)
}

impl Checker<'_> {
    pub(super) fn routing(&self, file: RoutingFile) -> Checked<Routing> {
        let defaults = Routing::default();
        let mode = match file.mode {
            Some(RoutingModeFile::Auto) => RoutingMode::Auto,
            Some(RoutingModeFile::Gateway) => RoutingMode::Gateway,
            Some(RoutingModeFile::Ingress) => RoutingMode::Ingress,
            Some(RoutingModeFile::None) => RoutingMode::None,
            None => defaults.mode,
        };
        let gateway = self.gateway(file.gateway.unwrap_or_default())?;
        let (ingress_class, ingress_tls_secret) =
            self.ingress(file.ingress.unwrap_or_default(), mode, gateway.is_some())?;
        Ok(Routing {
            base_domain: self.base_domain(file.base_domain)?,
            mode,
            // One, so that no two namespaces can ever want the same host.
            home_namespace: match file.home_namespace {
                Some(home) => self.name("homeNamespace", Some(home), is_namespace, "one namespace")?,
                None => defaults.home_namespace,
            },
            gateway,
            ingress_class,
            ingress_tls_secret,
            public_url: self.public_url(&file.public_url.unwrap_or_default(), &defaults.public_url)?,
            proof: match file.proof {
                Some(ProofFile::Auto) => ProofMode::Auto,
                Some(ProofFile::On) => ProofMode::On,
                Some(ProofFile::Off) => ProofMode::Off,
                None => defaults.proof,
            },
            probe: self.probe(file.probe.unwrap_or_default())?,
            deadline_seconds: self.within(
                "deadlineSeconds",
                file.deadline_seconds,
                defaults.deadline_seconds,
                1..=3600,
            )?,
            failures: self.within("failures", file.failures, defaults.failures, 1..=100)?,
        })
    }

    fn base_domain(&self, domain: Option<Given<String>>) -> Checked<Option<String>> {
        match domain.filter(|domain| !domain.value.is_empty()) {
            Some(domain) if !is_dns_name(&domain.value) || domain.value.len() > BASE_DOMAIN => {
                let problem = format!(
                    "must be a domain in lower case of at most {BASE_DOMAIN} characters, such as sessions.example.com, \
                     without scheme, `*.` and final dot"
                );
                Err(self.invalid(domain.line, "baseDomain", problem))
            }
            domain => Ok(domain.map(|domain| domain.value)),
        }
    }

    fn gateway(&self, file: GatewayFile) -> Checked<Option<ParentGateway>> {
        let lines = [("namespace", &file.namespace), ("listener", &file.listener)];
        let given = lines.map(|(key, given)| (key, given.as_ref().filter(|given| !given.value.is_empty())));
        let without_name = given.into_iter().find_map(|(key, given)| given.map(|given| (key, given.line)));
        let line = file.name.as_ref().map_or(0, |name| name.line);
        let Some(name) = self.name("name", file.name, is_object_name, "a Gateway")? else {
            return match without_name {
                Some((key, line)) => {
                    Err(self.invalid(line, key, "means nothing without the Gateway's `name`; add that"))
                }
                None => Ok(None),
            };
        };
        let namespace = self.name("namespace", file.namespace, is_namespace, "the Gateway's namespace")?;
        // Of several Gateways of one name each would have its own class and address.
        let Some(namespace) = namespace else {
            return Err(self.invalid(line, "name", "means nothing without the Gateway's `namespace`; add that"));
        };
        Ok(Some(ParentGateway {
            name,
            namespace,
            listener: self.name("listener", file.listener, is_object_name, "a listener of the Gateway")?,
        }))
    }

    /// The class, and the Secret. The Secret would be ignored by a Gateway: the file would read as TLS, and requests
    /// go in plain text.
    fn ingress(
        &self,
        file: IngressFile,
        mode: RoutingMode,
        has_gateway: bool,
    ) -> Checked<(Option<String>, Option<String>)> {
        let line = file.tls_secret.as_ref().map_or(0, |secret| secret.line);
        let secret = self.name("tlsSecret", file.tls_secret, is_object_name, "a Secret")?;
        let is_gateways = mode == RoutingMode::Gateway || (mode == RoutingMode::Auto && has_gateway);
        if secret.is_some() && is_gateways {
            let problem = "is for Ingresses, and the routes are a Gateway's: give its listener the certificate, and leave \
                           this empty";
            return Err(self.invalid(line, "tlsSecret", problem));
        }
        Ok((self.name("className", file.class_name, is_object_name, "an IngressClass")?, secret))
    }

    fn public_url(&self, file: &PublicUrlFile, defaults: &PublicUrl) -> Checked<PublicUrl> {
        let port: u16 = self.within("port", file.port, defaults.port.unwrap_or_default(), 0..=u16::MAX)?;
        Ok(PublicUrl {
            scheme: match file.scheme {
                Some(SchemeFile::Http) => Scheme::Http,
                Some(SchemeFile::Https) => Scheme::Https,
                None => defaults.scheme,
            },
            port: Some(port).filter(|port| *port > 0),
        })
    }
}
