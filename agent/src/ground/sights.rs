//! What is read of the cluster for the ground, as it comes in.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{Parent, Served};
use crate::cluster::{Cluster, Resource, Selection};
use crate::layer::{GatewayClass, IngressClass, Surroundings};
use crate::metrics::Watches;
use crate::objects::GATEWAY_GROUP;
use crate::watch::{Change, Collected, follow};

/// Kinds may be installed later than we are.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// Kinds that are there rarely go.
const LOOK_RARELY: Duration = Duration::from_mins(10);

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Sights {
    pub(super) surroundings: Surroundings,
    pub(super) gateway: Parent,
    pub(super) gateway_classes: HashMap<String, GatewayClass>,
    /// Whether the `IngressClasses` were listed, or will not be.
    pub(super) has_asked_for_classes: bool,
    /// Whether the `GatewayClasses` were listed, or will not be: without them routes would be made without proof first.
    pub(super) has_asked_for_gateway_classes: bool,
}

/// What reads, until it is dropped.
pub(super) struct Lookout {
    cluster: Cluster,
    watches: Watches,
    sights: Arc<Mutex<Sights>>,
    changed: Arc<Notify>,
    tasks: JoinSet<()>,
}

impl Lookout {
    /// Nothing is read yet.
    pub(super) fn new(cluster: Cluster, watches: Watches, sights: Sights) -> Self {
        let (sights, changed) = (Arc::new(Mutex::new(sights)), Arc::default());
        Self { cluster, watches, sights, changed, tasks: JoinSet::new() }
    }

    /// What was read by now.
    pub(super) fn sights(&self) -> MutexGuard<'_, Sights> {
        lock(&self.sights)
    }

    /// Waits until that is another. False when one that reads has panicked, and all has to begin anew.
    pub(super) async fn changed(&mut self) -> bool {
        tokio::select! {
            () = self.changed.notified() => true,
            Some(_) = self.tasks.join_next() => false,
        }
    }

    /// Which versions of Gateway API's routes are served; `tell` is told.
    pub(super) fn versions(&mut self, tell: Served) {
        self.tasks.spawn(discover(self.cluster.clone(), Arc::clone(&self.sights), Arc::clone(&self.changed), tell));
    }

    /// All classes of Ingresses.
    pub(super) fn ingress_classes(&mut self) {
        let resource = Resource::of("ingressclasses", "networking.k8s.io/v1");
        let mut classes: Collected<IngressClass> = Collected::default();
        self.read(resource, Selection::default(), move |sights, change| {
            let is_refused = is_refused(&change);
            let is_other = classes.take(change, |object| (name(&object), ingress_class(&object)));
            if is_other {
                let mut all: Vec<IngressClass> = classes.all().values().cloned().collect();
                all.sort_by(|one, other| one.name.cmp(&other.name));
                sights.surroundings.ingress_classes = Some(all);
            }
            sights.has_asked_for_classes |= is_refused || is_other;
            is_refused || is_other
        });
    }

    /// The Gateway that `selection` names.
    pub(super) fn gateway(&mut self, selection: Selection) {
        let mut gateways: Collected<Value> = Collected::default();
        self.read(gateway_api("gateways"), selection, move |sights, change| {
            if is_refused(&change) {
                // What was read stays: a connection that broke says nothing of the Gateway.
                if sights.gateway == Parent::NotAsked {
                    sights.gateway = Parent::Unreadable;
                }
                return true;
            }
            let is_other = gateways.take(change, gateway);
            if is_other {
                sights.gateway = Parent::Read(gateways.all().values().next().cloned());
            }
            is_other
        });
    }

    /// All classes of Gateways.
    pub(super) fn gateway_classes(&mut self) {
        let mut classes: Collected<GatewayClass> = Collected::default();
        self.read(gateway_api("gatewayclasses"), Selection::default(), move |sights, change| {
            let is_refused = is_refused(&change);
            let is_other = classes.take(change, |object| (name(&object), gateway_class(&object)));
            if is_refused || is_other {
                sights.has_asked_for_gateway_classes = true;
                sights.gateway_classes.clone_from(classes.all());
            }
            is_refused || is_other
        });
    }

    /// `take` takes in what is told, and says whether the sights may be others then.
    fn read(
        &mut self,
        resource: Resource,
        selection: Selection,
        mut take: impl FnMut(&mut Sights, Change) -> bool + Send + 'static,
    ) {
        let (cluster, watches) = (self.cluster.clone(), self.watches.clone());
        let (sights, changed) = (Arc::clone(&self.sights), Arc::clone(&self.changed));
        let tell = move |change| {
            if take(&mut lock(&sights), change) {
                changed.notify_one();
            }
        };
        self.tasks.spawn(async move { follow(cluster, resource, selection, watches, &Notify::new(), tell).await });
    }
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
