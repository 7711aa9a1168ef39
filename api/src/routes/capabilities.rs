//! What clients may ask for: `GET /v1/capabilities`.

use cofferdam_runtime::http::{Reply, reply};
use http::StatusCode;

use super::Offers;
use crate::capabilities::{Capabilities, Features, capabilities};
use crate::http::openapi::{Operation, Schemas};

/// Tells it as it is now.
#[must_use]
pub fn answer(offers: &Offers) -> Reply {
    let Offers { about, catalogue, terms, apps } = offers;
    let told = capabilities(about, Features::ours(), &catalogue.choices(), terms.as_ref(), apps);
    // No key of it is anything but a text, so it can always be written.
    reply::json(StatusCode::OK, serde_json::to_vec(&told).unwrap_or_default())
}

/// What the route looks like.
pub fn operation(schemas: &mut Schemas) -> Operation {
    Operation::new("getCapabilities", "What clients may ask for").answer(
        200,
        "Features, what may be configured, terms, and apps by name",
        schemas.answered::<Capabilities>(),
    )
}
