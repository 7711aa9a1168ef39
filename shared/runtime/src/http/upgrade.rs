//! A connection that speaks another protocol from some answer on.

use std::pin::Pin;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

/// What happens on a connection after its last answer.
pub(super) type Next = Box<dyn FnOnce(Upgraded) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// A connection, given to whoever speaks the new protocol on it. Its write bound holds on.
pub struct Upgraded {
    /// What the client sent before it had the answer.
    pub read_ahead: Bytes,
    /// The rest. Dropping it closes the connection.
    pub stream: Box<dyn Stream>,
}

/// A stream of bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}
