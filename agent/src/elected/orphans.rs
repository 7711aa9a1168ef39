//! Which of our objects belong to nobody (case B111). Owned objects go with their pod by themselves; what is left is what lost
//! its owner's name, or outlived its node.

use std::collections::BTreeSet;

use cofferdam_model::keys::{NODE, SESSION};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::objects::GATEWAY_GROUP;

/// A kind of object that agents make for sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) group: &'static str,
    /// The one to ask for first is the first.
    pub(super) versions: &'static [&'static str],
    pub(super) kind: &'static str,
    /// As in URLs and metrics.
    pub(super) plural: &'static str,
}

/// All of them.
pub(super) const RESOURCES: [Resource; 4] = [
    Resource { group: "", versions: &["v1"], kind: "Service", plural: "services" },
    Resource { group: "discovery.k8s.io", versions: &["v1"], kind: "EndpointSlice", plural: "endpointslices" },
    Resource { group: GATEWAY_GROUP, versions: &["v1", "v1beta1"], kind: "HTTPRoute", plural: "httproutes" },
    Resource { group: "networking.k8s.io", versions: &["v1"], kind: "Ingress", plural: "ingresses" },
];

/// What there is, listed after the objects were: whoever they belong to was there before them.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// The uids of pods with the label of a session.
    pub(super) pods: BTreeSet<String>,
    /// Namespace and id of their sessions.
    pub(super) sessions: BTreeSet<(String, String)>,
    /// The names of nodes.
    pub(super) nodes: BTreeSet<String>,
}

/// Why an object seems to belong to nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// Its owner has another uid, or is not there; or is a pod that lost its label, which has to be asked for.
    PodGone { name: String, uid: String },
    /// No pod owns it, and no pod has its session's id.
    Unowned,
    /// Its node is not there.
    NodeGone(String),
}

/// Why that object of ours seems to belong to nobody; none for one that belongs to somebody.
pub(super) fn suspicion(object: &ObjectMeta, known: &Known) -> Option<Suspicion> {
    if let Some(node) = object.annotations.as_ref().and_then(|annotations| annotations.get(NODE))
        && !known.nodes.contains(node)
    {
        return Some(Suspicion::NodeGone(node.clone()));
    }
    let mut owners = object.owner_references.iter().flatten().filter(|owner| owner.kind == "Pod").peekable();
    let Some(first) = owners.peek().copied() else {
        let namespace = object.namespace.clone().unwrap_or_default();
        let id = object.labels.as_ref().and_then(|labels| labels.get(SESSION)).cloned().unwrap_or_default();
        // While the session lives its agent gives the object its owner back.
        return (!known.sessions.contains(&(namespace, id))).then_some(Suspicion::Unowned);
    };
    let is_owned = owners.any(|owner| known.pods.contains(&owner.uid));
    (!is_owned).then(|| Suspicion::PodGone { name: first.name.clone(), uid: first.uid.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn known() -> Known {
        Known {
            pods: ["u1".to_owned()].into(),
            sessions: [("team-a".to_owned(), "abc".to_owned())].into(),
            nodes: ["node-1".to_owned()].into(),
        }
    }

    fn object(node: &str, session: &str, owners: &Value) -> ObjectMeta {
        serde_json::from_value(json!({
            "name": "s-abc", "namespace": "team-a",
            "annotations": {"cofferdam.dev/node": node}, "labels": {"cofferdam.dev/session": session},
            "ownerReferences": owners,
        }))
        .unwrap()
    }

    fn pod(name: &str, uid: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid})
    }

    #[test]
    fn b111_what_belongs_to_nobody_is_found_and_nothing_else() {
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u9"});
        let gone = || Some(Suspicion::PodGone { name: "p".to_owned(), uid: "u2".to_owned() });
        for (node, session, owners, expected) in [
            ("node-1", "abc", json!([pod("p", "u1")]), None),
            ("node-1", "abc", json!([other, pod("p", "u1")]), None),
            ("node-1", "abc", json!([pod("p", "u2")]), gone()),
            // The id's next pod does not own what the last one left.
            ("node-1", "abc", json!([other, pod("p", "u2")]), gone()),
            ("node-1", "abc", json!([]), None),
            ("node-1", "xyz", json!([]), Some(Suspicion::Unowned)),
            ("node-1", "xyz", json!([other]), Some(Suspicion::Unowned)),
            ("node-2", "abc", json!([pod("p", "u1")]), Some(Suspicion::NodeGone("node-2".to_owned()))),
        ] {
            assert_eq!(suspicion(&object(node, session, &owners), &known()), expected, "{node} {session} {owners}");
        }
    }

    #[test]
    fn an_object_that_says_no_node_is_judged_by_its_owner() {
        let mut object = object("", "abc", &json!([pod("p", "u1")]));
        object.annotations = None;
        assert_eq!(suspicion(&object, &known()), None);
        object.owner_references = None;
        object.labels = None;
        assert_eq!(suspicion(&object, &known()), Some(Suspicion::Unowned));
    }
}
