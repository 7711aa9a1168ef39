//! What leads a host to the Service: an `HTTPRoute` for each port, or one Ingress.

use cofferdam_kubernetes::json::each;
use cofferdam_model::policy::ParentGateway;
use serde_json::{Value, json};

use super::metadata::Whose;
use super::{Proof, Wanted};
use crate::objects::{GATEWAY_GROUP, Kind, name, route_name};

/// The request header by which a probe reaches the rule that proves who answers.
pub(crate) const PROBE_HEADER: &str = "x-cofferdam-probe";

/// The response header that only that rule sets. A program that sends back whatever headers it gets knows neither this name
/// nor its value.
pub(crate) const PROOF_HEADER: &str = "x-cofferdam-proof";

/// The route of one port: hostnames belong to a whole route, so ports cannot share one (contract RTE-13). What a controller
/// would fill in is written out, so that nobody else's value can stand there unnoticed.
pub(super) fn http_route(
    whose: &Whose<'_>,
    version: &str,
    parent: &ParentGateway,
    port: u16,
    host: &str,
    proof: Option<&Proof>,
) -> Wanted {
    let name = route_name(whose.id.as_str(), port);
    let mut parent_ref = json!({
        "group": GATEWAY_GROUP,
        "kind": "Gateway",
        "name": parent.name,
        "namespace": parent.namespace,
    });
    if let Some(listener) = &parent.listener {
        parent_ref["sectionName"] = json!(listener);
    }
    let mut rules = vec![rule(whose, port)];
    if let Some(proof) = proof {
        let mut proving = rule(whose, port);
        proving["matches"][0]["headers"] = json!([{ "type": "Exact", "name": PROBE_HEADER, "value": proof.probe }]);
        // The program must not learn what to ask for: whoever knows it can ask for the proof.
        proving["filters"] = json!([
            { "type": "RequestHeaderModifier", "requestHeaderModifier": { "remove": [PROBE_HEADER] } },
            {
                "type": "ResponseHeaderModifier",
                "responseHeaderModifier": { "set": [{ "name": PROOF_HEADER, "value": proof.proof }] },
            },
        ]);
        rules.insert(0, proving);
    }
    let object = json!({
        "apiVersion": format!("{GATEWAY_GROUP}/{version}"),
        "kind": "HTTPRoute",
        "metadata": whose.metadata(&name),
        "spec": { "parentRefs": [parent_ref], "hostnames": [host], "rules": rules },
    });
    Wanted { kind: Kind::HttpRoute, name, object }
}

/// The proof that a live route holds, so that it stays while the route lives; none where it has none, or what stands there
/// is none of ours.
#[must_use]
pub(crate) fn proof_of(route: &Value) -> Option<Proof> {
    let rule = each(&route["spec"]["rules"]).find(|rule| rule["filters"].is_array())?;
    let matched = each(&rule["matches"]).find_map(|matched| header(&matched["headers"], PROBE_HEADER));
    let proof =
        each(&rule["filters"]).find_map(|filter| header(&filter["responseHeaderModifier"]["set"], PROOF_HEADER));
    let is_ours = |value: &String| value.len() == 32 && value.bytes().all(|b| b.is_ascii_hexdigit());
    Some(Proof { probe: matched.filter(is_ours)?, proof: proof.filter(is_ours)? })
}

fn header(list: &Value, name: &str) -> Option<String> {
    let found = each(list).find(|header| header["name"] == name)?;
    found["value"].as_str().map(str::to_owned)
}

fn rule(whose: &Whose<'_>, port: u16) -> Value {
    json!({
        "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }],
        "backendRefs": [
            { "group": "", "kind": "Service", "name": name(whose.id.as_str()), "port": port, "weight": 1 },
        ],
    })
}

/// The Ingress of all ports; none where there is nothing to route.
pub(super) fn ingress(
    whose: &Whose<'_>,
    class: &str,
    tls_secret: Option<&str>,
    hosts: &[(u16, String)],
) -> Option<Wanted> {
    if hosts.is_empty() {
        return None;
    }
    let name = name(whose.id.as_str());
    let rules = hosts.iter().map(|(port, host)| {
        let backend = json!({ "service": { "name": name, "port": { "number": port } } });
        json!({ "host": host, "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] } })
    });
    let mut spec = json!({ "ingressClassName": class, "rules": rules.collect::<Vec<_>>() });
    if let Some(secret) = tls_secret {
        let hosts: Vec<&str> = hosts.iter().map(|(_, host)| host.as_str()).collect();
        spec["tls"] = json!([{ "hosts": hosts, "secretName": secret }]);
    }
    let object = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": whose.metadata(&name),
        "spec": spec,
    });
    Some(Wanted { kind: Kind::Ingress, name, object })
}
