//! What is written about the sessions of a node that is lost, or whose agent is silent. When the node is back its own agent
//! writes all of it anew.
//!
//! The annotation `cofferdam.dev/endpoints` is left as it is: it says what was last known of each port, by the only one
//! who knew, and the conditions say that nobody knows now.

use std::net::IpAddr;

use cofferdam_kubernetes::json::{self, annotation, each, label, owning_pods, parsed};
use cofferdam_model::keys::{AGENT, HARDENED, IS_HARDENED, MANAGED_BY, NODE, SESSION};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::orphans::Metadata;
use crate::reason::{ConditionType, Reason};
use crate::report::{self, changed};
use crate::session::{Told, has_ended};

/// What is kept of a pod of such a node.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    resource_version: String,
    /// Whether it is a session: the label alone is also on pods of namespaces where nothing is one. One that was admitted
    /// while no agent looked has no condition yet.
    is_session: bool,
    has_ended: bool,
    is_leaving: bool,
    address: Option<IpAddr>,
    told: Told,
}

impl Pod {
    /// Reads the object.
    pub(super) fn read(pod: &Value) -> Self {
        let told = Told::read(pod);
        let is_told =
            told.conditions.iter().any(|told| KNOWN_ON_THE_NODE.iter().any(|type_| type_.as_str() == told.type_));
        Self {
            namespace: json::namespace(pod).to_owned(),
            name: json::name(pod).to_owned(),
            uid: json::uid(pod).to_owned(),
            resource_version: json::text(&pod["metadata"]["resourceVersion"]).to_owned(),
            is_session: label(pod, SESSION).is_some() && (annotation(pod, HARDENED).is_some() || is_told),
            has_ended: has_ended(pod),
            is_leaving: json::is_leaving(pod),
            address: parsed(&pod["status"]["podIP"]),
            told,
        }
    }

    /// Whether it is a session no more, and only its agent knows how to end that: it has ended, or is being deleted.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended || self.is_leaving
    }
}

impl<'de> Deserialize<'de> for Pod {
    /// Reads it without its specification, which its author can make large.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Parts {
            #[serde(default)]
            metadata: Value,
            #[serde(default)]
            status: Value,
        }
        let Parts { metadata, status } = Parts::deserialize(deserializer)?;
        let parts = [("metadata".to_owned(), metadata), ("status".to_owned(), status)];
        Ok(Self::read(&Value::Object(parts.into_iter().collect())))
    }
}

/// What is wrong with a node. The worse comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outage {
    /// It is lost: its sessions go out of service.
    Lost,
    /// Its agent is silent: its sessions may serve well, and nobody looks. What leads astray goes out of service.
    Silent,
}

/// The conditions that only the node's own agent can know.
const KNOWN_ON_THE_NODE: [ConditionType; 3] =
    [ConditionType::PortsReachable, ConditionType::RouteProgrammed, ConditionType::RouteReachable];

impl Outage {
    fn reason(self) -> Reason {
        match self {
            Self::Lost => Reason::NodeLost,
            Self::Silent => Reason::AgentSilent,
        }
    }

    /// For a person; the same as long as the outage lasts.
    fn message(self, node: &str) -> String {
        match self {
            Self::Lost => format!("Node {node} is not ready. Look at its conditions."),
            Self::Silent => {
                format!("The agent on node {node} is not ready. Look at the pod of DaemonSet cofferdam-agent there.")
            }
        }
    }
}

/// The strategic merge patch of `pods/status` that marks a session of that node; nothing for a pod that is no session, that
/// has ended or slipped through (which stays true), or that is marked so already. `now` as of [`time`](crate::report::time).
/// The patch holds for this version of the pod alone, so that it never overwrites what an agent that came back has written.
pub(super) fn marked(pod: &Pod, outage: Outage, node: &str, now: &str) -> Option<Value> {
    let told = &pod.told.conditions;
    let slipped_through = told.iter().any(|told| told.type_ == IS_HARDENED && told.status == "False");
    if pod.has_ended || slipped_through || !pod.is_session {
        return None;
    }
    let (reason, message) = (outage.reason(), outage.message(node));
    let mark = |type_: &ConditionType| report::Condition { type_: *type_, reason, message: message.clone() };
    let marks: Vec<_> = KNOWN_ON_THE_NODE.iter().filter_map(|type_| changed(told, &mark(type_), now)).collect();
    (!marks.is_empty()).then(|| {
        json!({
            "metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version},
            "status": {"conditions": marks},
        })
    })
}

/// Whether this `EndpointSlice` leads to a pod that has ended, is being deleted, or has another address by now: its own agent
/// would have taken the endpoint away, and the address may be somebody else's. A pod that is not among `pods` says nothing:
/// it may be newer than they are, and if it is gone its slice goes with it.
pub(super) fn leads_astray(slice: &Value, pods: &[Pod]) -> bool {
    let owns = |pod: &&Pod| owning_pods(slice).any(|owner| owner["uid"] == pod.uid);
    pods.iter().filter(owns).any(|pod| {
        let mut endpoints = each(&slice["endpoints"]);
        pod.is_over() || endpoints.any(|endpoint| parsed(&endpoint["addresses"][0]) != pod.address)
    })
}

/// Whether an object is owned by none but pods that are over: its own agent would have deleted it, and with it the claim of
/// their id. As above, a pod that is not among `pods` says nothing.
pub(super) fn is_released(object: &Metadata, pods: &[Pod]) -> bool {
    let is_over = |uid: &str| pods.iter().any(|pod| pod.uid == uid && pod.is_over());
    !object.is_leaving && !object.pods.is_empty() && object.pods.iter().all(|owner| is_over(&owner.uid))
}

/// What is applied so that this `EndpointSlice` has no endpoint; nothing for one that is not of that node, or has none.
///
/// Endpoints that stay and say that they are not ready are no help: a gateway that knows of no better one sends requests
/// there all the same (Envoy does, below its panic threshold), and they wait for an address that answers nobody.
///
/// It is all that the slice's agent applies, less its endpoints: of one field manager, what an apply leaves out goes. It
/// holds for this version of the slice alone, so that it never overwrites what an agent that came back has written.
pub(super) fn withdrawn(slice: &Value, node: &str) -> Option<Value> {
    if label(slice, MANAGED_BY) != Some(AGENT) || annotation(slice, NODE) != Some(node) {
        return None;
    }
    let metadata = &slice["metadata"];
    each(&slice["endpoints"]).next().is_some().then(|| {
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
                "labels": metadata["labels"],
                "annotations": metadata["annotations"],
                "ownerReferences": metadata["ownerReferences"],
            },
            "addressType": slice["addressType"],
            "endpoints": [],
            "ports": slice["ports"],
        })
    })
}

#[cfg(test)]
mod tests;
