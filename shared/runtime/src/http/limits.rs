//! The bounds of a listener.

use std::time::Duration;

/// Every bound of a listener. What a client can make us hold is at most these numbers multiplied.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at the same time. When all places are taken, the next one waits until a place is free or one that
    /// is older than the next three bounds has to make room for it.
    pub connections: usize,
    /// How long a connection keeps its place against others who need it while it waits for its client: for a handshake,
    /// for a request, for the end of an answer.
    pub idle_when_full: Duration,
    /// How long it keeps its place against others while a request is answered, the arrival of the body included.
    pub answering_when_full: Duration,
    /// How long it keeps its place against others from when an answer that is made as it is sent has begun, or another
    /// protocol is spoken.
    pub streaming_when_full: Duration,
    /// From accept to the end of the TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// From the end of the head to the end of the body. With `head` and `write` this bounds a whole request.
    pub body: Duration,
    /// How long a client may refuse to take any byte of an answer that is there for it.
    pub write: Duration,
    /// How long a connection may lie idle, also before its first request.
    pub idle: Duration,
    /// How long a closed connection is still read from, so that a client in the middle of sending can read its answer:
    /// closing a socket with unread bytes resets it, and a reset destroys what the client has not read yet.
    pub linger: Duration,
    /// How long requests in flight may take once the listener is closed.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A connection costs up to 64 KiB of read buffer and some 40 KiB of TLS: about 25 MiB in all.
            connections: 256,
            // Much longer than an honest handshake or head takes, and little of what a client would wait: 256 places
            // that turn over four times a second hold against 1,000 new connections a second.
            idle_when_full: Duration::from_millis(250),
            // After that an API server, as we are configured, has given up.
            answering_when_full: Duration::from_secs(3),
            // Its client comes back for the rest of it, so the oldest can make room without a loss; long enough that
            // as many streams as there are places come and go less than five times a second.
            streaming_when_full: Duration::from_mins(1),
            // Two round trips and one signature; anything longer is no client of ours.
            handshake: Duration::from_secs(5),
            // The API server waits at most 30 s for a webhook, and 3 s as we are configured.
            head: Duration::from_secs(10),
            body: Duration::from_secs(10),
            write: Duration::from_secs(10),
            // Longer than the 90 s after which a Go client drops an idle connection, so that it is the client who
            // closes: a server that closes first may do so while a request is on its way, and a POST is not repeated.
            idle: Duration::from_mins(2),
            linger: Duration::from_secs(5),
            drain: Duration::from_secs(15),
        }
    }
}

/// What a connection reads ahead, and thereby the longest request head. hyper's own default of about 400 KiB, times
/// the connections, would be 200 MiB.
pub(super) const READ_BUFFER_BYTES: usize = 64 * 1024;
