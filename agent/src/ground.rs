//! What routes stand on: the policy, the layer that it comes to in this cluster, and the Gateway that is the parent of routes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cofferdam_model::policy::{Policy, RoutingMode};
use cofferdam_runtime::ready::Gate;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::cluster::{Cluster, Resource, Selection};
use crate::layer::{self, GatewayClass, IngressClass, Layer, LayerError, Surroundings};
use crate::metrics::Watches;
use crate::objects::GATEWAY_GROUP;
use crate::probe::Tls;
use crate::verdict::Known;
use crate::watch::{Change, Collected, follow};
use crate::world::World;

/// Kinds may be installed later than we are.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// Kinds that are there rarely go.
const LOOK_RARELY: Duration = Duration::from_mins(10);

/// Is told which versions of Gateway API's routes are served, the preferred one first.
pub type Served = Arc<dyn Fn(&[String]) + Send + Sync>;

/// A layer is given up only when it has been gone for so long.
const PATIENCE: Duration = Duration::from_secs(15);

/// What routes stand on at a moment.
#[derive(Debug, PartialEq)]
pub struct Ground {
    /// Whether all that the layer depends on was asked for; nothing may be concluded before.
    pub is_known: bool,
    /// The policy.
    pub policy: Arc<Policy>,
    /// The layer, or why there is none.
    pub layer: Result<Layer, LayerError>,
    /// How to speak TLS to a gateway.
    pub tls: Tls,
    gateway: Parent,
    /// The class by which it was told whether routes carry a proof.
    class: Option<GatewayClass>,
}

/// The Gateway that is the parent of all routes.
#[derive(Clone, Debug, Default, PartialEq)]
enum Parent {
    #[default]
    NotAsked,
    Unreadable,
    Read(Option<Value>),
}

impl Default for Ground {
    fn default() -> Self {
        Self {
            is_known: false,
            policy: Arc::new(Policy::built_in()),
            layer: Ok(Layer::Off),
            tls: Tls::new(None),
            gateway: Parent::NotAsked,
            class: None,
        }
    }
}

impl Ground {
    /// The Gateway that is the parent of all routes.
    #[must_use]
    pub fn gateway(&self) -> Known<'_> {
        match (&self.layer, &self.gateway) {
            (Ok(Layer::Gateway { .. }), Parent::NotAsked | Parent::Unreadable) => Known::Unreadable,
            (Ok(Layer::Gateway { .. }), Parent::Read(Some(gateway))) => Known::There(gateway),
            _ => Known::Missing,
        }
    }
}

/// What is read of the cluster, as it comes in.
#[derive(Debug, Default)]
struct Sights {
    surroundings: Surroundings,
    gateway: Parent,
    gateway_classes: HashMap<String, GatewayClass>,
    /// Whether the `IngressClasses` were listed, or will not be.
    has_asked_for_classes: bool,
    /// Whether the `GatewayClasses` were listed, or will not be: without them routes would be made without proof first.
    has_asked_for_gateway_classes: bool,
}

/// Keeps `world.ground` as the cluster is, until it is dropped. `versions` is told which versions of Gateway API's routes
/// are served. `namespace` is the only one that may be looked into, if there is one.
pub async fn keep(
    world: Arc<World>,
    cluster: Cluster,
    watches: Watches,
    policy: Arc<Policy>,
    namespace: Option<String>,
    versions: Served,
    gate: Option<Gate>,
) {
    // Classes belong to no namespace, so who may look into one only cannot ask for them.
    let asks = namespace.is_none();
    let sights = Sights { has_asked_for_classes: !asks, has_asked_for_gateway_classes: !asks, ..Sights::default() };
    let sights = Arc::new(Mutex::new(sights));
    let changed = Arc::new(Notify::new());
    let mut tasks = JoinSet::new();
    let routing = policy.routing();
    // Once for each policy, since it takes a while.
    let tls = Tls::new(routing.probe.ca_bundle.as_deref());
    if let Some(error) = tls.error() {
        tracing::warn!(%error, "no address can be probed over TLS");
    }
    if routing.is_on() {
        tasks.spawn(discover(cluster.clone(), Arc::clone(&sights), Arc::clone(&changed), versions));
        if routing.mode != RoutingMode::Gateway && asks {
            ingress_classes(&mut tasks, &cluster, &watches, &sights, &changed);
        }
        if let Some(parent) = routing.gateway.clone().filter(|_| routing.mode != RoutingMode::Ingress) {
            let selection = Selection {
                namespace: Some(parent.namespace),
                fields: format!("metadata.name={}", parent.name),
                ..Selection::default()
            };
            gateways(&mut tasks, &cluster, &watches, &sights, &changed, selection);
            if asks {
                gateway_classes(&mut tasks, &cluster, &watches, &sights, &changed);
            }
        }
    }
    let (mut gate, mut gone_since) = (gate, None);
    loop {
        let ground = seen(&lock(&sights), &policy, &tls, &world.ground.load());
        let is_known = ground.is_some();
        let held = ground
            .as_ref()
            .and_then(|ground| held_until(&world.ground.load().layer, &ground.layer, &mut gone_since, Instant::now()));
        if let Some(ground) = ground.filter(|_| held.is_none()) {
            stand_on(&world, ground);
        }
        if let Some(gate) = gate.take_if(|_| is_known) {
            gate.open();
        }
        tokio::select! {
            () = changed.notified() => {}
            () = sleep_until(held.unwrap_or_else(Instant::now)), if held.is_some() => {}
            // One that panicked: begin anew.
            Some(_) = tasks.join_next() => return,
        }
    }
}

/// Until when the layer of `before` holds, although there is none now; none where it does not. What is reinstalled is gone
/// for a moment. `gone_since` is kept between one look and the next.
fn held_until(
    before: &Result<Layer, LayerError>,
    now: &Result<Layer, LayerError>,
    gone_since: &mut Option<Instant>,
    moment: Instant,
) -> Option<Instant> {
    if !matches!((before, now), (Ok(Layer::Gateway { .. } | Layer::Ingress { .. }), Err(_))) {
        *gone_since = None;
        return None;
    }
    let until = *gone_since.get_or_insert(moment) + PATIENCE;
    (until > moment).then_some(until)
}

/// From now on routes stand on this, if it is another ground.
fn stand_on(world: &World, ground: Ground) {
    let before = world.ground.load();
    if **before == ground {
        return;
    }
    if before.layer != ground.layer {
        match &ground.layer {
            Ok(layer) => tracing::info!(?layer, "routes are made for"),
            Err(error) => tracing::warn!(%error, "no routes are made"),
        }
    }
    world.ground.store(Arc::new(ground));
    world.wake_everyone();
}

/// The ground as far as it was seen; nothing before all that the layer depends on was asked for.
fn seen(sights: &Sights, policy: &Arc<Policy>, tls: &Tls, before: &Ground) -> Option<Ground> {
    let routing = policy.routing();
    let waits = routing.is_on()
        && (sights.surroundings.gateway_versions.is_none()
            || (routing.mode != RoutingMode::Gateway && !sights.has_asked_for_classes)
            || (routing.gateway.is_some()
                && routing.mode != RoutingMode::Ingress
                && (sights.gateway == Parent::NotAsked || !sights.has_asked_for_gateway_classes)));
    if waits {
        return None;
    }
    let class = match &sights.gateway {
        Parent::Read(Some(gateway)) => {
            let named = gateway["spec"]["gatewayClassName"].as_str();
            named.and_then(|name| sights.gateway_classes.get(name))
        }
        Parent::NotAsked | Parent::Unreadable | Parent::Read(None) => None,
    };
    // Of another Gateway it says nothing.
    let before = before.class.as_ref().filter(|_| before.policy.routing().gateway == routing.gateway);
    let class = GatewayClass::settled(class, before).cloned();
    Some(Ground {
        is_known: true,
        policy: Arc::clone(policy),
        layer: layer::resolve(routing, &Surroundings { gateway_class: class.clone(), ..sights.surroundings.clone() }),
        tls: tls.clone(),
        gateway: sights.gateway.clone(),
        class,
    })
}

/// Asks again and again which kinds are served, since that cannot be watched.
async fn discover(cluster: Cluster, sights: Arc<Mutex<Sights>>, changed: Arc<Notify>, tell: Served) {
    loop {
        let mut pause = LOOK_AGAIN;
        match cluster.versions(GATEWAY_GROUP, "httproutes").await {
            Ok(versions) => {
                if !versions.is_empty() {
                    pause = LOOK_RARELY;
                }
                tell(&versions);
                let mut sights = lock(&sights);
                if sights.surroundings.gateway_versions.as_ref() != Some(&versions) {
                    sights.surroundings.gateway_versions = Some(versions);
                    changed.notify_one();
                }
            }
            Err(error) => tracing::debug!(%error, "the API server cannot be asked for its kinds"),
        }
        // Not all agents at once.
        tokio::time::sleep(pause.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
    }
}

fn ingress_classes(
    tasks: &mut JoinSet<()>,
    cluster: &Cluster,
    watches: &Watches,
    sights: &Arc<Mutex<Sights>>,
    changed: &Arc<Notify>,
) {
    let resource = Resource::of("ingressclasses", "networking.k8s.io/v1");
    let (sights, changed) = (Arc::clone(sights), Arc::clone(changed));
    let mut classes: Collected<IngressClass> = Collected::default();
    collect(tasks, cluster, watches, resource, Selection::default(), move |change| {
        let is_refused = is_refused(&change);
        let is_other = classes.take(change, |object| (name(&object), ingress_class(&object)));
        if !is_refused && !is_other {
            return;
        }
        let mut sights = lock(&sights);
        sights.has_asked_for_classes = true;
        if is_other {
            let mut all: Vec<IngressClass> = classes.all().values().cloned().collect();
            all.sort_by(|one, other| one.name.cmp(&other.name));
            sights.surroundings.ingress_classes = Some(all);
        }
        changed.notify_one();
    });
}

fn gateways(
    tasks: &mut JoinSet<()>,
    cluster: &Cluster,
    watches: &Watches,
    sights: &Arc<Mutex<Sights>>,
    changed: &Arc<Notify>,
    selection: Selection,
) {
    let (sights, changed) = (Arc::clone(sights), Arc::clone(changed));
    let mut gateways: Collected<Value> = Collected::default();
    collect(tasks, cluster, watches, gateway_api("gateways"), selection, move |change| {
        if is_refused(&change) {
            let mut sights = lock(&sights);
            // What was read stays: a connection that broke says nothing of the Gateway.
            if sights.gateway == Parent::NotAsked {
                sights.gateway = Parent::Unreadable;
            }
            changed.notify_one();
        } else if gateways.take(change, gateway) {
            lock(&sights).gateway = Parent::Read(gateways.all().values().next().cloned());
            changed.notify_one();
        }
    });
}

fn gateway_classes(
    tasks: &mut JoinSet<()>,
    cluster: &Cluster,
    watches: &Watches,
    sights: &Arc<Mutex<Sights>>,
    changed: &Arc<Notify>,
) {
    let (sights, changed) = (Arc::clone(sights), Arc::clone(changed));
    let mut classes: Collected<GatewayClass> = Collected::default();
    collect(tasks, cluster, watches, gateway_api("gatewayclasses"), Selection::default(), move |change| {
        let is_refused = is_refused(&change);
        if !classes.take(change, |object| (name(&object), gateway_class(&object))) && !is_refused {
            return;
        }
        let mut sights = lock(&sights);
        sights.has_asked_for_gateway_classes = true;
        sights.gateway_classes.clone_from(classes.all());
        changed.notify_one();
    });
}

fn collect(
    tasks: &mut JoinSet<()>,
    cluster: &Cluster,
    watches: &Watches,
    resource: Resource,
    selection: Selection,
    tell: impl FnMut(Change) + Send + 'static,
) {
    let (cluster, watches) = (cluster.clone(), watches.clone());
    tasks.spawn(async move { follow(cluster, resource, selection, watches, &Notify::new(), tell).await });
}

/// Whether nothing can be read, and will not be. Whatever else fails says nothing of what there is, and is waited for:
/// else an API server that is slow for a moment would have every route written without proof.
fn is_refused(change: &Change) -> bool {
    matches!(change, Change::Unreadable(class) if class.is_conclusive())
}

/// Of a group that is served in this version since Gateway API 1.0.
fn gateway_api(name: &'static str) -> Resource {
    Resource::of(name, &format!("{GATEWAY_GROUP}/v1"))
}

/// What is there is whole after any panic.
fn lock(sights: &Mutex<Sights>) -> MutexGuard<'_, Sights> {
    sights.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn ingress_class(object: &Value) -> IngressClass {
    let mark = &object["metadata"]["annotations"]["ingressclass.kubernetes.io/is-default-class"];
    IngressClass { name: name(object), is_default: mark == "true" }
}

/// A Gateway by its name, without what changes with every route that is attached: all sessions look again when it
/// changes.
fn gateway(mut object: Value) -> (String, Value) {
    let name = name(&object);
    let metadata = object["metadata"].take();
    for listener in object["status"]["listeners"].as_array_mut().into_iter().flatten() {
        let count = listener["attachedRoutes"].as_u64().unwrap_or_default();
        listener["attachedRoutes"] = count.min(1).into();
    }
    for key in ["generation", "namespace", "deletionTimestamp"] {
        object["metadata"][key] = metadata[key].clone();
    }
    (name, object)
}

fn gateway_class(object: &Value) -> GatewayClass {
    let features = object["status"]["supportedFeatures"].as_array().into_iter().flatten();
    // Strings until Gateway API 1.2, objects since.
    let feature = |value: &Value| value["name"].as_str().or(value.as_str()).map(str::to_owned);
    GatewayClass {
        name: name(object),
        controller_name: object["spec"]["controllerName"].as_str().unwrap_or_default().to_owned(),
        supported_features: features.filter_map(feature).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    mod answers;

    #[test]
    fn a_layer_is_given_up_when_it_has_been_gone_for_so_long_however_often_somebody_looks() {
        let layer = Ok(Layer::Ingress { class: "c".to_owned(), tls_secret: None });
        let none = Err(LayerError::Ambiguous("there is none".to_owned()));
        let (begin, mut gone_since) = (Instant::now(), None);
        let mut look = |before, now, seconds| {
            let until = held_until(before, now, &mut gone_since, begin + Duration::from_secs(seconds));
            until.map(|until| (until - begin).as_secs())
        };
        assert_eq!(look(&layer, &none, 0), Some(15));
        assert_eq!(look(&layer, &none, 14), Some(15), "a second look begins no second patience");
        assert_eq!(look(&layer, &none, 15), None);
        assert_eq!(look(&layer, &layer, 16), None);
        assert_eq!(look(&layer, &none, 20), Some(35), "it was back");
        assert_eq!(look(&none, &none, 21), None, "there was none before");
        assert_eq!(look(&layer, &Ok(Layer::Off), 22), None, "the policy wants none");
    }

    #[test]
    fn of_a_gateway_is_kept_what_is_judged_and_not_what_changes_with_every_route() {
        let read = |routes: u32, version: &str| {
            gateway(json!({
                "metadata": {"name": "g", "namespace": "n", "generation": 7, "resourceVersion": version,
                    "deletionTimestamp": "2026-01-01T00:00:00Z"},
                "status": {"listeners": [{"attachedRoutes": routes}]},
            }))
        };
        assert_eq!(read(1, "8"), read(200, "9"));
        assert_ne!(read(0, "8"), read(1, "8"));
        let (name, kept) = read(1, "8");
        let metadata = json!({"namespace": "n", "generation": 7, "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!((name.as_str(), &kept["metadata"]), ("g", &metadata));
    }
}
