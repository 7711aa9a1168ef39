//! Which of our objects belong to nobody (case B111). Owned objects go with their pod by themselves; what is left is what lost
//! its owner's name, or outlived its node.

use std::collections::BTreeSet;

use cofferdam_kubernetes::json;
use cofferdam_model::is_object_name;
use cofferdam_model::keys::{NODE, SESSION};
use serde_json::Value;

/// What is kept of an object.
#[derive(Clone, Debug)]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    /// The id of its session; none without the label.
    pub(super) session: Option<String>,
    /// It is being deleted, and waits for whoever has a finalizer on it.
    pub(super) is_leaving: bool,
    /// Its node; none where it names none that could be there.
    pub(super) node: Option<String>,
    /// The pods that own it.
    pub(super) pods: Vec<Owner>,
}

/// A pod that owns an object, as the object says; nobody has looked whether there can be such a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) uid: String,
}

impl Metadata {
    /// Reads it from an object. A field that is not what it should be counts as missing.
    pub(super) fn read(object: &Value) -> Self {
        let text = |value: &Value| json::text(value).to_owned();
        let owner = |pod: &Value| Owner { name: text(&pod["name"]), uid: text(&pod["uid"]) };
        Self {
            name: json::name(object).to_owned(),
            namespace: json::namespace(object).to_owned(),
            uid: json::uid(object).to_owned(),
            resource_version: text(&object["metadata"]["resourceVersion"]),
            session: json::label(object, SESSION).map(str::to_owned),
            is_leaving: json::is_leaving(object),
            node: json::annotation(object, NODE).filter(|node| is_object_name(node)).map(str::to_owned),
            pods: json::owning_pods(object).map(owner).collect(),
        }
    }
}

/// What there is, listed before the objects are: who came in between is asked for by name.
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
pub(super) enum Suspicion<'a> {
    /// Each of its owners has another uid, or is not there; or is a pod that lost its label.
    PodsGone(&'a [Owner]),
    /// No pod owns it, and as far as is known none has its session's id on its node, or anywhere where it says none.
    Unowned,
    /// Its node is not there.
    NodeGone(&'a str),
}

/// Why that object of ours seems to belong to nobody; none for one that belongs to somebody, or is being deleted already.
pub(super) fn suspicion<'a>(object: &'a Metadata, known: &Known) -> Option<Suspicion<'a>> {
    if object.is_leaving {
        return None;
    }
    if let Some(node) = object.node.as_deref().filter(|node| !known.nodes.contains(*node)) {
        return Some(Suspicion::NodeGone(node));
    }
    if object.pods.is_empty() {
        let session = (object.namespace.clone(), object.session.clone().unwrap_or_default());
        // While the session lives its agent gives the object its owner back. It may do so on the object's own node alone, and who
        // is there has to be asked: a pod of that id on another node waits until the object is gone.
        let may_be_given_back = object.node.is_none() && known.sessions.contains(&session);
        return (!may_be_given_back).then_some(Suspicion::Unowned);
    }
    // Agents write one. What somebody has given several goes with the last of them.
    let are_gone = object.pods.iter().all(|pod| !known.pods.contains(&pod.uid));
    are_gone.then_some(Suspicion::PodsGone(&object.pods))
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

    fn object(node: &str, session: &str, owners: &Value) -> Metadata {
        Metadata::read(&json!({"metadata": {
            "name": "s-abc", "namespace": "team-a",
            "annotations": {NODE: node, "more": "x"}, "labels": {SESSION: session, "app": "y"},
            "ownerReferences": owners, "managedFields": [{"manager": "z"}],
        }}))
    }

    fn pod(name: &str, uid: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid})
    }

    #[test]
    fn b111_what_belongs_to_nobody_is_found_and_nothing_else() {
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u9"});
        let owner = |name: &str, uid: &str| Owner { name: name.to_owned(), uid: uid.to_owned() };
        let owners = [owner("p", "u2"), owner("q", "u3")];
        let gone = |count: usize| Some(Suspicion::PodsGone(&owners[..count]));
        for (node, session, owners, expected) in [
            ("node-1", "abc", json!([pod("p", "u1")]), None),
            ("node-1", "abc", json!([other, pod("p", "u1")]), None),
            ("node-1", "abc", json!([pod("p", "u2")]), gone(1)),
            // The id's next pod does not own what the last one left.
            ("node-1", "abc", json!([other, pod("p", "u2")]), gone(1)),
            // Whether that session's pod is on that node has to be asked.
            ("node-1", "abc", json!([]), Some(Suspicion::Unowned)),
            ("", "abc", json!([]), None),
            ("node-1", "xyz", json!([]), Some(Suspicion::Unowned)),
            ("node-1", "xyz", json!([other]), Some(Suspicion::Unowned)),
            ("node-2", "abc", json!([pod("p", "u1")]), Some(Suspicion::NodeGone("node-2"))),
            ("node-1", "abc", json!([pod("p", "u2"), pod("q", "u3")]), gone(2)),
            ("node-1", "abc", json!([pod("p", "u2"), pod("q", "u1")]), None),
        ] {
            assert_eq!(suspicion(&object(node, session, &owners), &known()), expected, "{node} {session} {owners}");
        }
    }

    #[test]
    fn what_is_being_deleted_is_not_deleted_again() {
        let mut orphan = json!({"metadata": {"name": "s-abc", "namespace": "team-a"}});
        assert_eq!(suspicion(&Metadata::read(&orphan), &known()), Some(Suspicion::Unowned));
        orphan["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(suspicion(&Metadata::read(&orphan), &known()), None);
    }

    #[test]
    fn an_object_that_says_no_node_is_judged_by_its_owner() {
        for node in ["", "a/b", "../pods", "Node", &"n".repeat(300)] {
            assert_eq!(suspicion(&object(node, "abc", &json!([pod("p", "u1")])), &known()), None, "{node}");
            assert_eq!(suspicion(&object(node, "", &json!([])), &known()), Some(Suspicion::Unowned), "{node}");
        }
        assert_eq!(suspicion(&Metadata::read(&Value::Null), &known()), Some(Suspicion::Unowned));
    }
}
