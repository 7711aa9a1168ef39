//! Taking a port.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

/// A port that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}; is the port taken?")]
pub struct BindError {
    /// Which.
    pub address: SocketAddr,
    /// Why.
    pub source: io::Error,
}

/// Listens on `address`; port 0 is any free one. Gives the address that it really is as well.
pub async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), BindError> {
    let failed = |source| BindError { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}
