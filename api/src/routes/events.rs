//! A session's events: `GET /v1/sessions/{id}/events`.

use cofferdam_runtime::http::Reply;
use serde_json::json;

use super::Live;
use crate::http::call::Call;
use crate::http::events;
use crate::http::openapi::{Operation, Schemas};
use crate::http::refusal::{ContractError, Refusal};
use crate::http::service::Shared;
use crate::metrics::Stream;
use crate::wire::Event;

/// Streams them from where the client was.
///
/// # Errors
/// When there is no such session.
pub fn answer<B>(call: &Call<B>, session: Option<Live>, shared: &Shared) -> Result<Reply, Refusal> {
    let session = session.ok_or_else(Refusal::no_session)?;
    let after = events::last_id(&call.head.headers, call.head.uri.query());
    Ok(events::answer(session.hub.events(after), shared.close.clone(), shared.metrics.open(Stream::Events)))
}

/// What the route looks like.
pub fn operation(schemas: &mut Schemas) -> Operation {
    let mut frames = json!({"type": "string"});
    frames["contentMediaType"] = "text/event-stream".into();
    frames["description"] = "Each `data` is an `Event`; `event` is its `type`, and `id` rises by one.".into();
    // It is told by name alone: no keyword says what is in the lines of a stream.
    schemas.answered::<Event>();
    Operation::new("readEvents", "A session's events: those that are kept, then those that come, until a final status")
        .at("id", "The session's id")
        .query("lastEventId", "The id of the last event that is known; 0 for all that are kept")
        .header("Last-Event-ID", "The same, and counts before it")
        .answer_of(200, "Server-sent events", Some(("text/event-stream", frames)))
        .answer(404, "There is no such session", schemas.answered::<ContractError>())
}
