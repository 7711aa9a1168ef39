//! The Service, which is the claim of the session's name, and the `EndpointSlice` with the pod's address.

use std::net::IpAddr;

use cofferdam_model::keys;
use cofferdam_model::ports::{Port, Ports};
use serde_json::{Value, json};

use super::Wanted;
use super::metadata::Whose;
use crate::objects::{Kind, name};

/// Headless, and without a selector: the agent says itself where the pod is and whether it serves, so that readiness,
/// which hangs on the address, never takes the address away.
pub(super) fn service(whose: &Whose<'_>, ports: &Ports) -> Wanted {
    let name = name(whose.id.as_str());
    let object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": whose.metadata(&name),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": "None",
            "sessionAffinity": "None",
            "ports": ports.iter().map(|port| {
                let mut entry = named(port);
                entry["targetPort"] = json!(port.number);
                entry
            }).collect::<Vec<_>>(),
        },
    });
    Wanted { kind: Kind::Service, name, object }
}

/// Serving as soon as the pod has an address.
pub(super) fn slice(whose: &Whose<'_>, ports: &Ports, address: IpAddr) -> Wanted {
    let session = whose.session;
    let name = name(whose.id.as_str());
    let mut metadata = whose.metadata(&name);
    metadata["labels"]["kubernetes.io/service-name"] = json!(name);
    metadata["labels"]["endpointslice.kubernetes.io/managed-by"] = json!(keys::AGENT);
    let object = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": if address.is_ipv4() { "IPv4" } else { "IPv6" },
        "ports": ports.iter().map(named).collect::<Vec<_>>(),
        "endpoints": [{
            "addresses": [address.to_string()],
            "conditions": { "ready": true, "serving": true, "terminating": false },
            "nodeName": whose.node,
            "targetRef": { "kind": "Pod", "namespace": session.namespace, "name": session.name, "uid": session.uid },
        }],
    });
    Wanted { kind: Kind::EndpointSlice, name, object }
}

/// The protocol is part of the name, so that one number may stand for both (case B123, defect D13).
fn named(port: Port) -> Value {
    let protocol = port.protocol.as_str();
    json!({
        "name": format!("{protocol}-{}", port.number),
        "port": port.number,
        "protocol": protocol.to_ascii_uppercase(),
    })
}
