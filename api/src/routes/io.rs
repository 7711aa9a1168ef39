//! A session's terminal: `GET /v1/sessions/{id}/io`.

use cofferdam_runtime::http::Reply;
use http::StatusCode;

use super::Live;
use crate::http::access::Act;
use crate::http::byte_channel::{Terminal, talk};
use crate::http::call::Call;
use crate::http::openapi::{Operation, Schemas};
use crate::http::refusal::{ContractError, Refusal};
use crate::http::service::Shared;
use crate::http::websocket::{Asked, Close};
use crate::metrics::Stream;

/// Lets the client have it. Whatever keeps it from that is told as the socket's end, since a browser tells its page
/// nothing of an upgrade that is refused, and the page would try for ever.
///
/// # Errors
/// When the request asks for no WebSocket.
pub async fn answer<B>(call: &Call<B>, act: Act, shared: &Shared) -> Result<Reply, Refusal> {
    let asked = Asked::by(&call.head)?;
    Ok(match open(call, act, shared).await {
        Err(why) => asked.refuse(why),
        Ok((terminal, Live { app, io, input, .. })) => {
            let (close, counted) = (shared.close.clone(), shared.metrics.open(Stream::Io));
            asked.answer(move |socket| async move {
                talk(socket, terminal, &app, io, input, close).await;
                drop(counted);
            })
        }
    })
}

async fn open<B>(call: &Call<B>, act: Act, shared: &Shared) -> Result<(Terminal, Live), Close> {
    if !shared.origins.allow_page(&call.head.headers) {
        return Err(Close::OriginNotAllowed);
    }
    shared.may_read(call, act).await.map_err(|refusal| match refusal.status() {
        StatusCode::UNAUTHORIZED => Close::Unauthenticated,
        StatusCode::FORBIDDEN => Close::Forbidden,
        _ => Close::TryAgain,
    })?;
    let id = call.session().map_err(|_| Close::NoSession)?;
    let session = shared.sessions.find(&id).ok_or(Close::NoSession)?;
    if call.query("app").is_some_and(|app| app != session.app) {
        return Err(Close::NoSession);
    }
    let after = call.query("lastSeq").and_then(|seq| seq.trim().parse().ok()).unwrap_or(0);
    let terminal = Terminal::read(&session.hub, after).ok_or(Close::Over)?;
    Ok((terminal, session))
}

/// What the route looks like.
pub fn operation(schemas: &mut Schemas) -> Operation {
    Operation::new("openTerminal", "A session's terminal, as a WebSocket")
        .at("id", "The session's id")
        .query("lastSeq", "The number of the last frame that is known; 0 for all that are kept")
        .query("app", "Which app's; it may be left out where there is one")
        .answer_of(
            101,
            "A WebSocket. Text frames say where it begins (`seq`), what is missing (`gap`), what cannot be done (`error`); \
             a binary frame is a number of 32 bits, big endian, a byte for the stream (0 terminal, 1 output, 2 errors), and bytes. \
             Numbers rise by one; where the server was restarted they go on from the milliseconds since the session was made, which fits 49 days. The client \
             sends what is typed as binary frames, and `{\"type\":\"resize\",\"cols\":80,\"rows\":24}` as text. Closed with 1000 \
             at the end, 1012 when the server goes, 4401 without a token, 4403 for a page or a caller that \
             may not, 1013 when nobody can say whether it may, 4404 where there is no \
             such session or app, 4410 where it is over and nothing is kept",
            None,
        )
        .answer(426, "The request asks for no WebSocket", schemas.answered::<ContractError>())
}
