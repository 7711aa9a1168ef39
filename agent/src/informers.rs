//! What the agent watches, and where it goes: into the [`World`].
//!
//! Pods and our objects are those of the node alone. Of the rest there is one for each namespace or less, which is all of a
//! node's work that grows with the cluster.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use cofferdam_model::keys;
use cofferdam_model::policy::Policy;
use cofferdam_runtime::ready::Gate;
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use crate::cluster::{Cluster, Resource, Selection};
use crate::desired::node_hash;
use crate::metrics::Watches;
use crate::objects::{Kind, resource};
use crate::session::{Membership, Phase, Seen};
use crate::watch::{Change, follow};
use crate::world::World;

/// What the watches share.
#[derive(Clone)]
pub struct Informers {
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
    pub async fn pods(
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
        let mut round = 0;
        self.follow(Resource::core("pods"), selection, &relist, move |change| match change {
            Change::Begun => {
                namespaces.begin();
                round = world.pods_begin();
            }
            Change::Seen(pod) => {
                let name = pod["metadata"]["namespace"].as_str().unwrap_or_default();
                let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
                let seen = Seen::read(&pod, namespaces.of(name), &policy.load());
                if seen.as_ref().is_none_or(|seen| seen.session.phase == Phase::Released) {
                    namespaces.passed_by(name, uid);
                }
                let Some(seen) = seen else { return world.pod_gone(uid) };
                if let Some(wake) = world.pod(seen) {
                    begin(uid.to_owned(), wake);
                }
            }
            Change::Gone(pod) => {
                let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
                namespaces.forget(pod["metadata"]["namespace"].as_str().unwrap_or_default(), uid);
                world.pod_gone(uid);
            }
            Change::Listed => {
                world.pods_listed(round);
                if let Some(gate) = gate.take() {
                    gate.open();
                }
            }
            Change::Unreadable(_) | Change::Readable => {}
        })
        .await;
    }

    /// Our objects of one kind, from this node. `listed` is dropped once all that were there are known.
    pub async fn objects(self, kind: Kind, version: &str, listed: Option<mpsc::Sender<()>>) {
        let labels = format!("{}={},{}={}", keys::NODE_HASH, node_hash(&self.node), keys::MANAGED_BY, keys::AGENT);
        let selection = Selection { namespace: self.namespace.clone(), labels, ..Selection::default() };
        let mut listed = listed;
        let node = self.node.clone();
        let world = Arc::clone(&self.world);
        let mut round = 0;
        self.follow(resource(kind, version), selection, &Notify::new(), move |change| match change {
            Change::Begun => round = world.objects_begin(),
            Change::Seen(object) => seen(&world, &node, kind, &object),
            Change::Gone(object) => world.object_gone(kind, &object),
            Change::Listed => {
                world.objects_listed(kind, round);
                world.readable(kind, true);
                drop(listed.take());
            }
            Change::Unreadable(_) => world.readable(kind, false),
            Change::Readable => world.readable(kind, true),
        })
        .await;
    }

    /// What the namespaces are to us. `relist` is told when pods have to be read in another way.
    pub async fn namespaces(self, namespaces: Arc<Namespaces>, relist: Arc<Notify>, ready: Arc<Notify>) {
        let mut seen = HashSet::new();
        self.follow(Resource::core("namespaces"), Selection::default(), &Notify::new(), move |change| {
            let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            match change {
                Change::Begun => seen.clear(),
                Change::Seen(object) => {
                    let membership = Membership::of_label(object["metadata"]["labels"][keys::SESSIONS].as_str());
                    if namespaces.set(&name(&object), membership) {
                        relist.notify_one();
                    }
                    seen.insert(name(&object));
                }
                Change::Gone(object) => namespaces.remove(&name(&object)),
                Change::Listed => {
                    namespaces.only(&seen);
                    ready.notify_one();
                }
                Change::Unreadable(_) | Change::Readable => {}
            }
        })
        .await;
    }

    /// Which namespaces have the `NetworkPolicy` of sessions.
    pub async fn network_policies(self) {
        let fields = format!("metadata.name={}", keys::NETWORK_POLICY);
        let selection = Selection { namespace: self.namespace.clone(), fields, ..Selection::default() };
        let world = Arc::clone(&self.world);
        let mut seen = HashSet::new();
        let resource = Resource::of("networkpolicies", "networking.k8s.io/v1");
        self.follow(resource, selection, &Notify::new(), move |change| {
            let namespace = |object: &Value| object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            match change {
                Change::Begun => seen.clear(),
                Change::Seen(object) => {
                    // One of that name that somebody else made may allow anything.
                    let is_ours = object["metadata"]["labels"][keys::MANAGED_BY] == keys::AGENT;
                    world.protected(&namespace(&object), is_ours);
                    if is_ours {
                        seen.insert(namespace(&object));
                    }
                }
                Change::Gone(object) => world.protected(&namespace(&object), false),
                Change::Listed => world.only_protected(&seen),
                Change::Unreadable(_) | Change::Readable => {}
            }
        })
        .await;
    }

    /// Whether the node is Ready. While it is not, the elected agent speaks for its sessions.
    pub async fn node(self) {
        let selection = Selection { fields: format!("metadata.name={}", self.node), ..Selection::default() };
        let world = Arc::clone(&self.world);
        self.follow(Resource::core("nodes"), selection, &Notify::new(), move |change| {
            if let Change::Seen(node) = change {
                let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
                let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready");
                world.node_lost(ready.is_some_and(|condition| condition["status"] != "True"));
            }
        })
        .await;
    }

    async fn follow(&self, resource: Resource, selection: Selection, relist: &Notify, tell: impl FnMut(Change)) {
        follow(self.cluster.clone(), resource, selection, self.watches.clone(), relist, tell).await;
    }
}

/// Takes in an object with our labels. That of the node is a hash, and anybody can write it, so the annotation decides; what
/// was this node's and says so no more has to be put right as if it were gone.
fn seen(world: &World, node: &str, kind: Kind, object: &Value) {
    if object["metadata"]["annotations"][keys::NODE] == node {
        world.object(kind, object);
    } else {
        world.object_gone(kind, object);
    }
}

/// What the namespaces are to us, and which of them have pods on the node that are no sessions now.
#[derive(Debug)]
pub struct Namespaces {
    known: Mutex<HashMap<String, Membership>>,
    passed_by: Mutex<HashMap<String, HashSet<String>>>,
    exempt: Vec<String>,
    /// What a namespace is that was not seen.
    otherwise: Membership,
}

impl Namespaces {
    /// Those of a cluster, Cofferdam itself being in `system`. With `only`, of which every pod is a session, the label of
    /// no namespace can be read.
    #[must_use]
    pub fn new(system: &str, only: Option<&str>) -> Self {
        Self {
            known: Mutex::default(),
            passed_by: Mutex::default(),
            exempt: vec![system.to_owned(), keys::KUBE_SYSTEM.to_owned()],
            otherwise: if only.is_some() { Membership::Enforced } else { Membership::Other },
        }
    }

    /// What a namespace is to us.
    #[must_use]
    pub fn of(&self, namespace: &str) -> Membership {
        if self.exempt.iter().any(|exempt| exempt == namespace) {
            return Membership::Exempt;
        }
        lock(&self.known).get(namespace).copied().unwrap_or(self.otherwise)
    }

    /// A namespace is this now: whether pods of the node have to be read again.
    fn set(&self, namespace: &str, membership: Membership) -> bool {
        let before = self.of(namespace);
        lock(&self.known).insert(namespace.to_owned(), membership);
        let had = before != membership && self.of(namespace) == membership;
        // Whoever was a session there may be none any more, and whoever was passed by may be one.
        had && (before == Membership::Enforced
            || membership == Membership::Exempt
            || lock(&self.passed_by).contains_key(namespace))
    }

    fn remove(&self, namespace: &str) {
        lock(&self.known).remove(namespace);
    }

    fn only(&self, namespaces: &HashSet<String>) {
        lock(&self.known).retain(|namespace, _| namespaces.contains(namespace));
    }

    fn begin(&self) {
        lock(&self.passed_by).clear();
    }

    fn passed_by(&self, namespace: &str, uid: &str) {
        lock(&self.passed_by).entry(namespace.to_owned()).or_default().insert(uid.to_owned());
    }

    fn forget(&self, namespace: &str, uid: &str) {
        let mut passed_by = lock(&self.passed_by);
        if let Some(pods) = passed_by.get_mut(namespace) {
            pods.remove(uid);
            if pods.is_empty() {
                passed_by.remove(namespace);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ground::Ground;

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
    fn pods_are_read_again_only_where_it_makes_a_difference() {
        let namespaces = Namespaces::new("cofferdam-system", None);
        assert_eq!(namespaces.of("a"), Membership::Other);
        assert!(!namespaces.set("a", Membership::Enforced), "no pod of it was seen");
        assert!(!namespaces.set("a", Membership::Enforced));
        namespaces.passed_by("b", "uid");
        assert!(namespaces.set("b", Membership::Enforced), "a pod of it was passed by");
        assert!(namespaces.set("b", Membership::Other), "its pods are sessions no more");
        namespaces.forget("b", "uid");
        assert!(namespaces.set("b", Membership::Exempt), "its labelled pods are sessions no more");
        assert!(!namespaces.set("b", Membership::Other), "there is none");
        assert!(!namespaces.set("kube-system", Membership::Enforced), "it is exempt whatever its label");
        assert_eq!(namespaces.of("kube-system"), Membership::Exempt);
    }

    #[test]
    fn in_the_namespaced_variant_every_pod_of_the_namespace_is_a_session() {
        let namespaces = Namespaces::new("cofferdam-system", Some("sessions"));
        assert_eq!(namespaces.of("sessions"), Membership::Enforced);
    }
}
