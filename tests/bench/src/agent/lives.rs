//! What an agent asked the API server for over the lives of sessions, by the API server's own log.

use std::collections::{BTreeMap, HashMap};

use cofferdam_cluster::audit::Event;
use k8s_openapi::jiff::Timestamp;

use super::ground::NAMESPACE;

/// What has to be there for a session to be published.
const OBJECTS: [&str; 3] = ["services", "endpointslices", "httproutes"];

/// How often each kind of request was made about the sessions' namespace; what goes on for long is not counted.
#[must_use]
pub fn calls(events: &[Event]) -> BTreeMap<String, u32> {
    let mut calls = BTreeMap::new();
    for event in events.iter().filter(|event| event.stage == "ResponseComplete") {
        let Some(about) = event.object_ref.as_ref().filter(|about| about.namespace == NAMESPACE) else { continue };
        if event.verb == "list" || event.verb == "watch" {
            continue;
        }
        let slash = if about.subresource.is_empty() { "" } else { "/" };
        let call = format!("{} {}{slash}{}", event.verb, about.resource, about.subresource);
        *calls.entry(call).or_default() += 1;
    }
    calls
}

/// When the last object of each session had been made, by the session's id; nothing for one that is not whole.
#[must_use]
pub fn published(events: &[Event]) -> HashMap<String, Timestamp> {
    let mut made: HashMap<String, BTreeMap<&str, Timestamp>> = HashMap::new();
    for event in events {
        let (Some(about), Some(at)) = (&event.object_ref, event.stage_timestamp) else { continue };
        let Some(object) = OBJECTS.into_iter().find(|object| about.resource == *object) else { continue };
        let is_made = matches!(event.verb.as_str(), "create" | "patch") && matches!(event.code(), Some(200 | 201));
        // `s-<id>` or `s-<id>-<port>`, and these ids have no hyphen.
        if let (true, Some(id)) = (is_made, about.name.split('-').nth(1)) {
            made.entry(id.to_owned()).or_default().entry(object).or_insert(at);
        }
    }
    let whole = made.into_iter().filter(|(_, made)| made.len() == OBJECTS.len());
    whole.filter_map(|(id, made)| Some((id, *made.values().max()?))).collect()
}

/// When the last was told of each session, by its id: what its pod's status says then is what has come of it.
#[must_use]
pub fn told(events: &[Event]) -> HashMap<String, Timestamp> {
    let mut told: HashMap<String, Timestamp> = HashMap::new();
    for event in events {
        let (Some(about), Some(at)) = (&event.object_ref, event.stage_timestamp) else { continue };
        let is_told = (about.resource.as_str(), about.subresource.as_str()) == ("pods", "status");
        // `run-<id>`.
        if let (true, Some(200), Some(id)) = (is_told, event.code(), about.name.strip_prefix("run-")) {
            let last = told.entry(id.to_owned()).or_insert(at);
            *last = at.max(*last);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(verb: &str, resource: &str, name: &str, second: u32) -> Event {
        serde_json::from_value(json!({
            "stage": "ResponseComplete",
            "verb": verb,
            "requestURI": "",
            "user": {"username": "u"},
            "objectRef": {"resource": resource, "namespace": NAMESPACE, "name": name},
            "responseStatus": {"code": 200},
            "stageTimestamp": format!("2026-01-01T00:00:0{second}Z"),
        }))
        .unwrap()
    }

    #[test]
    fn a_session_is_published_when_the_last_of_its_objects_is_made_for_the_first_time() {
        let mut events = vec![
            event("create", "services", "s-n1", 1),
            event("patch", "httproutes", "s-n1-3000", 3),
            event("patch", "endpointslices", "s-n1", 2),
            event("patch", "endpointslices", "s-n1", 9),
        ];
        assert_eq!(published(&events)["n1"], "2026-01-01T00:00:03Z".parse().unwrap());
        let whole = calls(&events);
        assert_eq!(whole["patch endpointslices"], 2);
        events.remove(0);
        assert!(published(&events).is_empty());
    }

    #[test]
    fn a_session_is_told_of_when_its_pods_status_is_written_for_the_last_time() {
        let mut events = [2, 4, 3].map(|second| event("patch", "pods", "run-n1", second));
        assert!(told(&events).is_empty(), "those were no statuses");
        for event in &mut events {
            event.object_ref.as_mut().unwrap().subresource = "status".to_owned();
        }
        assert_eq!(told(&events)["n1"], "2026-01-01T00:00:04Z".parse().unwrap());
        events[1].response_status.as_mut().unwrap().code = 409;
        assert_eq!(told(&events)["n1"], "2026-01-01T00:00:03Z".parse().unwrap());
    }
}
