//! The life of the API: from binding its ports to the last answer.

use std::future::ready;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_kubernetes::Cluster;
use cofferdam_kubernetes::watch::Watches;
use cofferdam_model::keys;
use cofferdam_policy_file::{Outcome as Reload, PolicyMetrics, Reloader};
use cofferdam_runtime::admin;
use cofferdam_runtime::drain::{Serving, Undrained, drain};
use cofferdam_runtime::http::{BindError, Counts, Limits, Phases, Server, bind};
use cofferdam_runtime::metrics::Metrics as Registry;
use cofferdam_runtime::ready::Readiness;
use cofferdam_runtime::stop::Stop;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::bodies::{self, Archiver, Bodies, Redeemers, StoreError, keep_clean};
use crate::cluster::Home;
use crate::config::{Auth, Config};
use crate::http::access::Access;
use crate::http::body::Bodies as RequestBodies;
use crate::http::reviewer::Reviewer;
use crate::http::service::{Service, Shared};
use crate::http::tokens::Outcome;
use crate::metrics::{Metrics, SessionCount};
use crate::routes::create::Intake;
use crate::session::informer::{self, Told};
use crate::sessions::args::{BodyIdentity, SessionsConfig};
use crate::sessions::{Sessions, Workshop};

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
    /// There is no cluster to speak to.
    #[error("cannot tell how to reach the API server; run in a cluster, or set KUBECONFIG")]
    NoCluster(#[source] kube::config::InferConfigError),
    /// What it says cannot be used.
    #[error("the connection to the API server cannot be configured")]
    Client(#[source] Box<kube::Error>),
    /// Bodies cannot wait in their store.
    #[error("bodies cannot be kept")]
    Bodies(#[from] StoreError),
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

/// How long the end waits for sessions that were promised and are not made yet.
const SETTLING: Duration = Duration::from_secs(5);

/// How many bundles are checked and packed at a time.
const PACKED_AT_ONCE: NonZero<usize> = NonZero::new(2).unwrap();

/// Serves until `stop` ends it. Sessions go on: what is true of them is in the cluster.
pub(crate) async fn until_stopped(config: Config, stop: Stop) -> Result<(), ServeError> {
    config.log();
    let Config { listen, admin_listen, auth, origins, offers, sessions, connections, drain_delay, drain_timeout } =
        config;
    let client = cofferdam_kubernetes::client(&kube::Config::infer().await.map_err(ServeError::NoCluster)?)
        .map_err(|error| ServeError::Client(Box::new(error)))?;
    let registry = Registry::new("cofferdam_api", env!("CARGO_PKG_VERSION"))?;
    let metrics = Metrics::register(registry.registry())?;
    metrics.access_is(auth.as_str());
    let cluster = Cluster::new(client, keys::API, registry.registry())?;
    let counts = Counts::register(registry.registry())?;
    let readiness = Readiness::new();
    let listening = readiness.gate("listener");

    let mut parts = JoinSet::new();
    let access = match auth {
        Auth::Everybody => Access::Everybody,
        Auth::Review { audience } => {
            let (namespace, metrics) = (sessions.namespace.clone(), metrics.clone());
            Access::Review(Arc::new(Reviewer::new(cluster.clone(), namespace, audience, metrics)))
        }
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
    let (bodies_listener, bodies_address) = bind(sessions.bodies_listen).await?;
    let limits = Limits { drain: drain_timeout, ..Limits::default() };
    let admin = Server { tls: None, limits: limits.clone(), counts: counts.of("admin"), phases: Phases::default() };
    let (its_readiness, to_register) = (readiness.clone(), registry.registry().clone());
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
    let intake = Arc::new(Intake::new(RequestBodies::new(sessions.request_bytes, BODY_WITHIN)));
    let Begun { sessions, bodies } = begin_sessions(sessions, cluster, &to_register, &readiness, &mut parts).await?;
    let (phases, promised) = (Phases::default(), sessions.clone());
    let shared = Shared { access, origins, offers, sessions, intake, metrics, close: phases.close.clone() };
    let service = Arc::new(Service::new(shared)?);
    let pods = Server { tls: None, limits: limits.clone(), counts: counts.of("bodies"), phases: Phases::default() };
    let limits = Limits { connections, body: BODY_WITHIN, answering_when_full: ANSWERING_WHEN_FULL, ..limits };
    let clients = Server { tls: None, limits, counts: counts.of("clients"), phases };
    let mut pods = Serving::begin(pods, bodies_listener, move |request| {
        let bodies = bodies.clone();
        async move { bodies.answer(&request).await }
    });
    let mut clients = Serving::begin(clients, listener, move |request| {
        let service = Arc::clone(&service);
        async move { service.answer(request).await }
    });
    listening.open();
    tracing::info!(%address, %admin_address, %bodies_address, "listening");

    tokio::select! {
        () = stop.draining() => {}
        () = clients.ended() => return Err(ServeError::EndedEarly),
        () = pods.ended() => return Err(ServeError::EndedEarly),
        () = admin.ended() => return Err(ServeError::EndedEarly),
        Some(_) = parts.join_next() => return Err(ServeError::EndedEarly),
    }
    let drained = drain(&stop, &readiness, drain_delay, vec![clients, pods], admin).await;
    if timeout(SETTLING, promised.settled()).await.is_err() {
        tracing::warn!("sessions that were being made are left to another replica, or to the next start");
    }
    Ok(drained?)
}

/// What goes on from the start.
struct Begun {
    sessions: Sessions,
    bodies: Bodies,
}

/// Begins to follow sessions, and all that looks after them.
async fn begin_sessions(
    config: SessionsConfig,
    cluster: Cluster,
    registry: &prometheus::Registry,
    readiness: &Readiness,
    parts: &mut JoinSet<()>,
) -> Result<Begun, ServeError> {
    let known = readiness.gate("sessions");
    let (watches, body_counts) = (Watches::register(registry)?, bodies::Counts::register(registry)?);
    let policy_metrics = PolicyMetrics::register(registry, config.policy.digest())?;
    let home = Home { cluster, namespace: config.namespace };
    config.store.prove().await?;
    let audience = config.policy.bodies().audience.clone();
    let redeemers = match config.body_identity {
        BodyIdentity::Review => {
            let identify = bodies::token_review(home.cluster.clone(), audience);
            Redeemers::Pods { namespace: home.namespace.clone(), identify }
        }
        BodyIdentity::None => Redeemers::Bearers,
    };
    let reloader = Reloader::new(config.policy_source, config.installation, config.policy);
    let (policy, its_readiness) = (reloader.current(), readiness.clone());
    let its_policy = Arc::clone(&policy);
    parts.spawn(reloader.run(config.policy_poll, move |outcome| {
        policy_metrics.looked_at(outcome);
        if outcome == Reload::Swapped {
            policy_metrics.in_force(its_policy.load().digest());
        }
        its_readiness.degraded("policy", outcome == Reload::Kept);
    }));
    let (profile, app_profile) = config.profiles;
    let workshop = Workshop {
        profile,
        app_profile,
        command: config.command,
        policy,
        archiver: Archiver::new(PACKED_AT_ONCE),
        store: Some(config.store.clone()),
        self_url: config.self_url,
    };
    let sessions = Sessions::new(home.clone(), config.bounds, workshop);
    // Until all are known, nothing is deleted for want of one.
    let all_known = Arc::new(Notify::new());
    let (informed, mut known, now_known) = (sessions.clone(), Some(known), Arc::clone(&all_known));
    let its_readiness = readiness.clone();
    parts.spawn(informer::follow(home, watches, move |told| {
        match told {
            Told::All => {
                if let Some(gate) = known.take() {
                    gate.open();
                }
                now_known.notify_one();
            }
            // No reason to be unready: another replica would know no more, and streams go on.
            Told::Current(is_current) => its_readiness.degraded("sessions", !is_current),
            Told::Session(..) => {}
        }
        informed.told(told);
    }));
    let (swept, store, its_counts) = (sessions.clone(), config.store.clone(), body_counts.clone());
    parts.spawn(async move {
        all_known.notified().await;
        tokio::join!(swept.keep_clean(), keep_clean(&store, &its_counts, |id| swept.knows(id)));
    });
    let counted = sessions.clone();
    registry.register(Box::new(SessionCount::new(move || counted.count())?))?;
    Ok(Begun { sessions, bodies: Bodies::new(config.store, redeemers, body_counts) })
}
