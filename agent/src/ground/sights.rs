//! What is read of the cluster for the ground, as it comes in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_kubernetes::watch::{Change, Collected, Lookout, Picture};
use cofferdam_kubernetes::{Backoff, Cluster, Resource, Selection, json};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::Served;
use crate::layer::{GatewayClass, IngressClass};
use crate::objects::GATEWAY_GROUP;

/// Kinds may be installed later than we are; who has had none for long may wait for them longer.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
const LOOK_LATER: Duration = Duration::from_mins(5);
/// Kinds that are there rarely go.
const LOOK_RARELY: Duration = Duration::from_mins(10);

/// What was read of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Sight<T> {
    /// Nothing yet: whatever is concluded now would be taken back in a moment.
    #[default]
    NotAsked,
    /// Nothing, and it is not waited for.
    Refused,
    /// All there is.
    Seen(T),
}

impl<T> Sight<T> {
    /// Whether it was read, or will not be.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self, Self::NotAsked)
    }

    /// What was read.
    pub(super) fn seen(&self) -> Option<&T> {
        match self {
            Self::NotAsked | Self::Refused => None,
            Self::Seen(all) => Some(all),
        }
    }
}

/// What was read, by name where there may be several.
#[derive(Debug, Default)]
pub(super) struct Sights {
    pub(super) gateway_versions: Sight<Vec<String>>,
    pub(super) ingress_classes: Sight<BTreeMap<String, IngressClass>>,
    /// The one that is the parent of routes, if it is there.
    pub(super) gateways: Sight<BTreeMap<String, Value>>,
    /// Without them routes would be made without proof first.
    pub(super) gateway_classes: Sight<BTreeMap<String, GatewayClass>>,
}

/// Which versions of Gateway API's routes are served; `tell` is told. They are asked for again at once when what this gives is
/// told that there are other kinds.
pub(super) fn versions(lookout: &mut Lookout<Sights>, tell: Served) -> Arc<Notify> {
    let look_again = Arc::default();
    let its_look_again = Arc::clone(&look_again);
    lookout.ask(|cluster, picture| discover(cluster, picture, tell, its_look_again));
    look_again
}

/// All classes of Ingresses.
pub(super) fn ingress_classes(lookout: &mut Lookout<Sights>, look_again: &Arc<Notify>) {
    let resource = Resource::of("ingressclasses", "networking.k8s.io/v1");
    watch(lookout, resource, Selection::default(), look_again, ingress_class, |sights| &mut sights.ingress_classes);
}

/// The Gateway that `selection` names.
pub(super) fn gateway(lookout: &mut Lookout<Sights>, selection: Selection, look_again: &Arc<Notify>) {
    watch(lookout, gateway_api("gateways"), selection, look_again, gateway_of, |sights| &mut sights.gateways);
}

/// All classes of Gateways.
pub(super) fn gateway_classes(lookout: &mut Lookout<Sights>, look_again: &Arc<Notify>) {
    let resource = gateway_api("gatewayclasses");
    watch(lookout, resource, Selection::default(), look_again, gateway_class, |sights| &mut sights.gateway_classes);
}

/// Keeps one sight as the cluster is; `read` says what is kept of an object. `look_again` is told when a kind is there that was
/// not: those that come with it are too.
fn watch<T: Clone + PartialEq + Send + 'static>(
    lookout: &mut Lookout<Sights>,
    resource: Resource,
    selection: Selection,
    look_again: &Arc<Notify>,
    read: fn(&Value) -> T,
    sight: fn(&mut Sights) -> &mut Sight<BTreeMap<String, T>>,
) {
    let (mut collected, mut was_refused, look_again) = (Collected::default(), false, Arc::clone(look_again));
    lookout.watch(resource.name, resource, selection, move |sights, change| {
        let (sight, is_refused) = (sight(sights), matches!(change, Change::Unreadable { is_conclusive: true }));
        if is_refused {
            was_refused = true;
        } else if matches!(change, Change::Listed) && std::mem::take(&mut was_refused) {
            look_again.notify_one();
        }
        if let Some(all) = collected.take(change, |object| (json::name(object).to_owned(), read(object))) {
            *sight = Sight::Seen(all.clone());
            return true;
        }
        // What was read stays: that it may not be read any more, or that its kind is gone for a moment, is no news of it.
        // Whatever else fails is waited for: else an API server that is slow for a moment would have every route written
        // without proof.
        if is_refused && !sight.is_known() {
            *sight = Sight::Refused;
        }
        is_refused
    });
}

/// Asks again and again which kinds are served, since that cannot be watched.
async fn discover(cluster: Cluster, picture: Picture<Sights>, tell: Served, look_again: Arc<Notify>) {
    let mut in_vain = Backoff::new(LOOK_AGAIN, LOOK_LATER);
    loop {
        let pause = match cluster.versions(GATEWAY_GROUP, "httproutes").await {
            Ok(versions) => {
                let is_served = !versions.is_empty();
                tell(&versions);
                picture.change(|sights| {
                    let now = Sight::Seen(versions);
                    std::mem::replace(&mut sights.gateway_versions, now.clone()) != now
                });
                if is_served {
                    in_vain.over();
                    // Not all agents at once.
                    LOOK_RARELY.mul_f64(0.75 + fastrand::f64() / 2.0)
                } else {
                    in_vain.failed()
                }
            }
            Err(error) => {
                tracing::debug!(%error, "the API server cannot be asked for its kinds");
                // Nothing may be concluded until it can.
                in_vain.over();
                in_vain.failed()
            }
        };
        if timeout(pause, look_again.notified()).await.is_ok() {
            // Discovery may come a moment after the kind.
            in_vain.over();
        }
    }
}

/// Of a group that is served in this version since Gateway API 1.0.
fn gateway_api(name: &'static str) -> Resource {
    Resource::of(name, &format!("{GATEWAY_GROUP}/v1"))
}

fn ingress_class(object: &Value) -> IngressClass {
    let mark = json::annotation(object, "ingressclass.kubernetes.io/is-default-class");
    IngressClass { name: json::name(object).to_owned(), is_default: mark == Some("true") }
}

/// A Gateway, without what changes with every route that is attached: all sessions look again when it changes.
fn gateway_of(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].take();
    for listener in object["status"]["listeners"].as_array_mut().into_iter().flatten() {
        let count = listener["attachedRoutes"].as_u64().unwrap_or_default();
        listener["attachedRoutes"] = count.min(1).into();
    }
    for key in ["generation", "namespace", "deletionTimestamp"] {
        object["metadata"][key] = metadata[key].clone();
    }
    object
}

fn gateway_class(object: &Value) -> GatewayClass {
    let features = json::each(&object["status"]["supportedFeatures"]);
    // Strings until Gateway API 1.2, objects since.
    let feature = |value: &Value| value["name"].as_str().or(value.as_str()).map(str::to_owned);
    GatewayClass {
        name: json::name(object).to_owned(),
        controller_name: json::text(&object["spec"]["controllerName"]).to_owned(),
        supported_features: features.filter_map(feature).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use cofferdam_model::keys;
    use http::Request;
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::testing::{answer, failure};

    #[tokio::test(start_paused = true)]
    async fn whoever_has_no_gateway_api_asks_for_it_ever_more_rarely_and_finds_it_soon_when_it_comes() {
        let (asked, is_there) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (its_asked, its_is_there) = (Arc::clone(&asked), Arc::clone(&is_there));
        let service = tower::service_fn(move |request: Request<Body>| {
            let group_version = format!("{GATEWAY_GROUP}/v1");
            let version = json!({"groupVersion": group_version, "version": "v1"});
            let group = json!({"name": GATEWAY_GROUP, "versions": [version], "preferredVersion": version});
            let routes =
                json!({"name": "httproutes", "singularName": "", "namespaced": true, "kind": "HTTPRoute", "verbs": []});
            let (is_there, is_watch) = (
                its_is_there.load(Ordering::Relaxed),
                request.uri().query().is_some_and(|query| query.contains("watch=")),
            );
            let found = match request.uri().path() {
                "/apis" if is_there => answer(&json!({"groups": [group]})),
                "/apis" => {
                    its_asked.fetch_add(1, Ordering::Relaxed);
                    answer(&json!({"groups": []}))
                }
                path if path.ends_with("/gatewayclasses") && is_there => {
                    answer(&json!({"metadata": {"resourceVersion": "1"}, "items": []}))
                }
                path if path.ends_with("/gatewayclasses") => failure(404, "NotFound"),
                _ => answer(&json!({"groupVersion": group_version, "resources": [routes]})),
            };
            async move { if is_watch { std::future::pending().await } else { Ok::<_, Infallible>(found) } }
        });
        let registry = prometheus::Registry::new();
        let cluster = Cluster::new(kube::Client::new(service, "default"), keys::AGENT, &registry).unwrap();
        let watches = crate::metrics::Metrics::register(&registry, "", false).unwrap().watches;
        let served = Arc::new(Mutex::new(Vec::new()));
        let its_served = Arc::clone(&served);
        let mut lookout = Lookout::new(cluster, watches, Sights::default());
        let tell: Served = Arc::new(move |versions| its_served.lock().unwrap().extend_from_slice(versions));
        let look_again = versions(&mut lookout, tell);
        gateway_classes(&mut lookout, &look_again);
        // As often as every 15 s in the first minute, and at last every 5 min at the most.
        tokio::time::sleep(Duration::from_mins(1)).await;
        assert!(asked.load(Ordering::Relaxed) > 2);
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert!(asked.load(Ordering::Relaxed) < 40, "{asked:?}");
        for comes in ["after an hour", "again"] {
            is_there.store(true, Ordering::Relaxed);
            // By then the kind that is watched has been asked for again.
            tokio::time::sleep(Duration::from_secs(31)).await;
            assert_eq!(served.lock().unwrap().first().map(String::as_str), Some("v1"), "{comes}");
            is_there.store(false, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_hours(1)).await;
            served.lock().unwrap().clear();
        }
    }

    #[test]
    fn of_a_gateway_is_kept_what_is_judged_and_not_what_changes_with_every_route() {
        let read = |routes: u32, version: &str| {
            gateway_of(&json!({
                "metadata": {"name": "g", "namespace": "n", "generation": 7, "resourceVersion": version,
                    "deletionTimestamp": "2026-01-01T00:00:00Z"},
                "status": {"listeners": [{"attachedRoutes": routes}]},
            }))
        };
        assert_eq!(read(1, "8"), read(200, "9"));
        assert_ne!(read(0, "8"), read(1, "8"));
        let metadata = json!({"namespace": "n", "generation": 7, "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert_eq!(read(1, "8")["metadata"], metadata);
    }
}
