//! Requests to registries: bounded in time and size, whatever is at the other end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Hyper;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// How long one request may take, its answer included.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of an answer. A page of a hundred tags of many architectures has one of them.
const LARGEST: usize = 8 << 20;

/// Who asks: registries that count requests count them by name.
const AGENT: &str = concat!("cofferdam-api/", env!("CARGO_PKG_VERSION"));

/// Asks registries.
#[derive(Clone, Debug)]
pub(super) struct Client(Hyper<HttpsConnector<HttpConnector>, Empty<Bytes>>);

/// An answer, all of it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Nobody there, or nobody who can be trusted.
    #[error("cannot reach {host}")]
    Unreachable {
        /// Who was asked.
        host: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It takes its time.
    #[error("{host} did not answer within {} s", TIMEOUT.as_secs())]
    TimedOut {
        /// Who was asked.
        host: String,
    },
    /// It says more than tags can be.
    #[error("{host} answered with more than {LARGEST} bytes")]
    TooLarge {
        /// Who was asked.
        host: String,
    },
    /// An address that is none, or not one to go to.
    #[error("{host} sends us to an address that is not followed: {problem}")]
    Address {
        /// Who sent us.
        host: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

/// Authorities that cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum CaBundleError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The file holds no authorities.
    #[error("{} {problem}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
    /// TLS cannot be set up at all.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}

impl Client {
    /// Trusts the public authorities, and those whose certificates are in `ca_bundle` (PEM).
    pub(super) fn new(ca_bundle: Option<&Path>) -> Result<Self, CaBundleError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(path) = ca_bundle {
            add(&mut roots, path)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(CaBundleError::Tls)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self(Hyper::builder(TokioExecutor::new()).build(connector)))
    }

    /// Redirects are not followed: credentials would go along.
    pub(super) async fn get(&self, uri: &Uri, authorization: Option<&HeaderValue>) -> Result<Answer, RequestError> {
        let asked = tokio::time::timeout(TIMEOUT, self.answer(uri, authorization)).await;
        asked.map_err(|_| RequestError::TimedOut { host: host(uri) })?
    }

    async fn answer(&self, uri: &Uri, authorization: Option<&HeaderValue>) -> Result<Answer, RequestError> {
        let unreachable = |source| RequestError::Unreachable { host: host(uri), source };
        let mut request = Request::get(uri).header(USER_AGENT, AGENT);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Empty::new()).map_err(|error| unreachable(error.into()))?;
        let response = self.0.request(request).await.map_err(|error| unreachable(error.into()))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, LARGEST).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() { RequestError::TooLarge { host: host(uri) } } else { unreachable(error) }
        })?;
        Ok(Answer { status: head.status, headers: head.headers, body: body.to_bytes() })
    }
}

/// Who is asked, for people: no path, no query.
pub(super) fn host(uri: &Uri) -> String {
    uri.authority().map(ToString::to_string).unwrap_or_default()
}

/// Where the next page is, by a reference in the answer to `uri`. It is at the same place: what an answer says decides
/// neither who is asked next nor who gets the credentials.
pub(super) fn next_page(uri: &Uri, reference: &str) -> Result<Uri, RequestError> {
    let strange = |problem| RequestError::Address { host: host(uri), problem };
    let page: Uri = reference.parse().map_err(|_| strange("it is no URL"))?;
    let elsewhere =
        page.authority().is_some_and(|_| (page.scheme(), page.authority()) != (uri.scheme(), uri.authority()));
    if elsewhere {
        return Err(strange("the next page is somewhere else"));
    }
    if !reference.starts_with('/') && page.authority().is_none() {
        return Err(strange("the next page has neither a host nor a whole path"));
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = page.path_and_query().cloned();
    Uri::from_parts(parts).map_err(|_| strange("it is no URL"))
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<(), CaBundleError> {
    let problem = |problem| CaBundleError::Certificates { path: path.to_owned(), problem };
    let pem = fs::read(path).map_err(|source| CaBundleError::Unreadable { path: path.to_owned(), source })?;
    let mut certificates = CertificateDer::pem_slice_iter(&pem).peekable();
    if certificates.peek().is_none() {
        return Err(problem("holds no certificate in PEM"));
    }
    for certificate in certificates {
        let certificate = certificate.map_err(|_| problem("holds something that is no PEM"))?;
        roots.add(certificate).map_err(|_| problem("holds a certificate that no authority can have"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_at_the_same_place() {
        let uri: Uri = "https://r.example:5000/v2/a/tags/list?n=2".parse().unwrap();
        for (reference, page) in [
            ("/v2/a/tags/list?last=b&n=2", "https://r.example:5000/v2/a/tags/list?last=b&n=2"),
            ("https://r.example:5000/x?page=2", "https://r.example:5000/x?page=2"),
            ("//evil.example/x", "https://r.example:5000//evil.example/x"),
        ] {
            assert_eq!(next_page(&uri, reference).unwrap().to_string(), page);
        }
        for reference in [
            "http://r.example:5000/x",
            "https://r.example/x",
            "https://evil.example/x",
            "https://u@r.example:5000/x",
            "x?n=2",
            "?last=b",
            "",
            "a b",
        ] {
            assert!(next_page(&uri, reference).is_err(), "{reference}");
        }
    }

    #[test]
    fn a_bundle_without_authorities_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        assert!(matches!(Client::new(Some(&file)), Err(CaBundleError::Unreadable { .. })));
        let broken = "-----BEGIN CERTIFICATE-----\nMAAwAA==\n-----END CERTIFICATE-----\n";
        for text in ["", "no pem", broken] {
            fs::write(&file, text).unwrap();
            assert!(matches!(Client::new(Some(&file)), Err(CaBundleError::Certificates { .. })), "{text}");
        }
        assert!(Client::new(None).is_ok());
    }
}
