//! Whether sessions can be had now: `POST /v1/probe`.
//!
//! The API server is asked whether it would take a session's pod, and makes none (Kubernetes: dry run). So this finds what a
//! session would meet: rights, namespace, quota, the webhook that hardens pods, and whatever else checks them there.

use cofferdam_model::ports::Ports;
use cofferdam_runtime::http::{Reply, reply};
use http::StatusCode;
use hyper::body::Body;

use crate::cluster::{Home, tell, tell_unhardened};
use crate::http::call::Call;
use crate::http::openapi::{Operation, Schemas};
use crate::http::refusal::Refusal;
use crate::http::service::Shared;
use crate::session::pod::SessionPod;
use crate::wire::{Io, Probe, Probed, PullPolicy};

/// Tells whether they can.
///
/// # Errors
/// When something is wrong with the request.
pub async fn answer<B: Body + Unpin>(call: &mut Call<B>, shared: &Shared) -> Result<Reply, Refusal> {
    let intake = &shared.intake;
    // What a client would configure is checked when it asks for a session, and does not matter here.
    call.json::<Probe>(&intake.bodies, &intake.probe).await?;
    let _turn = intake.turns.take().await?;
    let (home, id) = (shared.sessions.home(), crate::sessions::new_id().map_err(|_| Refusal::overloaded())?);
    let choices = shared.offers.catalogue.choices();
    let pod = SessionPod {
        id: &id,
        namespace: &home.namespace,
        profile: &shared.sessions.workshop().profile,
        image: choices.default_image(),
        pull_policy: PullPolicy::Missing,
        command: Vec::new(),
        entry: None,
        body: None,
        variables: Vec::new(),
        ports: &Ports::default(),
        io: Io::Tty,
        finished_grace_seconds: 0,
    };
    let probed = match home.try_pod(&pod.object()).await {
        Ok(pod) if Home::is_hardened(&pod) => Probed::Ready,
        Ok(_) => Probed::Unavailable { message: tell_unhardened() },
        Err(failed) => Probed::Unavailable { message: tell("trying whether a pod could be made", &failed) },
    };
    // No key of it is anything but a text, so it can always be written.
    Ok(reply::json(StatusCode::OK, serde_json::to_vec(&probed).unwrap_or_default()))
}

/// What the route looks like.
pub fn operation(schemas: &mut Schemas) -> Operation {
    Operation::new("probe", "Whether sessions can be had now; nothing is made").takes(schemas.sent::<Probe>()).answer(
        200,
        "Whether they can, and why not",
        schemas.answered::<Probed>(),
    )
}
