//! What is written about the sessions of a node that is lost, or whose agent is silent. When the node is back its own agent
//! writes all of it anew.
//!
//! The annotation `cofferdam.dev/endpoints` is left as it is: it says what was last known of each port, by the only one
//! who knew, and the conditions say that nobody knows now.

use std::net::IpAddr;

use cofferdam_model::keys::{AGENT, HARDENED, IS_HARDENED, MANAGED_BY, NODE, SESSION};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::ResourceExt;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::reason::{ConditionType, Reason};
use crate::report::{self, changed};
use crate::session::Condition;

/// What is wrong with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outage {
    /// It is lost: its sessions go out of service.
    Lost,
    /// Its agent is silent: its sessions may serve well, and nobody looks. What leads astray goes out of service.
    Silent,
}

/// The conditions that only the node's own agent can know.
const UNKNOWN: [ConditionType; 3] =
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
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let has_ended = status.and_then(|status| status.phase.as_deref()).is_some_and(|phase| {
        // Nothing that is yet to come can change these.
        phase == "Succeeded" || phase == "Failed"
    });
    let told: Vec<Condition> = conditions.iter().map(read).collect();
    let find = |type_: &str| told.iter().find(|condition| condition.type_ == type_);
    let slipped_through = find(IS_HARDENED).is_some_and(|condition| condition.status == "False");
    // The label alone is also on pods of namespaces where nothing is a session. One that was admitted while no agent looked
    // has no condition yet.
    let is_session = pod.labels().contains_key(SESSION)
        && (pod.annotations().contains_key(HARDENED) || UNKNOWN.iter().any(|type_| find(type_.as_str()).is_some()));
    if has_ended || slipped_through || !is_session {
        return None;
    }
    let (reason, message) = (outage.reason(), outage.message(node));
    let mark = |type_: &ConditionType| report::Condition { type_: *type_, reason, message: message.clone() };
    let marks: Vec<_> = UNKNOWN.iter().filter_map(|type_| changed(&told, &mark(type_), now)).collect();
    (!marks.is_empty()).then(|| {
        json!({
            "metadata": {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version},
            "status": {"conditions": marks},
        })
    })
}

fn read(condition: &PodCondition) -> Condition {
    let PodCondition { type_, status, reason, message, .. } = condition.clone();
    Condition { type_, status, reason: reason.unwrap_or_default(), message: message.unwrap_or_default() }
}

/// Whether this `EndpointSlice` leads to a pod that has ended, is being deleted, or has another address by now: its own agent
/// would have taken the endpoint away, and the address may be somebody else's. A pod that is not among `pods` says nothing:
/// it may be newer than they are, and if it is gone its slice goes with it.
pub(super) fn leads_astray(slice: &DynamicObject, pods: &[Pod]) -> bool {
    let owns = |pod: &&Pod| {
        slice
            .owner_references()
            .iter()
            .any(|owner| owner.kind == "Pod" && Some(&owner.uid) == pod.metadata.uid.as_ref())
    };
    pods.iter().filter(owns).any(|pod| {
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        let is_over = matches!(phase, Some("Succeeded" | "Failed")) || pod.metadata.deletion_timestamp.is_some();
        let address = status.and_then(|status| status.pod_ip.as_deref()).and_then(address);
        let mut endpoints = slice.data["endpoints"].as_array().into_iter().flatten();
        is_over || endpoints.any(|endpoint| endpoint["addresses"][0].as_str().and_then(self::address) != address)
    })
}

fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// What is applied so that this `EndpointSlice` has no endpoint; nothing for one that is not of that node, or has none.
///
/// Endpoints that stay and say that they are not ready are no help: a gateway that knows of no better one sends requests
/// there all the same (Envoy does, below its panic threshold), and they wait for an address that answers nobody.
///
/// It is all that the slice's agent applies, less its endpoints: of one field manager, what an apply leaves out goes. It
/// holds for this version of the slice alone, so that it never overwrites what an agent that came back has written.
pub(super) fn withdrawn(slice: &DynamicObject, node: &str) -> Option<Value> {
    let is_ours = slice.labels().get(MANAGED_BY).is_some_and(|manager| manager == AGENT);
    if !is_ours || slice.annotations().get(NODE).is_none_or(|of| of != node) {
        return None;
    }
    let has_endpoints = slice.data["endpoints"].as_array().is_some_and(|endpoints| !endpoints.is_empty());
    let metadata = &slice.metadata;
    has_endpoints.then(|| {
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
                "labels": metadata.labels,
                "annotations": metadata.annotations,
                "ownerReferences": metadata.owner_references,
            },
            "addressType": slice.data["addressType"],
            "endpoints": [],
            "ports": slice.data["ports"],
        })
    })
}

#[cfg(test)]
mod tests;
