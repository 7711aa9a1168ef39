//! The certificate of the moment, as rustls asks for it.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::ring;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

use crate::certificate::Certificate;

/// Older versions are refused: every client that calls us has spoken 1.2 for a decade.
const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];

/// The certificate that new connections get. Those that are open keep theirs.
#[derive(Debug)]
pub struct Current {
    certificate: ArcSwap<Certificate>,
}

impl Current {
    /// Begins with `certificate`.
    #[must_use]
    pub fn new(certificate: Certificate) -> Self {
        Self { certificate: ArcSwap::from_pointee(certificate) }
    }

    /// From now on `certificate`.
    pub fn swap(&self, certificate: Certificate) {
        self.certificate.store(Arc::new(certificate));
    }

    /// When the current certificate expires, in seconds since 1970.
    #[must_use]
    pub fn expires_unix_seconds(&self) -> u64 {
        self.certificate.load().expires_unix_seconds()
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.certificate.load().key))
    }
}

/// Settings of a TLS server that serves `current` and offers `protocols` (ALPN, best first).
///
/// Sessions are not resumed, so that every new connection sees the certificate of the moment. Fails only if the
/// cryptography knows none of our versions.
pub fn server_config(current: Arc<Current>, protocols: &[&str]) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&VERSIONS)?
        .with_no_client_auth()
        .with_cert_resolver(current);
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}
