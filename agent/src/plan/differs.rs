//! Whether an object is as it ought to be.

use std::borrow::Cow;

use serde_json::Value;

use crate::desired::Wanted;
use crate::objects::Kind;

/// What we never say, and what would lead people elsewhere, or others in, if somebody else said it. Steps through lists
/// are left out. Whatever else is there that we did not say is taken for a default of the API server or a note of
/// another's: calling a default of a later Kubernetes a difference would make objects anew for ever.
const FOREIGN: &[(Kind, &[&str])] = &[
    (
        Kind::Service,
        &[
            "spec.externalIPs",
            "spec.externalName",
            "spec.loadBalancerIP",
            "spec.ports.appProtocol",
            "spec.ports.nodePort",
            "spec.publishNotReadyAddresses",
            "spec.selector",
        ],
    ),
    (Kind::EndpointSlice, &["endpoints.hints", "ports.appProtocol"]),
    (
        Kind::HttpRoute,
        &[
            "spec.parentRefs.port",
            "spec.parentRefs.sectionName",
            "spec.rules.backendRefs.filters",
            "spec.rules.backendRefs.namespace",
            "spec.rules.filters",
            "spec.rules.filters.responseHeaderModifier.add",
            "spec.rules.filters.responseHeaderModifier.remove",
            "spec.rules.matches.headers",
            "spec.rules.matches.method",
            "spec.rules.matches.queryParams",
            "spec.rules.retry",
            "spec.rules.sessionPersistence",
            "spec.rules.timeouts",
            "spec.useDefaultGateways",
        ],
    ),
    (Kind::Ingress, &["spec.defaultBackend", "spec.rules.http.paths.backend.resource", "spec.tls"]),
];

/// The same of every kind: an owner that is a controller, or that holds up a deletion.
const FOREIGN_ANYWHERE: [&str; 2] =
    ["metadata.ownerReferences.blockOwnerDeletion", "metadata.ownerReferences.controller"];

/// Whether `live` is not what is wanted: something of ours is missing or other, a list of ours holds something else, or a
/// foreign field is set.
pub(super) fn differs(wanted: &Wanted, live: &Value) -> bool {
    let foreign = FOREIGN.iter().find(|(kind, _)| *kind == wanted.kind).map_or(&[][..], |(_, fields)| *fields);
    let keys = wanted.object.as_object().into_iter().flatten();
    // Which version an object is shown in says nothing about it, and a list shows none.
    keys.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind"))
        .any(|(key, part)| !covers(part, &live[key.as_str()], key, foreign))
}

fn covers(wanted: &Value, live: &Value, at: &str, foreign: &[&str]) -> bool {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            wanted.iter().all(|(key, part)| {
                live.get(key).is_some_and(|live| covers(part, live, &format!("{at}.{key}"), foreign))
            }) && live.iter().all(|(key, part)| {
                wanted.contains_key(key) || is_empty(part) || !is_foreign(&format!("{at}.{key}"), foreign)
            })
        }
        (Value::Array(wanted), Value::Array(live)) => {
            let (wanted, live) = (in_order(wanted, at), in_order(live, at));
            wanted.len() == live.len()
                && wanted.iter().zip(live.iter()).all(|(one, other)| covers(one, other, at, foreign))
        }
        _ => wanted == live,
    }
}

fn is_foreign(field: &str, foreign: &[&str]) -> bool {
    foreign.contains(&field) || FOREIGN_ANYWHERE.contains(&field)
}

/// An apply merges a Service's ports by number and protocol, and keeps what order it finds: only which protocol comes first
/// for one number matters.
fn in_order<'a>(list: &'a [Value], at: &str) -> Cow<'a, [Value]> {
    if at != "spec.ports" {
        return Cow::Borrowed(list);
    }
    let mut list = list.to_vec();
    list.sort_by_key(|port| port["port"].as_u64());
    Cow::Owned(list)
}

/// Whether a value says nothing: an API server may show it or not.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}
