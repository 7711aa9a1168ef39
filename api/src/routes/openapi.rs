//! What all of it looks like: `GET /v1/openapi.json`.

use serde_json::json;

use crate::http::openapi::Operation;

/// What the route looks like.
#[must_use]
pub fn operation() -> Operation {
    Operation::new("getOpenApi", "This document").answer(200, "An OpenAPI document", json!({"type": "object"}))
}
