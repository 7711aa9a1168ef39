//! How a report reaches a pod: as a patch of what has changed, in the words of a pod's status.

use cofferdam_model::keys;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::Report;
use crate::session::{Condition, Told};

impl super::Condition {
    fn words(&self) -> Condition {
        Condition {
            type_: self.type_.as_str().to_owned(),
            status: self.reason.status().as_str().to_owned(),
            reason: self.reason.as_str().to_owned(),
            message: self.message.clone(),
        }
    }
}

impl Report {
    /// What a pod says that was told this.
    #[must_use]
    pub(crate) fn told(&self) -> Told {
        let conditions = self.conditions.iter().map(super::Condition::words).collect();
        Told { conditions, endpoints: Some(self.endpoints.to_string()) }
    }
}

/// The strategic merge patch of `pods/status` that makes `told` into `report`, `now` as of [`time`]; nothing where that
/// would change nothing. A condition keeps its transition time unless its status changes: what a patch does not name stays.
#[must_use]
pub(crate) fn patch(told: &Told, report: &Report, now: &str) -> Option<Value> {
    let conditions: Vec<Value> =
        report.conditions.iter().filter_map(|condition| changed(&told.conditions, condition, now)).collect();
    let mut patch = json!({});
    if !conditions.is_empty() {
        patch["status"] = json!({ "conditions": conditions });
    }
    let endpoints = report.endpoints.to_string();
    if told.endpoints.as_ref() != Some(&endpoints) {
        patch["metadata"] = json!({ "annotations": { keys::ENDPOINTS: endpoints } });
    }
    patch.as_object().is_some_and(|patch| !patch.is_empty()).then_some(patch)
}

/// The entry of a strategic merge patch, which merges them by type, that makes what is `told` of a condition into this;
/// nothing where it is so already. `now` as of [`time`].
#[must_use]
pub(crate) fn changed(told: &[Condition], condition: &super::Condition, now: &str) -> Option<Value> {
    let condition = condition.words();
    let before = told.iter().find(|before| before.type_ == condition.type_);
    if before == Some(&condition) {
        return None;
    }
    let mut changed = json!({
        "type": condition.type_,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    });
    if before.is_none_or(|before| before.status != condition.status) {
        changed["lastTransitionTime"] = json!(now);
    }
    Some(changed)
}

/// A moment as a condition has it: RFC 3339 in UTC, to the second.
#[must_use]
pub(crate) fn time(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
