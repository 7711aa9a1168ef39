//! What the agent watches, and where it goes: into the [`World`].
//!
//! Pods and our objects are those of the node alone. Of the rest there is one for each namespace or less, which is all of a
//! node's work that grows with the cluster.

use std::sync::Arc;

use arc_swap::ArcSwap;
use cofferdam_kubernetes::watch::{Change, Collected, Watches, follow};
use cofferdam_kubernetes::{Cluster, Resource, Selection, json};
use cofferdam_model::keys;
use cofferdam_model::policy::Policy;
use cofferdam_runtime::ready::Gate;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use crate::desired::node_hash;
use crate::network_policy;
use crate::node::State;
use crate::objects::{Kind, resource};
use crate::session::{Phase, Seen};
use crate::world::{Moment, World};

mod namespaces;

pub(crate) use namespaces::Namespaces;

/// What the watches share.
#[derive(Clone)]
pub(crate) struct Informers {
    /// What they fill.
    pub world: Arc<World>,
    /// From where.
    pub cluster: Cluster,
    /// What they count.
    pub watches: Watches,
    /// The node's name.
    pub node: String,
    /// The only namespace that may be looked into, if there is one.
    pub namespace: Option<String>,
}

impl Informers {
    /// The pods of the node, read by `policy`. `begin` is told of each that is new. `relist` reads all of them again.
    pub(crate) async fn pods(
        self,
        policy: Arc<ArcSwap<Policy>>,
        namespaces: Arc<Namespaces>,
        relist: Arc<Notify>,
        begin: impl Fn(String, Arc<Notify>) + Send,
        gate: Gate,
    ) {
        let fields = format!("spec.nodeName={}", self.node);
        let selection = Selection { namespace: self.namespace.clone(), fields, ..Selection::default() };
        let mut gate = Some(gate);
        let world = Arc::clone(&self.world);
        let mut round = Moment::default();
        self.follow(Resource::core("pods"), selection, &relist, move |change| match change {
            Change::Begun => {
                namespaces.begin();
                round = world.pods_begin();
            }
            Change::Seen(pod) => {
                let (namespace, uid) = (json::namespace(&pod), json::uid(&pod));
                let seen = Seen::read(&pod, namespaces.of(namespace, uid), &policy.load());
                let Some(seen) = seen else { return world.pod_gone(uid) };
                if seen.session.phase != Phase::Released {
                    namespaces.session(namespace, uid);
                }
                if let Some(wake) = world.pod(seen) {
                    begin(uid.to_owned(), wake);
                }
            }
            Change::Gone(pod) => {
                namespaces.forget(json::namespace(&pod), json::uid(&pod));
                world.pod_gone(json::uid(&pod));
            }
            Change::Listed => {
                world.pods_listed(round);
                if let Some(gate) = gate.take() {
                    gate.open();
                }
            }
            Change::Unreadable { .. } => {}
        })
        .await;
    }

    /// Our objects of one kind, from this node, once its pods are known. `listed` is dropped once all that were there are known,
    /// or will not be: where nobody may list Ingresses, sessions with an HTTPRoute go on.
    pub(crate) async fn objects(self, kind: Kind, version: &str, listed: Option<mpsc::Sender<()>>) {
        let labels = format!("{}={},{}={}", keys::NODE_HASH, node_hash(&self.node), keys::MANAGED_BY, keys::AGENT);
        let selection = Selection { namespace: self.namespace.clone(), labels, ..Selection::default() };
        self.world.pods_known().await;
        let mut listed = listed;
        let node = self.node.clone();
        let world = Arc::clone(&self.world);
        if kind == Kind::HttpRoute {
            world.routes_watched(version);
        }
        let mut round = Moment::default();
        self.follow(resource(kind, version), selection, &Notify::new(), move |change| match change {
            Change::Begun => round = world.objects_begin(),
            Change::Seen(object) => seen(&world, &node, kind, &object),
            Change::Gone(object) => world.object_gone(kind, &object),
            Change::Listed => {
                world.objects_listed(kind, round);
                world.readable(kind, true);
                drop(listed.take());
            }
            Change::Unreadable { is_conclusive } => {
                world.readable(kind, false);
                if is_conclusive {
                    world.refused(kind);
                    drop(listed.take());
                }
            }
        })
        .await;
    }

    /// What the namespaces are to us. `relist` is told when pods have to be read in another way.
    pub(crate) async fn namespaces(self, namespaces: Arc<Namespaces>, relist: Arc<Notify>, ready: Arc<Notify>) {
        self.follow(Resource::core("namespaces").metadata(), Selection::default(), &Notify::new(), move |change| {
            let is_listed = matches!(change, Change::Listed);
            if namespaces.take(change) {
                relist.notify_one();
            }
            if is_listed {
                ready.notify_one();
            }
        })
        .await;
    }

    /// Which namespaces have the `NetworkPolicy` of sessions. Where one namespace is all that may be looked into, nobody is
    /// elected to keep it, so it is the administrator's, as with `network.mode: manual`.
    pub(crate) async fn network_policies(self) {
        if let Some(namespace) = &self.namespace {
            self.world.protected(namespace, true);
            return std::future::pending().await;
        }
        let world = Arc::clone(&self.world);
        let mut policies = Collected::default();
        let resource = network_policy::resource().metadata();
        self.follow(resource, network_policy::of_our_name(), &Notify::new(), move |change| {
            let read = |policy: &Value| (json::namespace(policy).to_owned(), network_policy::is_ours(policy));
            policies.take_each(change, read, |namespace, _, is_ours| {
                world.protected(namespace, is_ours.copied().unwrap_or_default());
            });
        })
        .await;
    }

    /// Whether the node is Ready. While it is not, the elected agent speaks for its sessions.
    pub(crate) async fn node(self) {
        let selection = Selection { fields: format!("metadata.name={}", self.node), ..Selection::default() };
        let world = Arc::clone(&self.world);
        let mut nodes = Collected::default();
        let tell = move |change| node_changed(&world, &mut nodes, change);
        self.follow(Resource::core("nodes"), selection, &Notify::new(), tell).await;
    }

    async fn follow(&self, resource: Resource, selection: Selection, relist: &Notify, tell: impl FnMut(Change)) {
        let watching = self.watches.begin(resource.name);
        follow(self.cluster.clone(), resource, selection, watching, relist, tell).await;
    }
}

/// Takes in what happens to the agent's node. One that was deleted is lost, as it is for the elected agent.
fn node_changed(world: &World, nodes: &mut Collected<State>, change: Change) {
    if let Some(nodes) = nodes.take(change, |node| (String::new(), State::of(node))) {
        world.node_lost(nodes.values().next().is_none_or(|state| state.is_lost()));
    }
}

/// Takes in an object with our labels. That of the node is a hash, and anybody can write it, so the annotation decides; what
/// was this node's and says so no more has to be put right as if it were gone.
fn seen(world: &World, node: &str, kind: Kind, object: &Value) {
    if json::annotation(object, keys::NODE) == Some(node) {
        world.object(kind, object);
    } else {
        world.object_gone(kind, object);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::ground::Ground;
    use crate::session::Membership;
    use crate::testing::reply;

    #[test]
    fn an_object_that_no_longer_says_its_node_is_as_good_as_gone() {
        let world = World::new(Ground::default());
        let pod = json!({"metadata": {"namespace": "n", "name": "p", "uid": "p", "resourceVersion": "1",
            "labels": {"cofferdam.dev/session": "a"}}, "status": {"phase": "Running"}});
        world.pod(Seen::read(&pod, Membership::Other, &Policy::built_in()).unwrap());
        let service = |version: &str, node: &Value| {
            json!({"metadata": {"namespace": "n", "name": "s-a", "uid": "s", "resourceVersion": version,
                "annotations": {"cofferdam.dev/node": node}}})
        };
        let known = || world.snapshot("p").unwrap().live.len();
        seen(&world, "node-1", Kind::Service, &service("1", &json!("node-1")));
        assert_eq!(known(), 1);
        for (version, node) in [("2", Value::Null), ("4", json!("node-2"))] {
            seen(&world, "node-1", Kind::Service, &service(version, &node));
            assert_eq!(known(), 0, "{node}");
            seen(&world, "node-1", Kind::Service, &service("5", &json!("node-1")));
            assert_eq!(known(), 1);
        }
    }

    #[test]
    fn a_node_that_is_not_ready_or_was_deleted_is_lost() {
        let world = World::new(Ground::default());
        let pod = json!({"metadata": {"namespace": "n", "name": "p", "uid": "p",
            "labels": {"cofferdam.dev/session": "a"}}, "status": {"phase": "Running"}});
        world.pod(Seen::read(&pod, Membership::Other, &Policy::built_in()).unwrap());
        let node = |ready: &str, changed: &str| {
            json!({
                "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
                "status": {"conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": changed}]},
            })
        };
        let (early, late) = ("2026-01-01T00:00:01Z", "2026-01-01T00:03:00Z");
        let mut nodes = Collected::default();
        let mut after = |change| {
            node_changed(&world, &mut nodes, change);
            world.snapshot("p").unwrap().is_node_lost
        };
        assert!(!after(Change::Begun) && !after(Change::Seen(node("True", late))) && !after(Change::Listed));
        assert!(after(Change::Seen(node("Unknown", late))));
        assert!(!after(Change::Seen(node("False", early))), "it never was Ready, and nobody else speaks for it");
        assert!(after(Change::Seen(node("False", late))));
        assert!(!after(Change::Seen(json!({}))), "its kubelet never reported");
        assert!(after(Change::Gone(node("True", late))));
        assert!(!after(Change::Seen(node("True", late))));
        // It went while nobody watched.
        assert!(!after(Change::Begun) && after(Change::Listed));
    }

    /// What watches, for the world of `node-1`, from an API server that answers every list so.
    fn informers(world: &Arc<World>, list: impl Fn() -> Option<Response<Body>> + Send + 'static) -> Informers {
        let client = kube::Client::new(
            tower::service_fn(move |request: Request<Body>| {
                let is_list = request.uri().query().is_some_and(|query| !query.contains("watch="));
                let answer = is_list.then(&list).flatten();
                async move {
                    let Some(answer) = answer else { return std::future::pending().await };
                    Ok::<_, Infallible>(answer)
                }
            }),
            "default",
        );
        let registry = prometheus::Registry::new();
        Informers {
            world: Arc::clone(world),
            cluster: Cluster::new(client, keys::AGENT, &registry).unwrap(),
            watches: crate::metrics::Metrics::register(&registry, "", false).unwrap().watches,
            node: "node-1".to_owned(),
            namespace: None,
        }
    }

    fn forbidden() -> Value {
        let message = "x is forbidden: User \"a\" cannot list resource \"x\" in API group \"y\" at the cluster scope";
        json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": message})
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_may_list_is_not_waited_for_and_what_fails_is() {
        let of = |code: u16| json!({"kind": "Status", "code": code, "reason": "", "message": ""});
        for (answer, goes_on) in [(forbidden(), true), (of(404), true), (of(500), false)] {
            let world = Arc::new(World::new(Ground::default()));
            world.pods_listed(world.pods_begin());
            let code = u16::try_from(answer["code"].as_u64().unwrap()).unwrap();
            let its_answer = answer.clone();
            let informers = informers(&world, move || Some(reply(code, &its_answer)));
            let (listed, mut waiting) = mpsc::channel(1);
            let watching = tokio::spawn(informers.objects(Kind::Ingress, "v1", Some(listed)));
            let over = tokio::time::timeout(Duration::from_mins(5), waiting.recv()).await;
            assert_eq!(over.is_ok(), goes_on, "{answer}");
            watching.abort();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_api_server_that_starts_refuses_is_waited_for() {
        let world = Arc::new(World::new(Ground::default()));
        world.pods_listed(world.pods_begin());
        let is_ready = Arc::new(AtomicBool::new(false));
        let its_is_ready = Arc::clone(&is_ready);
        let informers = informers(&world, move || {
            let list = json!({"metadata": {"resourceVersion": "1"}, "items": []});
            Some(if its_is_ready.load(Ordering::Relaxed) { reply(200, &list) } else { reply(403, &forbidden()) })
        });
        let (listed, mut waiting) = mpsc::channel(1);
        let watching = tokio::spawn(informers.objects(Kind::HttpRoute, "v1", Some(listed)));
        let routes = world.routes_known();
        assert!(tokio::time::timeout(Duration::from_secs(5), waiting.recv()).await.is_err());
        assert!(!*routes.borrow(), "sessions would make theirs anew");
        is_ready.store(true, Ordering::Relaxed);
        assert!(tokio::time::timeout(Duration::from_secs(10), waiting.recv()).await.is_ok());
        assert!(*routes.borrow());
        watching.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_policy_of_our_name_that_is_not_ours_protects_nothing() {
        for (manager, expected) in [("cofferdam-agent", true), ("Helm", false)] {
            let world = Arc::new(World::new(Ground::default()));
            for namespace in ["n", "another"] {
                let pod = json!({"metadata": {"namespace": namespace, "name": "p", "uid": namespace,
                    "labels": {"cofferdam.dev/session": "a"}}, "status": {"phase": "Running"}});
                world.pod(Seen::read(&pod, Membership::Other, &Policy::built_in()).unwrap());
            }
            let is_protected = |namespace: &str| world.snapshot(namespace).unwrap().is_protected;
            let policy = |namespace: &str, manager: &str| {
                json!({"metadata": {"namespace": namespace, "name": "cofferdam-sessions",
                    "labels": {"app.kubernetes.io/managed-by": manager}}})
            };
            let items = [policy("n", manager), policy("another", "cofferdam-agent")];
            let list = json!({"metadata": {"resourceVersion": "1"}, "items": items});
            let watching = tokio::spawn(informers(&world, move || Some(reply(200, &list))).network_policies());
            let is_listed = async {
                while !is_protected("another") {
                    tokio::task::yield_now().await;
                }
            };
            assert!(tokio::time::timeout(Duration::from_secs(5), is_listed).await.is_ok());
            assert_eq!(is_protected("n"), expected, "{manager}");
            watching.abort();
        }
    }

    #[tokio::test]
    async fn in_the_namespaced_variant_the_network_policy_is_the_administrators() {
        for (namespace, expected) in [(Some("n"), true), (None, false)] {
            let world = Arc::new(World::new(Ground::default()));
            let pod = json!({"metadata": {"namespace": "n", "name": "p", "uid": "p",
                "labels": {"cofferdam.dev/session": "a"}}, "status": {"phase": "Running"}});
            world.pod(Seen::read(&pod, Membership::Other, &Policy::built_in()).unwrap());
            let informers = Informers { namespace: namespace.map(str::to_owned), ..informers(&world, || None) };
            let never = informers.network_policies();
            assert!(futures_util::FutureExt::now_or_never(never).is_none());
            assert_eq!(world.snapshot("p").unwrap().is_protected, expected);
        }
    }
}
