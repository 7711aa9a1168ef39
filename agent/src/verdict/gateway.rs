//! What the status of an `HTTPRoute` says, parent by parent, and what that of its Gateway adds.

use cofferdam_kubernetes::json::{each, text};
use cofferdam_model::policy::ParentGateway;
use serde_json::Value;

use super::condition::{Reading, read};
use super::{Finding, Known, listener};
use crate::objects::GATEWAY_GROUP;
use crate::reason::Reason;

/// The group and kind that a parent has where nothing else is said.
const DEFAULT_PARENT: [(&str, &str); 2] = [("group", GATEWAY_GROUP), ("kind", "Gateway")];

/// A refusal counts most, then what is missing; a route is taken once all parents have taken it and the Gateway itself is
/// programmed.
pub(super) fn judge(parent: &ParentGateway, route: &Value, gateway: Known<'_>) -> Finding {
    let name = format!("Gateway {}/{}", parent.namespace, parent.name);
    let parents: Vec<&Value> = each(&route["spec"]["parentRefs"]).collect();
    let found: Vec<Finding> = parents.iter().map(|parent| of_parent(route, parent, &name)).collect();
    if let Some(refused) = found.iter().find(|finding| matches!(finding, Finding::Refused(..))) {
        return refused.clone();
    }
    let of_gateway = match gateway {
        Known::There(gateway) => listener::judge(gateway, parent.listener.as_deref(), route, &name),
        Known::Missing => {
            let told = format!("There is no {name}; `routing.gateway` in the policy names it.");
            Finding::Refused(Reason::GatewayMissing, told)
        }
        Known::Unreadable => Finding::Unreadable(format!("The route is accepted; {name} could not be read.")),
    };
    if matches!(of_gateway, Finding::Refused(..)) {
        return of_gateway;
    }
    match found.into_iter().find(|finding| *finding != Finding::Taken) {
        Some(Finding::Waiting { told, overdue: Some((Reason::Unclaimed, message)) }) => {
            let hint = match gateway {
                Known::There(gateway) => listener::hint(gateway, parent.listener.as_deref(), route),
                Known::Missing | Known::Unreadable => String::new(),
            };
            Finding::Waiting { told, overdue: Some((Reason::Unclaimed, message + &hint)) }
        }
        Some(other) => other,
        None if parents.is_empty() => Finding::Waiting { told: "The route has no parent.".to_owned(), overdue: None },
        None => of_gateway,
    }
}

/// What is known of one parent. Several controllers may have written about it: one that has taken the route counts more
/// than another that has not (contract RH-06).
fn of_parent(route: &Value, parent: &Value, name: &str) -> Finding {
    let namespace = &route["metadata"]["namespace"];
    let entries = each(&route["status"]["parents"]);
    let ours = entries.filter(|entry| is_same(&entry["parentRef"], parent, namespace));
    let found: Vec<Finding> = ours.map(|entry| of_entry(route, entry, name)).collect();
    let find = |is: fn(&Finding) -> bool| found.iter().find(|finding| is(finding));
    find(|finding| *finding == Finding::Taken)
        .or_else(|| find(|finding| matches!(finding, Finding::Refused(..))))
        .or_else(|| found.first())
        .cloned()
        .unwrap_or_else(|| unclaimed(format!("The controller of {name} has not answered yet."), name))
}

fn of_entry(route: &Value, entry: &Value, name: &str) -> Finding {
    let read = |type_: &str| read(entry, type_, &route["metadata"]["generation"]);
    match read("Accepted") {
        Reading::True => {}
        Reading::False(said) => return Finding::Refused(Reason::RefusedByController, said),
        Reading::Absent => return unclaimed(format!("The controller of {name} has not accepted the route yet."), name),
        Reading::Undecided(said) => {
            return unclaimed(format!("The controller of {name} has not decided yet. {said}"), name);
        }
        Reading::Stale => {
            return unclaimed(format!("The controller of {name} has answered for an older route only."), name);
        }
        Reading::Unverifiable => {
            let told = format!("The controller of {name} does not say which generation of the route it answers for.");
            return Finding::Waiting { told, overdue: None };
        }
    }
    // A controller may take one rule and drop another.
    if read("PartiallyInvalid") == Reading::True {
        let told = format!("The controller of {name} has dropped a rule of the route (PartiallyInvalid).");
        return Finding::Refused(Reason::RefusedByController, told);
    }
    match read("ResolvedRefs") {
        Reading::True => Finding::Taken,
        Reading::False(said) => Finding::Refused(Reason::BackendNotResolved, said),
        Reading::Absent | Reading::Undecided(_) | Reading::Stale | Reading::Unverifiable => {
            let told = format!("The controller of {name} does not say yet whether it finds the session's Service.");
            Finding::Waiting { told, overdue: None }
        }
    }
}

fn unclaimed(told: String, name: &str) -> Finding {
    let message = format!(
        "No controller has taken the route within `routing.deadlineSeconds`. Check that {name} is the one meant, that its \
         controller runs, and that a listener takes routes of this namespace and host."
    );
    Finding::Waiting { told, overdue: Some((Reason::Unclaimed, message)) }
}

/// Whether two references name one parent, with what each leaves out filled in.
fn is_same(one: &Value, other: &Value, namespace: &Value) -> bool {
    let is_alike =
        |key: &str, default: &str| one[key].as_str().unwrap_or(default) == other[key].as_str().unwrap_or(default);
    DEFAULT_PARENT.iter().all(|(key, default)| is_alike(key, default))
        && is_alike("namespace", text(namespace))
        && ["name", "sectionName"].iter().all(|key| is_alike(key, ""))
        && one["port"] == other["port"]
}
