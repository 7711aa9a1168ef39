//! Whether the process answers: `GET /v1/health`.

use cofferdam_runtime::http::{Reply, reply};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::openapi::{Operation, Schemas};

/// It does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Health {
    /// Always true.
    pub ok: bool,
    /// Which version answers.
    pub version: &'static str,
}

/// Answers, and touches nothing else: whether sessions can be had is another question.
#[must_use]
pub fn answer() -> Reply {
    // A truth and a text can always be written.
    let body = serde_json::to_vec(&Health { ok: true, version: env!("CARGO_PKG_VERSION") }).unwrap_or_default();
    reply::json(StatusCode::OK, body)
}

/// What the route looks like.
pub fn operation(schemas: &mut Schemas) -> Operation {
    Operation::new("getHealth", "Whether the process answers").answer(200, "It does", schemas.answered::<Health>())
}
