//! TLS as a client that probes.

use std::io;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// How to speak TLS to a gateway, or why nobody can. Clones share it; two that trust the same bundle are equal.
///
/// Without a CA bundle any certificate is taken: an image without a CA store could verify none, and a gateway's own
/// test certificate says nothing about a route. Who answers is known by the route's proof, not by the certificate; that
/// browsers take the certificate is claimed by nobody. With one, chain, dates and name are verified. With one that cannot be
/// used no handshake comes about, which is found out as any other failure of an address is.
#[derive(Clone, Debug)]
pub(crate) struct Tls {
    config: Result<Arc<ClientConfig>, Arc<TlsError>>,
    ca_bundle: Option<Arc<str>>,
}

/// Why no handshake can come about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// The bundle holds nobody who could be trusted. A policy that was loaded was checked for that, with the same functions.
    #[error("routing.probe.caBundle holds what is no certificate of an authority")]
    Bundle,
    /// The cryptography knows no version that we would speak.
    #[error("no TLS version can be spoken")]
    Versions(#[source] rustls::Error),
}

impl TlsError {
    /// As a clause of its own.
    fn why(&self) -> &'static str {
        match self {
            Self::Bundle => "routing.probe.caBundle holds what is no certificate of an authority",
            Self::Versions(_) => "no TLS version can be spoken",
        }
    }
}

impl Tls {
    /// Trusts what these PEM certificates have signed; without any, every certificate.
    #[must_use]
    pub(crate) fn new(ca_bundle: Option<&str>) -> Self {
        let config = config(ca_bundle).map(Arc::new).map_err(Arc::new);
        Self { config, ca_bundle: ca_bundle.map(Arc::from) }
    }

    /// Why no handshake can come about; none where one can.
    #[must_use]
    pub(crate) fn error(&self) -> Option<&TlsError> {
        self.config.as_ref().err().map(Arc::as_ref)
    }

    /// What connections are made with.
    ///
    /// # Errors
    /// Why none can be, as a clause of its own.
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>, &'static str> {
        self.config.clone().map_err(|error| error.why())
    }
}

fn config(ca_bundle: Option<&str>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Versions)?;
    let mut config = match ca_bundle {
        Some(bundle) => builder.with_root_certificates(roots(bundle)?).with_no_client_auth(),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth(),
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A resumed session would not show that the certificate has expired since.
    config.resumption = Resumption::disabled();
    Ok(config)
}

impl PartialEq for Tls {
    fn eq(&self, other: &Self) -> bool {
        self.ca_bundle == other.ca_bundle
    }
}

impl Eq for Tls {}

fn roots(bundle: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        let certificate = certificate.map_err(|_| TlsError::Bundle)?;
        roots.add(certificate).map_err(|_| TlsError::Bundle)?;
    }
    if roots.is_empty() { Err(TlsError::Bundle) } else { Ok(roots) }
}

/// Why a handshake failed, as a clause of its own.
pub(super) fn why(error: &io::Error) -> &'static str {
    use CertificateError as Bad;
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(bad)) => match bad {
            Bad::Expired | Bad::ExpiredContext { .. } => "the gateway's certificate has expired",
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => "the gateway's certificate is not valid yet",
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => "the gateway's certificate is for other hosts",
            // An issuer of the same name with another key is another issuer.
            Bad::UnknownIssuer | Bad::BadSignature => {
                "routing.probe.caBundle does not hold the issuer of the gateway's certificate"
            }
            _ => "the gateway's certificate cannot be verified",
        },
        Some(rustls::Error::AlertReceived(AlertDescription::UnrecognisedName)) => {
            "the gateway has no certificate for the host"
        }
        Some(rustls::Error::AlertReceived(_)) => "the gateway refuses the handshake",
        Some(rustls::Error::InvalidMessage(_)) => "the gateway does not speak TLS on that port",
        Some(_) => "the gateway's TLS is not compatible",
        None => "the gateway closes the connection during the handshake",
    }
}

/// Takes every certificate, but only from someone who has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
