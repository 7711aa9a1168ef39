//! The one write by which a report reaches a pod.

use cofferdam_model::keys;
use serde_json::{Value, json};

use super::Report;
use crate::session::{Condition, Told};

/// The strategic merge patch of `pods/status` that makes `told` into `report`, `now` being RFC 3339; nothing where that
/// would change nothing. A condition keeps its transition time unless its status changes: what a patch does not name stays.
#[must_use]
pub fn patch(told: &Told, report: &Report, now: &str) -> Option<Value> {
    let conditions: Vec<Value> =
        report.conditions.iter().filter_map(|condition| changed(told, condition, now)).collect();
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

/// What of a condition has to be written; entries are merged by their type.
fn changed(told: &Told, condition: &Condition, now: &str) -> Option<Value> {
    let before = told.conditions.iter().find(|before| before.type_ == condition.type_);
    if before == Some(condition) {
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
