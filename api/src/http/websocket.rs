//! A WebSocket: how it begins and how it ends.

use std::time::Duration;

use cofferdam_runtime::http::upgrade::Stream;
use cofferdam_runtime::http::{Reply, Upgraded, reply};
use futures_util::StreamExt as _;
use http::header::{
    CONNECTION, CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING,
    UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use super::refusal::Refusal;

/// The longest message of a client: a page of text that is pasted into a terminal.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;

/// What is read at once. Most of what comes is a key that somebody hit.
const READ_BYTES: usize = 4 * 1024;

/// What is kept until it is written.
const WRITE_BYTES: usize = 64 * 1024;

/// How long the end may take: for the client to take what there is, and to say that it has.
const FAREWELL: Duration = Duration::from_secs(2);

/// A WebSocket.
pub type Socket = WebSocketStream<Box<dyn Stream>>;

/// Why a WebSocket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// There is nothing more.
    Ended,
    /// This process ends; another one has the rest. A client of the contract comes back after this one.
    Restarting,
    /// The caller did not say who it is.
    Unauthenticated,
    /// The page is none of those that may. It is said here since a browser does not show the status of an upgrade to
    /// its page, which would try for ever.
    OriginNotAllowed,
    /// The caller may not.
    Forbidden,
    /// Nobody can say now who calls, or what it may. A client comes back after this one.
    TryAgain,
    /// There is no such session.
    NoSession,
    /// It is over, and there is nothing to replay.
    Over,
}

impl Close {
    fn frame(self) -> CloseFrame {
        let (code, reason) = match self {
            Self::Ended => (CloseCode::Normal, "ended"),
            Self::Restarting => (CloseCode::Restart, "restarting"),
            Self::Unauthenticated => (CloseCode::Library(4401), "unauthenticated"),
            Self::OriginNotAllowed => (CloseCode::Library(4403), "origin not allowed"),
            Self::Forbidden => (CloseCode::Library(4403), "forbidden"),
            Self::TryAgain => (CloseCode::Again, "try again"),
            Self::NoSession => (CloseCode::Library(4404), "not found"),
            Self::Over => (CloseCode::Library(4410), "over"),
        };
        CloseFrame { code, reason: reason.into() }
    }
}

/// A request for a WebSocket, checked.
#[derive(Clone, Debug)]
pub struct Asked {
    accept: HeaderValue,
}

impl Asked {
    /// Looks whether a request asks for a WebSocket.
    ///
    /// # Errors
    /// When it asks for something else, or not as RFC 6455 wants it.
    pub fn by(head: &Parts) -> Result<Self, Refusal> {
        let headers = &head.headers;
        let key = headers.get(SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
        // A route for GET is one for HEAD, which has an answer without what follows.
        let is_asked = head.method == Method::GET
            && head.version == Version::HTTP_11
            && names(headers, &CONNECTION, "upgrade")
            && names(headers, &UPGRADE, "websocket")
            // Behind a body, the other protocol could not begin.
            && !headers.contains_key(CONTENT_LENGTH)
            && !headers.contains_key(TRANSFER_ENCODING)
            && headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13")
            // Sixteen bytes in base64.
            && key.len() == 24;
        let accept = is_asked.then(|| HeaderValue::try_from(derive_accept_key(key)).ok()).flatten();
        accept.map(|accept| Self { accept }).ok_or_else(Refusal::no_upgrade)
    }

    /// The answer, after which `talk` has the socket.
    pub fn answer<F, T>(self, talk: F) -> Reply
    where
        F: FnOnce(Socket) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let mut reply = reply::switching(move |upgraded| async move { talk(socket(upgraded).await).await });
        reply.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        reply.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, self.accept);
        reply
    }

    /// The answer to who gets a WebSocket only to read there why it gets none.
    #[must_use]
    pub fn refuse(self, why: Close) -> Reply {
        self.answer(move |socket| close(socket, why))
    }
}

/// Says why, lets the client take what there is, and closes.
pub async fn close(mut socket: Socket, why: Close) {
    let farewell = async {
        socket.close(Some(why.frame())).await?;
        // Until the client has closed too: closing before would reset what it has not read yet.
        while socket.next().await.transpose()?.is_some() {}
        Ok::<(), tokio_tungstenite::tungstenite::Error>(())
    };
    // Whatever went wrong here, the socket is closed.
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

async fn socket(upgraded: Upgraded) -> Socket {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .max_write_buffer_size(4 * WRITE_BYTES)
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let Upgraded { read_ahead, stream } = upgraded;
    WebSocketStream::from_partially_read(stream, read_ahead.into(), Role::Server, Some(config)).await
}

/// Whether a header that is a list names something.
fn names(headers: &HeaderMap, header: &HeaderName, name: &str) -> bool {
    let lists = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|one| one.trim().eq_ignore_ascii_case(name))
}
