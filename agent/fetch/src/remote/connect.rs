//! One request over a connection of its own.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::request::Builder;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::address::Address;
use crate::failure::Failure;

/// Why there is no answer.
pub(crate) enum Trouble {
    /// It may pass: said as a clause of its own.
    Passing(String),
    /// It will not.
    Lasting(Failure),
}

impl Trouble {
    /// The same, said of where it was.
    fn at(self, address: &Address) -> Self {
        let origin = address.origin();
        match self {
            Self::Passing(why) => Self::Passing(format!("{origin}: {why}")),
            Self::Lasting(Failure::NotReached(why)) => Failure::NotReached(format!("{origin}: {why}")).into(),
            Self::Lasting(Failure::Refused(why)) => Failure::Refused(format!("{origin}: {why}")).into(),
            lasting @ Self::Lasting(_) => lasting,
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Lasting(failure)
    }
}

/// TLS by the authorities that Mozilla trusts, which are compiled in: the image holds no files to read them from.
pub(crate) fn tls() -> Result<TlsConnector, Failure> {
    trusting(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() })
}

pub(crate) fn trusting(roots: RootCertStore) -> Result<TlsConnector, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::Usage(format!("this program has no TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The beginning of a request to `address`.
pub(crate) fn request(method: Method, address: &Address) -> Builder {
    let agent = HeaderValue::from_static(concat!("cofferdam-fetch/", env!("CARGO_PKG_VERSION")));
    Request::builder().method(method).uri(&address.target).header(HOST, &address.authority).header(USER_AGENT, agent)
}

/// Sends a request and returns the answer as soon as it begins. `patience` is for each step that waits for others.
pub(crate) async fn send(
    request: Builder,
    address: &Address,
    tls: &TlsConnector,
    patience: Duration,
) -> Result<Response<Incoming>, Trouble> {
    attempt(request, address, tls, patience).await.map_err(|trouble| trouble.at(address))
}

async fn attempt(
    request: Builder,
    address: &Address,
    tls: &TlsConnector,
    patience: Duration,
) -> Result<Response<Incoming>, Trouble> {
    let request = request.body(Empty::new()).map_err(|_| Failure::Refused("the URL cannot be asked for".to_owned()))?;
    let stream = tcp(address, patience).await?;
    if !address.is_https {
        return exchange(stream, request, patience).await;
    }
    let name = ServerName::try_from(address.host.clone())
        .map_err(|_| Failure::Refused("the host is no name that a certificate can hold".to_owned()))?;
    let stream = timeout(patience, tls.connect(name, stream)).await.map_err(|_| silent("TLS handshake", patience))?;
    exchange(stream.map_err(|error| handshake(&error))?, request, patience).await
}

async fn tcp(address: &Address, patience: Duration) -> Result<TcpStream, Trouble> {
    let found = timeout(patience, lookup_host((address.host.as_str(), address.port))).await;
    let found = found.map_err(|_| silent("DNS lookup", patience))?;
    let unresolved = || Trouble::Passing("no network yet, or no such host: its name has no address".to_owned());
    let mut last = unresolved();
    for socket in found.map_err(|_| unresolved())? {
        match timeout(patience, TcpStream::connect(socket)).await {
            Ok(Ok(stream)) => {
                // What is small goes out at once; a failure costs a moment and nothing else.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => last = Trouble::Passing(unconnected(&error)),
            Err(_) => last = silent("connection", patience),
        }
    }
    Err(last)
}

async fn exchange<S>(
    stream: S,
    request: Request<Empty<Bytes>>,
    patience: Duration,
) -> Result<Response<Incoming>, Trouble>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let cut = |_| Trouble::Passing("the connection was cut before an answer came".to_owned());
    let answer = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the answer's body, or when that is dropped; how it ends, the body tells.
        tokio::spawn(connection);
        sender.send_request(request).await
    };
    timeout(patience, answer).await.map_err(|_| silent("answer", patience))?.map_err(cut)
}

fn silent(what: &str, patience: Duration) -> Trouble {
    Trouble::Passing(format!("no {what} within {patience:?}"))
}

fn unconnected(error: &io::Error) -> String {
    match error.kind() {
        // What a mesh's redirection to a proxy that does not run yet looks like, too.
        ErrorKind::ConnectionRefused => "connection refused: nothing listens there, or no network yet".to_owned(),
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::NetworkDown => {
            "no network yet: it is unreachable".to_owned()
        }
        kind => kind.to_string(),
    }
}

fn handshake(error: &io::Error) -> Trouble {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let why = match inner {
        Some(rustls::Error::InvalidCertificate(bad)) => match bad {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "its certificate is not valid yet by this node's clock"
            }
            CertificateError::UnknownIssuer => {
                "its certificate is of an authority that is not among those that browsers trust"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "its certificate is for another name"
            }
            _ => "its certificate is not valid",
        },
        Some(_) => return Trouble::Passing("it does not speak TLS there as it should".to_owned()),
        None => return Trouble::Passing("the connection was cut during the TLS handshake".to_owned()),
    };
    Trouble::Lasting(Failure::NotReached(why.to_owned()))
}

#[cfg(test)]
mod tests;
