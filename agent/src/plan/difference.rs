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
            ANNOTATIONS,
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
    (Kind::Ingress, &[ANNOTATIONS, "spec.defaultBackend", "spec.rules.http.paths.backend.resource", "spec.tls"]),
];

/// All annotations of an object, less [`NOTES`]. Those of a route are orders to its controller: where to send people, with
/// which configuration, under which names. No list could name all that do harm. Labels are none: no controller takes more
/// from a route's than whether it is meant.
const ANNOTATIONS: &str = "metadata.annotations";

/// Annotations by which controllers and kubectl note what they did, and which order nothing.
const NOTES: [&str; 11] = [
    // Google's ingress controller: what it has made for an Ingress.
    "ingress.kubernetes.io/backends",
    "ingress.kubernetes.io/forwarding-rule",
    "ingress.kubernetes.io/https-forwarding-rule",
    "ingress.kubernetes.io/https-target-proxy",
    "ingress.kubernetes.io/ssl-cert",
    "ingress.kubernetes.io/static-ip",
    "ingress.kubernetes.io/target-proxy",
    "ingress.kubernetes.io/url-map",
    // Rancher: the addresses of an Ingress.
    "field.cattle.io/publicEndpoints",
    // Kyverno: which of its policies changed an object.
    "policies.kyverno.io/last-applied-patches",
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// The same of every kind: an owner that is a controller, or that holds up a deletion.
const FOREIGN_ANYWHERE: [&str; 2] =
    ["metadata.ownerReferences.blockOwnerDeletion", "metadata.ownerReferences.controller"];

/// The first field in which `live` is not what is wanted: something of ours is missing or other, a list of ours holds
/// something else, or a foreign field is set. None where it is as it ought to be.
pub(super) fn difference(wanted: &Wanted, live: &Value) -> Option<String> {
    let foreign = FOREIGN.iter().find(|(kind, _)| *kind == wanted.kind).map_or(&[][..], |(_, fields)| *fields);
    let keys = wanted.object.as_object().into_iter().flatten();
    // Which version an object is shown in says nothing about it, and a list shows none.
    keys.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind"))
        .find_map(|(key, part)| in_part(part, &live[key.as_str()], key, foreign))
}

fn in_part(wanted: &Value, live: &Value, at: &str, foreign: &[&str]) -> Option<String> {
    let is_or_differs = |is: bool| (!is).then(|| at.to_owned());
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            let ours = wanted.iter().find_map(|(key, part)| {
                let at = format!("{at}.{key}");
                match live.get(key) {
                    Some(live) => in_part(part, live, &at, foreign),
                    None => Some(at),
                }
            });
            ours.or_else(|| {
                let mut others = live.iter().filter(|(key, _)| !wanted.contains_key(*key));
                others.find(|(key, part)| is_foreign(at, key, part, foreign)).map(|(key, _)| format!("{at}.{key}"))
            })
        }
        (Value::Array(wanted), Value::Array(live)) => {
            let (wanted, live) = (in_order(wanted, at), in_order(live, at));
            is_or_differs(wanted.len() == live.len())
                .or_else(|| wanted.iter().zip(live.iter()).find_map(|(one, other)| in_part(one, other, at, foreign)))
        }
        // As an API server may show an empty list.
        (Value::Array(wanted), Value::Null) => is_or_differs(wanted.is_empty()),
        _ => is_or_differs(wanted == live),
    }
}

/// Whether a member that we do not say may not be there.
fn is_foreign(at: &str, key: &str, part: &Value, foreign: &[&str]) -> bool {
    if at == ANNOTATIONS {
        return foreign.contains(&ANNOTATIONS) && !NOTES.contains(&key);
    }
    let field = format!("{at}.{key}");
    !is_empty(part) && (foreign.contains(&&*field) || FOREIGN_ANYWHERE.contains(&&*field))
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
