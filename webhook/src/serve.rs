//! The life of the server: from binding its ports to the last answer.

use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use cofferdam_certs::{ReloadError, Reloader, server_config};
use cofferdam_policy_file::Outcome as Reload;
use cofferdam_runtime::admin;
use cofferdam_runtime::drain::{Serving, Undrained, drain};
use cofferdam_runtime::http::{BindError, Counts, Limits, Phases, Server, bind};
use cofferdam_runtime::metrics::Metrics as Registry;
use cofferdam_runtime::ready::Readiness;
use cofferdam_runtime::stop::Stop;

use crate::admit::Admission;
use crate::config::Config;
use crate::metrics::Metrics;

/// The one protocol that is spoken inside TLS.
const PROTOCOLS: [&str; 1] = ["http/1.1"];

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ServeError {
    /// No threads, no signal handlers.
    #[error("the operating system does not let the program start")]
    Runtime(#[source] io::Error),
    /// A port cannot be had.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// Certificate or key cannot be served.
    #[error(transparent)]
    Certificate(#[from] ReloadError),
    /// The cryptography does not know our versions of TLS.
    #[error("TLS cannot be set up")]
    Tls(#[from] rustls::Error),
    /// Two metrics have one name.
    #[error("metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
    /// A part that lives as long as the server has ended before it.
    #[error("the {part} ended by itself; the program cannot go on without it")]
    EndedEarly {
        /// Which.
        part: &'static str,
    },
    /// The end was not orderly.
    #[error(transparent)]
    Undrained(#[from] Undrained),
}

/// Serves until `stop` ends it.
///
/// Asked to drain, the server turns unready and goes on for the drain delay, since API servers hear of it only after a
/// while; then it takes no new connections and finishes what is in flight. The admin port stays open to the end. Asked
/// to abort, it ends at once.
pub(crate) async fn until_stopped(config: Config, stop: Stop) -> Result<(), ServeError> {
    config.log();
    let Config {
        policy,
        policy_source,
        installation,
        policy_poll,
        certificate,
        server_names,
        certificate_poll,
        listen,
        admin_listen,
        drain_delay,
        drain_timeout,
    } = config;
    let registry = Registry::new("cofferdam_webhook", env!("CARGO_PKG_VERSION"))?;
    let metrics = Metrics::register(registry.registry(), policy.digest())?;
    let counts = Counts::register(registry.registry())?;
    let limits = Limits { drain: drain_timeout, ..Limits::default() };

    let reloader = Reloader::load(certificate, server_names, SystemTime::now())?;
    let current = reloader.current();
    metrics.certificate_expires(current.expires_unix_seconds());
    let tls = Arc::new(server_config(Arc::clone(&current), &PROTOCOLS)?);

    let readiness = Readiness::new();
    let listening = readiness.gate("listener");
    let (admin_listener, admin_address) = bind(admin_listen).await?;
    let (listener, address) = bind(listen).await?;

    let admin = Server { tls: None, limits: limits.clone(), counts: counts.of("admin"), phases: Phases::default() };
    let reviews =
        Server { tls: Some(tls), limits: limits.clone(), counts: counts.of("reviews"), phases: Phases::default() };
    let its_readiness = readiness.clone();
    let mut admin =
        Serving::begin(admin, admin_listener, move |request| ready(admin::answer(&request, &its_readiness, &registry)));
    let policies = cofferdam_policy_file::Reloader::new(policy_source, installation, policy);
    let policy = policies.current();
    let admission = Arc::new(Admission::new(Arc::clone(&policy), metrics.clone(), limits.body));
    let mut reviews = Serving::begin(reviews, listener, move |request| {
        let admission = Arc::clone(&admission);
        async move { admission.answer(request).await }
    });
    let (its_metrics, its_readiness) = (metrics.clone(), readiness.clone());
    let mut renewals = tokio::spawn(reloader.run(certificate_poll, move |outcome| {
        its_metrics.certificate_looked_at(outcome);
        its_metrics.certificate_expires(current.expires_unix_seconds());
        its_readiness.degraded("certificate", outcome == cofferdam_certs::Outcome::Kept);
    }));
    let its_readiness = readiness.clone();
    let mut policy_changes = tokio::spawn(policies.run(policy_poll, move |outcome| {
        metrics.policy.looked_at(outcome);
        if outcome == Reload::Swapped {
            metrics.policy.in_force(policy.load().digest());
        }
        its_readiness.degraded("policy", outcome == Reload::Kept);
    }));
    listening.open();
    tracing::info!(%address, %admin_address, "listening");

    tokio::select! {
        () = stop.draining() => {}
        () = reviews.ended() => return Err(ServeError::EndedEarly { part: "listener" }),
        () = admin.ended() => return Err(ServeError::EndedEarly { part: "admin listener" }),
        _ = &mut renewals => return Err(ServeError::EndedEarly { part: "certificate's reloader" }),
        _ = &mut policy_changes => return Err(ServeError::EndedEarly { part: "policy's reloader" }),
    }
    Ok(drain(&stop, &readiness, drain_delay, vec![reviews], admin).await?)
}
