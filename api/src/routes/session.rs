//! How a session is, and its end: `GET` and `DELETE /v1/sessions/{id}`.

use cofferdam_model::session::SessionId;
use cofferdam_runtime::http::{Reply, reply};
use http::StatusCode;

use crate::cluster::tell;
use crate::http::openapi::{Operation, Schemas};
use crate::http::refusal::{ContractError, Refusal};
use crate::sessions::Sessions;
use crate::wire::Session;

/// Tells how it is.
///
/// # Errors
/// When there is no such session.
pub fn answer(sessions: &Sessions, id: &SessionId) -> Result<Reply, Refusal> {
    let session = sessions.get(id).ok_or_else(Refusal::no_session)?;
    // No key of it is anything but a text, so it can always be written.
    Ok(reply::json(StatusCode::OK, serde_json::to_vec(&session).unwrap_or_default()))
}

/// Ends it. What is no session has ended, also where it could not even be the id of one.
///
/// # Errors
/// When the cluster does not take the order.
pub async fn stop(sessions: &Sessions, id: Option<&SessionId>) -> Result<Reply, Refusal> {
    if let Some(id) = id {
        let stopped = sessions.stop(id).await;
        stopped.map_err(|failed| Refusal::stop_failed(tell("stopping a session", &failed)))?;
    }
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

/// What the first route looks like.
pub fn operation(schemas: &mut Schemas) -> Operation {
    Operation::new("getSession", "How a session is")
        .at("id", "The session's id")
        .answer(200, "Its state, and what it is", schemas.answered::<Session>())
        .answer(404, "There is no such session", schemas.answered::<ContractError>())
}

/// What the second one looks like.
pub fn stopping(schemas: &mut Schemas) -> Operation {
    Operation::new("stopSession", "Ends a session; its events and its terminal can be read for a while")
        .at("id", "The session's id")
        .answer_of(204, "It ends, or has ended, or there is none", None)
        .answer(500, "The cluster does not take the order (`stop_failed`)", schemas.answered::<ContractError>())
}
