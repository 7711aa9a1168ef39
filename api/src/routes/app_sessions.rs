//! A session of an operator's app: `POST /v1/apps/{name}/sessions`.

use cofferdam_runtime::http::Reply;
use hyper::body::Body;
use k8s_openapi::jiff::Timestamp;

use super::create;
use crate::http::call::Call;
use crate::http::openapi::{Operation, Schemas};
use crate::http::refusal::{ContractError, Refusal, TermsRequired};
use crate::http::service::Shared;
use crate::session::record::{App, Record};
use crate::sessions::{Kind, Order};
use crate::wire::{CreateAppSession, Created, Io, Mode};

/// Makes it. That there is no such app is told before the terms are (TRM-04).
///
/// # Errors
/// When something is wrong with what is asked for, or when there is no room.
pub async fn answer<B: Body + Unpin>(call: &mut Call<B>, shared: &Shared) -> Result<Reply, Refusal> {
    let intake = &shared.intake;
    let asked = call.json::<CreateAppSession>(&intake.bodies, &intake.app_session).await?.value;
    let apps = &shared.offers.apps;
    let app = apps.get(&call.parameter).ok_or_else(|| Refusal::unknown_app(&call.parameter, &apps.cards()))?;
    create::terms(&shared.offers, &call.head.headers)?;
    create::ports_beside_each_other(&asked.ports)?;
    let order = Order {
        record: Record {
            created_at: Timestamp::now(),
            mode: Mode::Run,
            inspect: asked.inspect,
            // Clients learn nothing of the operator's image.
            image: None,
            stream_token: None,
            apps: vec![App { name: create::ONLY_APP.to_owned(), io: Io::Tty, ports: asked.ports.clone() }],
        },
        kind: Kind::App,
        image: app.image.clone(),
        pull_policy: app.pull_policy,
        confidential: create::confidential(app.environment(asked.env))?,
        ports: create::ports_of(&asked.ports)?,
    };
    create::begin(shared, order).await
}

/// What the route looks like.
pub fn operation(schemas: &mut Schemas) -> Operation {
    let refused = schemas.answered::<ContractError>();
    Operation::new("createAppSession", "Begins a session of an app that the operator offers by name")
        .at("name", "The app's name")
        .header("x-telo-accepted-terms", "The version of the terms that were accepted, where there are any")
        .takes(schemas.sent::<CreateAppSession>())
        .answer(201, "It begins; what becomes of it is told by its events", schemas.answered::<Created>())
        .answer(400, "Something is wrong with what is asked for", refused.clone())
        .answer(404, "No app of that name is offered (`unknown_app`)", refused.clone())
        .answer(409, "All places are taken by sessions that live (`too_many_sessions`)", refused)
        .answer(428, "The terms have to be accepted first", schemas.answered::<TermsRequired>())
}
