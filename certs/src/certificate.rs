//! A certificate that may be served: everything that can be checked without the client is.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError as TlsCertificateError, InconsistentKeys};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::time::ASN1Time;

use crate::files::Contents;

/// How far ahead of us an issuer's clock may be: a certificate is used seconds after it was issued.
const CLOCK_SKEW: Duration = Duration::from_mins(1);

/// A chain with its key, checked.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub(crate) key: Arc<CertifiedKey>,
    expires: SystemTime,
}

/// Why a certificate is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The chain file is not PEM.
    #[error("the certificate file is not PEM")]
    ChainPem(#[source] pem::Error),
    /// The chain file has no certificate in it.
    #[error("the certificate file holds no certificate")]
    NoCertificate,
    /// The key file is not PEM, or holds no private key.
    #[error("the key file holds no private key in PEM")]
    KeyPem(#[source] pem::Error),
    /// A block of the chain is no X.509 certificate.
    #[error("certificate {position} of the chain cannot be parsed")]
    Malformed {
        /// Counted from 1.
        position: usize,
    },
    /// The key is of a kind that cannot be used, or broken.
    #[error("the private key cannot be used")]
    Key(#[source] rustls::Error),
    /// Certificate and key are of different generations, or of different services.
    #[error("the private key does not belong to the certificate; is a renewal half written?")]
    Mismatch,
    /// The time is over.
    #[error("certificate {position} of the chain expired at {at}; renew it")]
    Expired {
        /// Counted from 1.
        position: usize,
        /// When.
        at: ASN1Time,
    },
    /// The time has not come.
    #[error("certificate {position} of the chain is valid only from {from}; is a clock wrong?")]
    NotYetValid {
        /// Counted from 1.
        position: usize,
        /// When.
        from: ASN1Time,
    },
    /// Clients that ask for this name would refuse the certificate.
    #[error("the certificate is not for {name}; add that to its DNS names")]
    WrongName {
        /// One of the names that were asked for.
        name: String,
    },
}

impl Certificate {
    /// Checks that the chain parses, the key belongs to it, it is valid at `now`, and it covers all `names`.
    pub fn check(
        contents: &Contents,
        names: &[ServerName<'static>],
        now: SystemTime,
    ) -> Result<Self, CertificateError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&contents.chain)
            .collect::<Result<_, _>>()
            .map_err(CertificateError::ChainPem)?;
        let expires = check_dates(&chain, now)?;
        let key = PrivateKeyDer::from_pem_slice(&contents.key).map_err(CertificateError::KeyPem)?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => CertificateError::Mismatch,
            rustls::Error::InvalidCertificate(TlsCertificateError::BadEncoding) => {
                CertificateError::Malformed { position: 1 }
            }
            other => CertificateError::Key(other),
        })?;
        check_names(&key, names)?;
        Ok(Self { key: Arc::new(key), expires })
    }

    /// When the first certificate of the chain expires, in seconds since 1970.
    #[must_use]
    pub fn expires_unix_seconds(&self) -> u64 {
        seconds(self.expires)
    }
}

/// Checks the dates of the whole chain and returns the first end.
fn check_dates(chain: &[CertificateDer<'_>], now: SystemTime) -> Result<SystemTime, CertificateError> {
    let mut expires = None;
    for (position, der) in (1..).zip(chain) {
        let Ok((rest, certificate)) = X509Certificate::from_der(der) else {
            return Err(CertificateError::Malformed { position });
        };
        if !rest.is_empty() {
            return Err(CertificateError::Malformed { position });
        }
        let validity = certificate.validity();
        let (from, until) = (time(validity.not_before), time(validity.not_after));
        if now + CLOCK_SKEW < from {
            return Err(CertificateError::NotYetValid { position, from: validity.not_before });
        }
        if until < now {
            return Err(CertificateError::Expired { position, at: validity.not_after });
        }
        expires = Some(expires.map_or(until, |first: SystemTime| first.min(until)));
    }
    expires.ok_or(CertificateError::NoCertificate)
}

fn check_names(key: &CertifiedKey, names: &[ServerName<'static>]) -> Result<(), CertificateError> {
    let malformed = |_| CertificateError::Malformed { position: 1 };
    let leaf = key.end_entity_cert().map_err(malformed)?;
    let leaf = ParsedCertificate::try_from(leaf).map_err(malformed)?;
    names
        .iter()
        .find(|name| verify_server_name(&leaf, name).is_err())
        .map_or(Ok(()), |name| Err(CertificateError::WrongName { name: name.to_str().into_owned() }))
}

/// Dates before 1970 are as good as 1970: long over.
fn time(date: ASN1Time) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(date.timestamp()).unwrap_or(0))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
