//! Where addresses are probed.

use std::net::{IpAddr, Ipv6Addr};

use super::{Checked, Checker};
use crate::{
    names::is_dns_name,
    policy::{
        ProbeAddress, ProbeHost, ProbeRouting, Scheme, did_you_mean,
        file::{routing::ProbeFile, value::Given},
    },
};

/// What stands around a certificate in PEM (RFC 7468).
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

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
        } else if !holds_certificates(&given.value) {
            "must hold certificates in PEM, each from `-----BEGIN CERTIFICATE-----` to `-----END CERTIFICATE-----`"
        } else if scheme == Some(Scheme::Http) {
            "means nothing where `scheme` is http; leave one of them out"
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

/// Whether there is a certificate, and each that begins also ends and has something in between that can be one.
fn holds_certificates(text: &str) -> bool {
    let mut blocks = text.split(BEGIN).skip(1).peekable();
    let is_base64 = |b: u8| b.is_ascii_alphanumeric() || b"+/=".contains(&b) || b.is_ascii_whitespace();
    let is_certificate = |block: &str| {
        let body = block.split_once(END).map(|(body, _)| body);
        body.is_some_and(|body| !body.trim().is_empty() && body.bytes().all(is_base64))
    };
    blocks.peek().is_some() && blocks.all(is_certificate)
}
