//! Which of our objects belong to nobody (case B111). Owned objects go with their pod by themselves; what is left is what lost
//! its owner's name, or outlived its node.

use std::collections::BTreeSet;

use cofferdam_model::is_object_name;
use serde::Deserialize;

/// What is read of an object: little, however much is written into its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    labels: Labels,
    annotations: Annotations,
    owner_references: Vec<Owner>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Labels {
    #[serde(rename = "cofferdam.dev/session")]
    session: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "cofferdam.dev/node")]
    node: Option<String>,
}

/// Who owns an object, as the object says; nobody has looked whether there can be such a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct Owner {
    kind: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl Metadata {
    /// The id of its session; none without the label.
    pub(super) fn session(&self) -> Option<&str> {
        self.labels.session.as_deref()
    }

    /// Its node; none where it names none that could be there.
    fn node(&self) -> Option<&str> {
        self.annotations.node.as_deref().filter(|node| is_object_name(node))
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
    /// Its owner has another uid, or is not there; or is a pod that lost its label.
    PodGone(&'a Owner),
    /// No pod owns it, and no pod has its session's id.
    Unowned,
    /// Its node is not there.
    NodeGone(&'a str),
}

/// Why that object of ours seems to belong to nobody; none for one that belongs to somebody.
pub(super) fn suspicion<'a>(object: &'a Metadata, known: &Known) -> Option<Suspicion<'a>> {
    if let Some(node) = object.node().filter(|node| !known.nodes.contains(*node)) {
        return Some(Suspicion::NodeGone(node));
    }
    let mut pods = object.owner_references.iter().filter(|owner| owner.kind == "Pod");
    match (pods.next(), pods.next()) {
        (None, _) => {
            let session = (object.namespace.clone(), object.session().unwrap_or_default().to_owned());
            // While the session lives its agent gives the object its owner back.
            (!known.sessions.contains(&session)).then_some(Suspicion::Unowned)
        }
        (Some(pod), None) => (!known.pods.contains(&pod.uid)).then_some(Suspicion::PodGone(pod)),
        // Agents write one. What somebody has given several goes with the last of them.
        (Some(_), Some(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_model::keys::{NODE, SESSION};
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
        serde_json::from_value(json!({
            "name": "s-abc", "namespace": "team-a",
            "annotations": {NODE: node, "more": "x"}, "labels": {SESSION: session, "app": "y"},
            "ownerReferences": owners, "managedFields": [{"manager": "z"}],
        }))
        .unwrap()
    }

    fn pod(name: &str, uid: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid})
    }

    #[test]
    fn b111_what_belongs_to_nobody_is_found_and_nothing_else() {
        let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u9"});
        let owner = Owner { kind: "Pod".to_owned(), name: "p".to_owned(), uid: "u2".to_owned() };
        let gone = || Some(Suspicion::PodGone(&owner));
        for (node, session, owners, expected) in [
            ("node-1", "abc", json!([pod("p", "u1")]), None),
            ("node-1", "abc", json!([other, pod("p", "u1")]), None),
            ("node-1", "abc", json!([pod("p", "u2")]), gone()),
            // The id's next pod does not own what the last one left.
            ("node-1", "abc", json!([other, pod("p", "u2")]), gone()),
            ("node-1", "abc", json!([]), None),
            ("node-1", "xyz", json!([]), Some(Suspicion::Unowned)),
            ("node-1", "xyz", json!([other]), Some(Suspicion::Unowned)),
            ("node-2", "abc", json!([pod("p", "u1")]), Some(Suspicion::NodeGone("node-2"))),
            ("node-1", "abc", json!([pod("p", "u2"), pod("q", "u3")]), None),
        ] {
            assert_eq!(suspicion(&object(node, session, &owners), &known()), expected, "{node} {session} {owners}");
        }
    }

    #[test]
    fn an_object_that_says_no_node_is_judged_by_its_owner() {
        for node in ["", "a/b", "../pods", "Node", &"n".repeat(300)] {
            assert_eq!(suspicion(&object(node, "abc", &json!([pod("p", "u1")])), &known()), None, "{node}");
            assert_eq!(suspicion(&object(node, "", &json!([])), &known()), Some(Suspicion::Unowned), "{node}");
        }
        assert_eq!(suspicion(&Metadata::default(), &known()), Some(Suspicion::Unowned));
    }
}
