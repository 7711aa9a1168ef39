//! What the webhook wrote down about a pod, told to a person.

use anyhow::{Context, Result};
use serde_json::Value;

/// One change.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// The rule that made it.
    pub rule: String,
    /// The field.
    pub path: String,
    /// What is there now; nothing where something was taken away.
    pub now: Option<String>,
}

/// Reads the annotation `cofferdam.dev/changes`. Where it gives no value, which is so for all that may hold what an
/// author wrote, the value comes from the pod itself.
///
/// # Errors
/// When the pod does not carry the annotation, or it is not such a list.
pub fn of(pod: &Value) -> Result<Vec<Told>> {
    let text = pod["metadata"]["annotations"]["cofferdam.dev/changes"].as_str();
    let changes: Vec<Value> = serde_json::from_str(text.context("the pod carries no list of changes")?)?;
    let word = |change: &Value, key: &str| change[key].as_str().unwrap_or_default().to_owned();
    let told = changes.iter().map(|change| {
        let (rule, path) = (word(change, "rule"), word(change, "path"));
        let now = match &change["new"] {
            // The rule that takes tokens out puts nothing in but the switch, which has a value.
            Value::Null if rule == "service-account-token" => None,
            Value::Null => pod.pointer(&pointer(&path)).map(summary),
            value => Some(summary(value)),
        };
        Told { rule, path, now }
    });
    Ok(told.collect())
}

/// The JSON pointer to `spec.volumes[0].name` or `metadata.labels[example.com/key]`.
fn pointer(path: &str) -> String {
    let mut pointer = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (token, after) = match rest.strip_prefix('[') {
            Some(bracket) => bracket.split_once(']').unwrap_or((bracket, "")),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        pointer = format!("{pointer}/{}", token.replace('~', "~0").replace('/', "~1"));
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    pointer
}

/// A value in a few words.
fn summary(value: &Value) -> String {
    let text = |key: &str| value[key].as_str();
    match (text("name"), text("mountPath"), text("value"), value["emptyDir"]["sizeLimit"].as_str()) {
        (Some(name), Some(path), _, _) => format!("{name} at {path}"),
        (Some(name), _, Some(value), _) => format!("{name}={value}"),
        (Some(name), _, _, Some(size)) => format!("{name}, {size}"),
        _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_becomes_a_pointer_whatever_its_keys_hold() {
        assert_eq!(pointer("spec.containers[10].env[0]"), "/spec/containers/10/env/0");
        assert_eq!(pointer("metadata.labels[cofferdam.dev/session]"), "/metadata/labels/cofferdam.dev~1session");
    }

    #[test]
    fn a_value_comes_from_the_record_or_else_from_the_pod() {
        let changes = json!([
            {"rule": "run-as", "path": "spec.securityContext.runAsUser", "action": "inject", "new": 1000},
            {"rule": "service-account-token", "path": "spec.volumes[0]", "action": "inject"},
            {"rule": "scratch", "path": "spec.volumes[0]", "action": "inject"},
        ]);
        let pod = json!({
            "metadata": {"annotations": {"cofferdam.dev/changes": changes.to_string()}},
            "spec": {"volumes": [{"name": "cofferdam-tmp", "emptyDir": {"sizeLimit": "256Mi"}}]},
        });
        let told: Vec<_> = of(&pod).unwrap().into_iter().map(|told| told.now).collect();
        assert_eq!(told, [Some("1000".to_owned()), None, Some("cofferdam-tmp, 256Mi".to_owned())]);
    }
}
