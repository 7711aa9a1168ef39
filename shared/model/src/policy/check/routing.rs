//! Whether sessions get an address.

use super::{Checked, Checker};
use crate::{
    names::is_dns_name,
    policy::{
        Routing, RoutingMode,
        file::{RoutingFile, RoutingModeFile},
    },
};

/// Longest base domain. `<port>-<id>--<hash>.` takes 64 characters of the 253 that a host may have.
const BASE_DOMAIN: usize = 189;

impl Checker<'_> {
    pub(super) fn routing(&self, file: RoutingFile) -> Checked<Routing> {
        let base_domain = file.base_domain.filter(|domain| !domain.value.is_empty());
        if let Some(domain) = &base_domain
            && (!is_dns_name(&domain.value) || domain.value.len() > BASE_DOMAIN)
        {
            let problem = format!(
                "must be a domain in lower case of at most {BASE_DOMAIN} characters, such as sessions.example.com, \
                 without scheme, `*.` and final dot"
            );
            return Err(self.invalid(domain.line, "baseDomain", problem));
        }
        Ok(Routing {
            base_domain: base_domain.map(|domain| domain.value),
            mode: match file.mode {
                Some(RoutingModeFile::Auto) | None => RoutingMode::Auto,
                Some(RoutingModeFile::Gateway) => RoutingMode::Gateway,
                Some(RoutingModeFile::Ingress) => RoutingMode::Ingress,
                Some(RoutingModeFile::None) => RoutingMode::None,
            },
            ..Routing::default()
        })
    }
}
