//! The life of the agent: from its first list to the release of the Lease.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cofferdam_kubernetes::Cluster;
use cofferdam_model::keys;
use cofferdam_model::policy::Policy;
use cofferdam_policy_file::{Outcome as Reload, Reloader};
use cofferdam_runtime::admin;
use cofferdam_runtime::http::{BindError, Counts, Limits, Phases, Server, bind};
use cofferdam_runtime::metrics::Metrics as Registry;
use cofferdam_runtime::ready::{Gate, Readiness};
use cofferdam_runtime::stop::Stop;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;

use crate::config::Config;
use crate::elected;
use crate::events::{Events, Tone};
use crate::ground::{self, Gates, Ground};
use crate::informers::{Informers, Namespaces};
use crate::layer;
use crate::metrics::Metrics;
use crate::objects::Kind;
use crate::probe::Prober;
use crate::work::Crew;
use crate::world::World;

/// How long the end may take: the release of the Lease, and what is on its way.
const FAREWELL: Duration = Duration::from_secs(5);
const _: () = assert!(elected::ENDING.as_millis() < FAREWELL.as_millis(), "the Lease would not be given away");

/// Why the agent does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ServeError {
    /// No threads, no signal handlers.
    #[error("the operating system does not let the program start")]
    Runtime(#[source] io::Error),
    /// The port cannot be had.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// No way to the API server is configured.
    #[error("the API server cannot be found; run in a pod with a service account, or set KUBECONFIG")]
    NoCluster(#[source] kube::config::InferConfigError),
    /// The configured way cannot be used.
    #[error("the certificates or the token for the API server cannot be used")]
    Client(#[source] kube::Error),
    /// Two metrics have one name.
    #[error("metrics cannot be registered")]
    Metrics(#[from] prometheus::Error),
    /// A part that lives as long as the agent has ended before it.
    #[error("a part of the agent ended by itself; the program cannot go on without it")]
    EndedEarly,
}

/// Works until `stop` ends it. Nothing is taken away then: sessions go on, and the next agent finds them.
pub(crate) async fn until_stopped(config: Config, stop: Stop) -> Result<(), ServeError> {
    config.log();
    let registry = Registry::new("cofferdam_agent", env!("CARGO_PKG_VERSION"))?;
    let metrics = Metrics::register(registry.registry(), config.policy.digest(), config.per_session_metrics)?;
    let prober = Prober::new(config.probes_per_second, Metrics::probes(registry.registry(), config.probes_per_second)?);
    let elected_metrics = elected::Metrics::register(registry.registry(), metrics.watches.clone())?;
    let counts = Counts::register(registry.registry())?;
    let client = cofferdam_kubernetes::client(&kube::Config::infer().await.map_err(ServeError::NoCluster)?)
        .map_err(ServeError::Client)?;
    let cluster = Cluster::new(client, keys::AGENT, registry.registry())?;

    let readiness = Readiness::new();
    let gates = ["pods", "objects", "layer", "routes"].map(|name| readiness.gate(name));
    let admin = Server { tls: None, limits: Limits::default(), counts: counts.of("admin"), phases: Phases::default() };
    let phases = admin.phases.clone();
    let (listener, address) = bind(config.admin_listen).await?;
    tracing::info!(%address, "listening");
    let its_readiness = readiness.clone();
    let admin = tokio::spawn(
        admin.serve(listener, move |request| std::future::ready(admin::answer(&request, &its_readiness, &registry))),
    );

    let (events, sending) = Events::new(cluster.clone(), metrics.clone(), &config.installation.namespace, &config.pod);
    let policies = Reloader::new(config.policy_source.clone(), config.installation.clone(), config.policy.clone());
    let policy = policies.current();
    let world = Arc::new(World::new(Ground::default()));
    let (its_world, its_events, node) = (Arc::clone(&world), events.clone(), config.node.clone());
    let crew = Crew::new(its_world, cluster.clone(), metrics.clone(), its_events, node, prober, stop.clone());
    let parts = Parts { config: &config, cluster: &cluster, metrics: &metrics, world: &world, policy: &policy };
    let mut tasks = JoinSet::new();
    tasks.spawn(sending);
    let changed = parts.follow(&mut tasks, crew.clone(), gates);
    parts.reload(&mut tasks, policies, readiness.clone(), events.clone(), changed);
    let elected = parts.elected(elected_metrics, events, stop.clone());

    let ended = tokio::select! {
        // The first ends by itself when it is asked to stop, the Lease released.
        () = async { elected.await; crew.finished().await } => Ok(()),
        () = farewell(&stop) => {
            tracing::warn!("the end took too long: the Lease may have to run out by itself, and writes may be cut off");
            Ok(())
        }
        _ = tasks.join_next() => Err(ServeError::EndedEarly),
    };
    readiness.withdraw("stopping");
    tasks.shutdown().await;
    phases.retire.cancel();
    phases.close.cancel();
    if admin.await.is_err() {
        tracing::warn!("the admin listener failed while it was closing");
    }
    tracing::info!("stopped");
    ended
}

/// What the parts of an agent are made of.
struct Parts<'a> {
    config: &'a Config,
    cluster: &'a Cluster,
    metrics: &'a Metrics,
    world: &'a Arc<World>,
    policy: &'a Arc<ArcSwap<Policy>>,
}

impl Parts<'_> {
    /// Starts all that watches; gives what to tell when the policy has changed.
    fn follow(&self, tasks: &mut JoinSet<()>, crew: Crew, gates: [Gate; 4]) -> Arc<Notify> {
        let [pods, objects, layer, routes] = gates;
        let gates = Gates { layer: Some(layer), routes: Some(routes) };
        let informers = Informers {
            world: Arc::clone(self.world),
            cluster: self.cluster.clone(),
            watches: self.metrics.watches.clone(),
            node: self.config.node.clone(),
            namespace: self.config.namespace_only.clone(),
        };
        let only = self.config.namespace_only.as_deref();
        let namespaces = Arc::new(Namespaces::new(&self.config.installation.namespace, only));
        let (relist, ready) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        if only.is_none() {
            tasks.spawn(informers.clone().namespaces(Arc::clone(&namespaces), Arc::clone(&relist), Arc::clone(&ready)));
            tasks.spawn(informers.clone().node());
        } else {
            ready.notify_one();
        }
        tasks.spawn(informers.clone().network_policies());
        let its_informers = informers.clone();
        // Work begins when our objects are known too: what is there already is not made again.
        let (found, mut sessions) = mpsc::unbounded_channel();
        let listed = Arc::new(Notify::new());
        tasks.spawn(objects_of(informers.clone(), objects, Arc::clone(&listed)));
        tasks.spawn(async move {
            listed.notified().await;
            while let Some((uid, wake)) = sessions.recv().await {
                crew.begin(uid, wake);
            }
        });
        let (its_relist, its_policy) = (Arc::clone(&relist), Arc::clone(self.policy));
        tasks.spawn(async move {
            ready.notified().await;
            let begin = move |uid, wake| drop(found.send((uid, wake)));
            its_informers.pods(its_policy, namespaces, its_relist, begin, pods).await;
        });
        let changed = Arc::new(Notify::new());
        tasks.spawn(self.keep_ground(informers, gates, relist, Arc::clone(&changed)));
        changed
    }

    /// Keeps the ground of each policy until the next one is in force.
    fn keep_ground(
        &self,
        informers: Informers,
        mut gates: Gates,
        relist: Arc<Notify>,
        changed: Arc<Notify>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let policy = Arc::clone(self.policy);
        async move {
            // Routes of Gateway API are watched from when they are known to be served, and then for ever.
            let (version, mut known) = watch::channel(None);
            let tell: ground::Served = Arc::new(move |served: &[String]| {
                version.send_if_modified(|version| {
                    let is_first = version.is_none();
                    if is_first {
                        *version = layer::preferred(served).cloned();
                    }
                    is_first && version.is_some()
                });
            });
            let its_informers = informers.clone();
            let watched = async move {
                let version = match known.wait_for(Option::is_some).await {
                    Ok(version) => version.clone().unwrap_or_default(),
                    // Whoever would tell is gone, and the agent with it.
                    Err(_) => return,
                };
                its_informers.objects(Kind::HttpRoute, &version, None).await;
            };
            let kept = async move {
                loop {
                    let keeping = ground::keep(
                        Arc::clone(&informers.world),
                        informers.cluster.clone(),
                        informers.watches.clone(),
                        policy.load_full(),
                        informers.namespace.clone(),
                        Arc::clone(&tell),
                        &mut gates,
                    );
                    tokio::select! {
                        () = keeping => {}
                        () = changed.notified() => relist.notify_one(),
                    }
                }
            };
            tokio::join!(watched, kept);
        }
    }

    /// Takes up a policy that has changed, and says so when one does not load.
    fn reload(
        &self,
        tasks: &mut JoinSet<()>,
        policies: Reloader,
        readiness: Readiness,
        events: Events,
        changed: Arc<Notify>,
    ) {
        let (metrics, policy) = (self.metrics.clone(), Arc::clone(self.policy));
        let mut is_broken = false;
        tasks.spawn(policies.run(self.config.policy_poll, move |outcome| {
            metrics.policy.looked_at(outcome);
            if outcome == Reload::Swapped {
                metrics.policy.in_force(policy.load().digest());
                changed.notify_one();
            }
            readiness.degraded("policy", outcome == Reload::Kept);
            if outcome == Reload::Kept && !is_broken {
                let note = "the policy file does not load, and the last good policy stays in force; the log of the \
                            agent names file, line and key";
                events.tell_own(Tone::Warning, "PolicyNotLoaded", note);
            }
            is_broken = outcome == Reload::Kept;
        }));
    }

    /// Stands for election, except in the namespaced variant.
    async fn elected(&self, metrics: elected::Metrics, events: Events, stop: Stop) {
        if self.config.namespace_only.is_some() {
            return stop.draining().await;
        }
        let identity =
            elected::Identity { pod: self.config.pod.clone(), namespace: self.config.installation.namespace.clone() };
        let Config { lost_node_share, lost_node, silent_agent, .. } = *self.config;
        let limits = elected::Limits { lost_node_share, lost_node, silent_agent };
        let (cluster, policy) = (self.cluster.clone(), Arc::clone(self.policy));
        // Large, and this future is a part of another.
        Box::pin(elected::run(cluster, identity, policy, limits, metrics, events, stop)).await;
    }
}

/// Watches our objects of every kind that each cluster has, and opens the gate when all are listed.
async fn objects_of(informers: Informers, gate: Gate, listed: Arc<Notify>) {
    let mut tasks = JoinSet::new();
    let (all, mut waiting) = mpsc::channel::<()>(1);
    for kind in [Kind::Service, Kind::EndpointSlice, Kind::Ingress] {
        let (informers, all) = (informers.clone(), all.clone());
        tasks.spawn(async move { informers.objects(kind, "v1", Some(all)).await });
    }
    drop(all);
    // Nothing is ever sent: it ends when the last sender is dropped.
    let _ = waiting.recv().await;
    gate.open();
    listed.notify_one();
    // One that ends has panicked, and the agent cannot go on without it.
    let _ = tasks.join_next().await;
}

/// Waits until the agent was asked to stop, and then as long as the end may take.
async fn farewell(stop: &Stop) {
    stop.draining().await;
    tokio::select! {
        () = tokio::time::sleep(FAREWELL) => {}
        () = stop.aborted() => {}
    }
}

#[cfg(test)]
mod tests;
