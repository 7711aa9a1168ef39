//! The life of the API: from binding its ports to the last answer.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_model::session::SessionId;
use cofferdam_runtime::admin;
use cofferdam_runtime::drain::{Serving, Undrained, drain};
use cofferdam_runtime::http::{BindError, Counts, Limits, Phases, Server, bind};
use cofferdam_runtime::metrics::Metrics as Registry;
use cofferdam_runtime::ready::Readiness;
use cofferdam_runtime::stop::Stop;
use tokio::task::JoinSet;

use crate::config::{Auth, Config};
use crate::http::access::Access;
use crate::http::service::{Service, Shared};
use crate::http::tokens::Outcome;
use crate::metrics::Metrics;

/// How long a body may take to arrive. Bodies are large here, and clients far away.
const BODY_WITHIN: Duration = Duration::from_mins(1);

/// How long such a request keeps its place against others.
const ANSWERING_WHEN_FULL: Duration = Duration::from_secs(10);

/// Why the API does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ServeError {
    /// No threads, no signal handlers.
    #[error("the operating system does not let the program start")]
    Runtime(#[source] io::Error),
    /// A port cannot be had.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// Two metrics have one name.
    #[error("metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
    /// Two routes are one.
    #[error("routes contradict each other")]
    Routes(#[from] matchit::InsertError),
    /// A part that lives as long as the API has ended before it.
    #[error("a part of the program ended by itself; it cannot go on without it")]
    EndedEarly,
    /// The end was not orderly.
    #[error(transparent)]
    Undrained(#[from] Undrained),
}

/// Serves until `stop` ends it. Sessions go on: what is true of them is in the cluster.
pub(crate) async fn until_stopped(config: Config, stop: Stop) -> Result<(), ServeError> {
    config.log();
    let Config { listen, admin_listen, auth, origins, offers, connections, drain_delay, drain_timeout } = config;
    let registry = Registry::new("cofferdam_api", env!("CARGO_PKG_VERSION"))?;
    let metrics = Metrics::register(registry.registry())?;
    let counts = Counts::register(registry.registry())?;
    let readiness = Readiness::new();
    let listening = readiness.gate("listener");

    let mut parts = JoinSet::new();
    let access = match auth {
        Auth::Everybody => Access::Everybody,
        Auth::Token { tokens, poll } => {
            let access = Access::Token(tokens.current());
            let (its_metrics, its_readiness) = (metrics.clone(), readiness.clone());
            parts.spawn(tokens.run(poll, move |outcome| {
                its_metrics.tokens_looked_at(outcome);
                its_readiness.degraded("tokens", outcome == Outcome::Kept);
            }));
            access
        }
    };
    let (admin_listener, admin_address) = bind(admin_listen).await?;
    let (listener, address) = bind(listen).await?;
    let limits = Limits { drain: drain_timeout, ..Limits::default() };
    let admin = Server { tls: None, limits: limits.clone(), counts: counts.of("admin"), phases: Phases::default() };
    let its_readiness = readiness.clone();
    let mut admin =
        Serving::begin(admin, admin_listener, move |request| ready(admin::answer(&request, &its_readiness, &registry)));

    let offers = Arc::new(offers);
    tokio::select! {
        // Nobody is told of images before they are known, where the registry answers at all.
        () = offers.catalogue.refresh_or_log() => {}
        () = stop.draining() => {}
    }
    let its_offers = Arc::clone(&offers);
    parts.spawn(async move { its_offers.catalogue.keep().await });
    let phases = Phases::default();
    let shared = Shared { access, origins, offers, metrics, close: phases.close.clone() };
    // Nothing makes a session yet, so there is none.
    let service = Service::new(shared, |_: &SessionId| None)?;
    let limits = Limits { connections, body: BODY_WITHIN, answering_when_full: ANSWERING_WHEN_FULL, ..limits };
    let clients = Server { tls: None, limits, counts: counts.of("clients"), phases };
    let mut clients = Serving::begin(clients, listener, move |request| ready(service.answer(request)));
    listening.open();
    tracing::info!(%address, %admin_address, "listening");

    tokio::select! {
        () = stop.draining() => {}
        () = clients.ended() => return Err(ServeError::EndedEarly),
        () = admin.ended() => return Err(ServeError::EndedEarly),
        Some(_) = parts.join_next() => return Err(ServeError::EndedEarly),
    }
    Ok(drain(&stop, &readiness, drain_delay, vec![clients], admin).await?)
}
