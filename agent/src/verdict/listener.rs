//! What a Gateway and its listeners add to a route's verdict (case B138: a route may be accepted by a Gateway that serves
//! nothing).

use cofferdam_kubernetes::json::{each, is_leaving, text};
use cofferdam_model::text::shown;
use serde_json::Value;

use super::Finding;
use super::condition::{Reading, read};
use crate::reason::Reason;

/// Bytes of the names of listeners in a sentence.
const MOST_NAMES: usize = 200;

/// Whether the Gateway is programmed, and a listener that the route may be attached to.
pub(super) fn judge(gateway: &Value, named: Option<&str>, route: &Value, name: &str) -> Finding {
    let not_programmed = |told: String| Finding::Refused(Reason::GatewayNotProgrammed, told);
    if is_leaving(gateway) {
        return not_programmed(format!("{name} is being deleted."));
    }
    for type_ in ["Accepted", "Programmed"] {
        if let Reading::False(said) = read(&gateway["status"], type_, generation(gateway)) {
            return not_programmed(format!("{name}: {said}"));
        }
    }
    let waiting = match read(&gateway["status"], "Programmed", generation(gateway)) {
        Reading::True | Reading::False(_) => None,
        Reading::Absent => Some("does not say yet that it is programmed".to_owned()),
        Reading::Undecided(said) => Some(format!("is not programmed yet. {said}")),
        Reading::Stale => Some("has been changed, and is not programmed again yet".to_owned()),
        Reading::Unverifiable => {
            let told = format!("{name} does not say which generation its status is about.");
            return Finding::Waiting { told, overdue: None };
        }
    };
    if let Some(told) = waiting {
        let told = format!("{name} {told}");
        return Finding::Waiting { overdue: Some((Reason::GatewayNotProgrammed, told.clone())), told };
    }
    let listeners = listeners(gateway, named, route);
    let faults: Vec<(&str, String)> = listeners
        .iter()
        .filter_map(|listener| listener["name"].as_str())
        .filter_map(|listener| Some((listener, fault(gateway, listener)?)))
        .collect();
    match faults.first() {
        // One that works is enough: which one people come by is for the probe to find out.
        Some((listener, said)) if faults.len() == listeners.len() => {
            not_programmed(format!("Listener {listener} of {name}: {said}"))
        }
        _ => Finding::Taken,
    }
}

/// What to look at on this Gateway where no controller answers; empty, or beginning with a space. Nothing that changes with
/// every session: each change of a condition is a write.
pub(super) fn hint(gateway: &Value, named: Option<&str>, route: &Value) -> String {
    let mut sentences = Vec::new();
    if let Some(class) = gateway["spec"]["gatewayClassName"].as_str() {
        sentences.push(format!("Its class is {class}."));
    }
    let all: Vec<&Value> = each(&gateway["spec"]["listeners"]).collect();
    let listeners = listeners(gateway, named, route);
    sentences.push(match (&listeners[..], named) {
        ([], Some(named)) => format!("It has no listener {named} for this host."),
        ([], None) => format!("None of its listeners is for this host: {}.", names(&all)),
        ([one], _) => format!("Its listener for this host is {}.", text(&one["name"])),
        (several, _) => format!("Its listeners for this host are {}.", names(several)),
    });
    let is_elsewhere = gateway["metadata"]["namespace"] != route["metadata"]["namespace"];
    let from = |listener: &Value| listener["allowedRoutes"]["namespaces"]["from"].as_str().unwrap_or("Same").to_owned();
    if is_elsewhere && !listeners.is_empty() && listeners.iter().all(|listener| from(listener) == "Same") {
        sentences.push("It takes routes of its own namespace only: set `allowedRoutes.namespaces.from`.".to_owned());
    }
    let mut attached = each(&gateway["status"]["listeners"]);
    if !attached.any(|listener| listener["attachedRoutes"].as_u64().is_some_and(|count| count > 0)) {
        sentences.push("No route at all is attached to it.".to_owned());
    }
    sentences.iter().flat_map(|sentence| [" ", sentence]).collect()
}

/// Their names, for a sentence; a Gateway may have many.
fn names(listeners: &[&Value]) -> String {
    let names: Vec<&str> = listeners.iter().map(|listener| text(&listener["name"])).collect();
    shown(&names.join(", "), MOST_NAMES)
}

fn generation(gateway: &Value) -> &Value {
    &gateway["metadata"]["generation"]
}

/// The listeners that the route may be attached to: by name if one is named, and by protocol and host.
fn listeners<'a>(gateway: &'a Value, named: Option<&str>, route: &Value) -> Vec<&'a Value> {
    let hosts: Vec<&str> = each(&route["spec"]["hostnames"]).filter_map(Value::as_str).collect();
    let takes = |listener: &Value| {
        named.is_none_or(|name| listener["name"] == name)
            && matches!(listener["protocol"].as_str(), Some("HTTP" | "HTTPS"))
            && match listener["hostname"].as_str() {
                None | Some("") => true,
                Some(pattern) => hosts.iter().any(|host| is_within(host, pattern)),
            }
    };
    each(&gateway["spec"]["listeners"]).filter(|listener| takes(listener)).collect()
}

/// Whether a listener's hostname covers the host; `*.` stands for one label or more (case B127).
fn is_within(host: &str, pattern: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(domain) => host.len() > domain.len() && host.ends_with(domain),
        None => host == pattern,
    }
}

/// What is wrong with a listener, in its own words.
fn fault(gateway: &Value, listener: &str) -> Option<String> {
    let status = each(&gateway["status"]["listeners"]).find(|status| status["name"] == listener)?;
    let said = ["Accepted", "ResolvedRefs", "Programmed"].iter().find_map(|type_| {
        match read(status, type_, generation(gateway)) {
            Reading::False(said) => Some(said),
            _ => None,
        }
    });
    let is_conflicted = read(status, "Conflicted", generation(gateway)) == Reading::True;
    said.or_else(|| is_conflicted.then(|| "Conflicted: another listener has its port and host".to_owned()))
}
