//! Where addresses are probed.

use std::net::{IpAddr, Ipv6Addr};

use rustls_pki_types::{CertificateDer, pem::PemObject};
use webpki::anchor_from_trusted_cert;

use super::{Checked, Checker};
use crate::{
    names::is_dns_name,
    policy::{
        ProbeAddress, ProbeHost, ProbeRouting, Scheme, did_you_mean,
        file::{routing::ProbeFile, value::Given},
    },
};

/// What stands in the beginning of every kind of private key.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

impl Checker<'_> {
    pub(super) fn probe(&self, file: ProbeFile) -> Checked<ProbeRouting> {
        let scheme = self.probe_scheme(file.scheme)?;
        let ca_bundle = self.ca_bundle(file.ca_bundle, scheme)?;
        Ok(ProbeRouting { address: self.probe_address(file.address)?, scheme, ca_bundle })
    }

    fn probe_address(&self, file: Option<Given<String>>) -> Checked<Option<ProbeAddress>> {
        let Some(given) = file.filter(|address| !address.value.is_empty()) else { return Ok(None) };
        let problem = "must be an IP address, with or without a port, or a name with one, such as 10.0.0.7, \
                       10.0.0.7:8443, [fd00::7]:8443 or gateway.example.com:443; without a scheme";
        let address = probe_address(&given.value).ok_or_else(|| self.invalid(given.line, "address", problem))?;
        Ok(Some(address))
    }

    fn probe_scheme(&self, file: Option<Given<String>>) -> Checked<Option<Scheme>> {
        let Some(given) = file else { return Ok(None) };
        match given.value.as_str() {
            "" => Ok(None),
            "http" => Ok(Some(Scheme::Http)),
            "https" => Ok(Some(Scheme::Https)),
            other => {
                let otherwise = || "leave it empty for what the listener speaks".to_owned();
                let hint = did_you_mean(other, ["http", "https"], otherwise);
                Err(self.invalid(given.line, "scheme", format!("must be http, https or empty; {hint}")))
            }
        }
    }

    fn ca_bundle(&self, file: Option<Given<String>>, scheme: Option<Scheme>) -> Checked<Option<String>> {
        let Some(given) = file.filter(|bundle| !bundle.value.is_empty()) else { return Ok(None) };
        let problem = if given.value.contains(PRIVATE_KEY) {
            "holds a private key, which everybody who reads the policy knows now; replace the key, and leave \
             certificates only"
                .to_owned()
        } else if let Some(problem) = problem_of_bundle(&given.value) {
            problem
        } else if scheme == Some(Scheme::Http) {
            "means nothing where `scheme` is http; leave one of them out".to_owned()
        } else {
            return Ok(Some(given.value));
        };
        Err(self.invalid(given.line, "caBundle", problem))
    }
}

/// An address, or a name, and its port.
fn probe_address(text: &str) -> Option<ProbeAddress> {
    if let Ok(address) = text.parse() {
        return Some(ProbeAddress { host: ProbeHost::Address(address), port: None });
    }
    let (host, port) = text.rsplit_once(':')?;
    let port = port_number(port)?;
    let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => ProbeHost::Address(inner.parse::<Ipv6Addr>().ok()?.into()),
        None => match host.parse() {
            Ok(IpAddr::V4(address)) => ProbeHost::Address(address.into()),
            // Without brackets nobody knows where the port begins.
            Ok(IpAddr::V6(_)) => return None,
            Err(_) => ProbeHost::Name(Some(host).filter(|host| is_name(host))?.to_owned()),
        },
    };
    Some(ProbeAddress { host, port: Some(port) })
}

fn port_number(text: &str) -> Option<u16> {
    let digits = Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).filter(|port| *port > 0)
}

/// Whether this is a name and no address that is spelled wrong: no top-level domain is a number.
fn is_name(host: &str) -> bool {
    is_dns_name(host) && !host.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()))
}

/// Why nobody could be trusted by this bundle. It is read as an agent reads it, with the same functions.
fn problem_of_bundle(bundle: &str) -> Option<String> {
    const NO_PEM: &str =
        "must hold certificates in PEM, each from `-----BEGIN CERTIFICATE-----` to `-----END CERTIFICATE-----`";
    let mut certificates = CertificateDer::pem_slice_iter(bundle.as_bytes()).zip(1..).peekable();
    if certificates.peek().is_none() {
        return Some(NO_PEM.to_owned());
    }
    certificates.find_map(|(certificate, position)| match certificate {
        Ok(certificate) if anchor_from_trusted_cert(&certificate).is_ok() => None,
        Ok(_) => Some(format!("must hold X.509 certificates, and the block at position {position} is none")),
        Err(_) => Some(NO_PEM.to_owned()),
    })
}
