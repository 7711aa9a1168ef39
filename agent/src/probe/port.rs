//! Whether a port takes connections: one attempt.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::probe::Closed;

/// How long a pod on this node may take to answer (contract row RCH-02).
pub(crate) const WITHIN: Duration = Duration::from_secs(1);

/// What an attempt to connect came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dial {
    /// Something listens.
    Open,
    /// Nothing does, or nobody answers.
    Closed(Closed),
    /// No attempt could be made, which says nothing about the port: we are out of file descriptors or source ports.
    NotMade,
}

/// Connects, and closes at once. The address is a number all the way: nothing is put together from text.
pub(crate) async fn dial(address: SocketAddr, within: Duration) -> Dial {
    match timeout(within, TcpStream::connect(address)).await {
        Ok(Ok(mut stream)) => {
            // The program sees an ordinary end of stream. That it is gone already is no business of ours.
            let _ = stream.shutdown().await;
            Dial::Open
        }
        Ok(Err(error)) => of_error(&error),
        Err(_) => Dial::Closed(Closed::TimedOut),
    }
}

/// What a failed attempt says about the other end.
pub(super) fn of_error(error: &io::Error) -> Dial {
    // Linux' ENFILE, EMFILE, ENOMEM and ENOBUFS: our own want, of which only some have a kind.
    const OURS: [i32; 4] = [23, 24, 12, 105];
    if error.raw_os_error().is_some_and(|code| OURS.contains(&code)) {
        return Dial::NotMade;
    }
    match error.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Dial::Closed(Closed::Refused),
        ErrorKind::TimedOut => Dial::Closed(Closed::TimedOut),
        ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse => Dial::NotMade,
        _ => Dial::Closed(Closed::Unreachable),
    }
}

#[cfg(test)]
mod tests;
