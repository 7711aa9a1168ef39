//! A session of a client's own program: `POST /v1/sessions`.

use cofferdam_runtime::http::Reply;
use hyper::body::Body;
use k8s_openapi::jiff::Timestamp;

use super::create;
use crate::bodies::{ArchiveError, Place};
use crate::http::body::Sent;
use crate::http::call::Call;
use crate::http::openapi::{Operation, Schemas};
use crate::http::refusal::{ContractError, Refusal, TermsRequired};
use crate::http::service::Shared;
use crate::session::record::{App, Record};
use crate::sessions::{Kind, Order, Parcel};
use crate::wire::{Bundle, CreateSession, Created, Mode};

/// Makes it, once nothing is wrong with what is asked for.
///
/// # Errors
/// When something is, or when there is no room.
pub async fn answer<B: Body + Unpin>(call: &mut Call<B>, shared: &Shared) -> Result<Reply, Refusal> {
    let intake = &shared.intake;
    let Sent { value: mut asked, share: memory } = call.json::<CreateSession>(&intake.bodies, &intake.session).await?;
    create::terms(&shared.offers, &call.head.headers)?;
    let workshop = shared.sessions.workshop();
    let bundle = Bundle {
        entry_relative_path: asked.bundle.entry_relative_path.clone(),
        files: std::mem::take(&mut asked.bundle.files),
    };
    let files = workshop.archiver.check(bundle, workshop.limits()).await.map_err(|error| match error {
        ArchiveError::Bundle(error) => Refusal::invalid_bundle(error.to_string()),
        ArchiveError::Failed => Refusal::overloaded(),
    })?;
    create::config(&shared.offers, &asked)?;
    let app = create::only_app(&asked)?;
    let place = if asked.apps.is_some() { Place::App(0) } else { Place::Entry };
    let entry = files.find(place, &app.entry_relative_path);
    let entry = create::entry(entry.map_err(|error| Refusal::invalid_bundle(error.to_string()))?)?;
    let order = Order {
        record: Record {
            created_at: Timestamp::now(),
            mode: Mode::Run,
            inspect: asked.inspect,
            image: Some(asked.config.image.clone()),
            stream_token: None,
            apps: vec![App { name: app.name, io: app.io, ports: app.ports.clone() }],
        },
        kind: Kind::Run { entry, parcel: Parcel { files, memory } },
        image: asked.config.image,
        pull_policy: asked.config.pull_policy,
        confidential: create::confidential(asked.env)?,
        ports: create::ports_of(&app.ports)?,
    };
    create::begin(shared, order).await
}

/// What the route looks like.
pub fn operation(schemas: &mut Schemas) -> Operation {
    let refused = schemas.answered::<ContractError>();
    Operation::new("createSession", "Begins a session of a program that is sent along")
        .header("x-telo-accepted-terms", "The version of the terms that were accepted, where there are any")
        .takes(schemas.sent::<CreateSession>())
        .answer(201, "It begins; what becomes of it is told by its events", schemas.answered::<Created>())
        .answer(400, "Something is wrong with what is asked for", refused.clone())
        .answer(409, "All places are taken by sessions that live (`too_many_sessions`)", refused)
        .answer(428, "The terms have to be accepted first", schemas.answered::<TermsRequired>())
}
