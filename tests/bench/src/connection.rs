//! A keep-alive connection, as an API server has it: HTTP/1.1 over TLS, one request at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cofferdam_certs::testing::Authority;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::fixture;

/// The name that servers have a certificate for.
pub const NAME: &str = "cofferdam-webhook.cofferdam-system.svc";

/// A connection. It blocks the thread that uses it.
pub struct Connection {
    stream: BufReader<StreamOwned<ClientConnection, TcpStream>>,
    head: String,
    body: Vec<u8>,
}

/// What a client of `authority` offers and trusts.
///
/// # Errors
/// When the cryptography does not know the usual versions.
pub fn trust(authority: &Authority) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.root())?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The bytes of a request that posts `body` as an API server does.
#[must_use]
pub fn post(body: &[u8]) -> Vec<u8> {
    let (path, length) = (fixture::PATH, body.len());
    let head = format!(
        "POST {path}?timeout=3s HTTP/1.1\r\nHost: {NAME}:443\r\nUser-Agent: kube-apiserver-admission\r\n\
         Content-Length: {length}\r\nAccept: application/json\r\nContent-Type: application/json\r\n\
         Accept-Encoding: gzip\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

impl Connection {
    /// Connects; the handshake is done with the first exchange.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn open(address: SocketAddr, trust: &Arc<ClientConfig>) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let session = ClientConnection::new(Arc::clone(trust), ServerName::try_from(NAME)?)?;
        let stream = BufReader::with_capacity(32 * 1024, StreamOwned::new(session, stream));
        Ok(Self { stream, head: String::new(), body: Vec::new() })
    }

    /// Sends `request` and reads the answer, which has to be a 200; its body is returned.
    ///
    /// # Errors
    /// When the server answers anything else, or not at all.
    pub fn exchange(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.stream.get_mut().write_all(request)?;
        self.head.clear();
        while !self.head.ends_with("\r\n\r\n") {
            ensure!(self.stream.read_line(&mut self.head)? > 0, "the server closed after {:?}", self.head);
        }
        ensure!(self.head.starts_with("HTTP/1.1 200 "), "the server answered {:?}", self.head);
        let length = self.head.lines().find_map(|line| line.strip_prefix("content-length: "));
        self.body.resize(length.context("the answer has no length")?.parse()?, 0);
        self.stream.read_exact(&mut self.body)?;
        Ok(&self.body)
    }
}
