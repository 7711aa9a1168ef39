//! What stands in a pod at a place that a record names, in a few words.
//!
//! Lists change after their places were written down: the container that fetches a body goes before those of the author, and
//! others insert what is theirs. So of what is in a list nothing is shown but what is ours by its name, and of an environment
//! variable the name alone.

use serde_json::Value;

use crate::keys::{RESERVED_NAME, ROUTE_REACHABLE};

/// The value at `path`, such as `spec.volumes[0]`; `None` where nothing is there, or what may be another's by now.
pub(super) fn at(pod: &Value, path: &str) -> Option<String> {
    // Which of ours it is hangs on the container.
    if path.starts_with("spec.initContainers") {
        return None;
    }
    let (mut value, mut key, mut item) = (pod, "", None);
    for token in tokens(path) {
        value = match value {
            Value::Array(items) => {
                items.get(token.parse::<usize>().ok()?).inspect(|found| item = Some((key, *found)))?
            }
            other => other.get(token)?,
        };
        key = token;
    }
    match item {
        Some(("env", variable)) => variable["name"].as_str().map(str::to_owned),
        Some((_, item)) if !is_ours(item) => None,
        _ => (!value.is_null()).then(|| summary(value)),
    }
}

/// The parts of `spec.volumes[0].name` or `metadata.labels[example.com/key]`.
fn tokens(path: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        let (token, after) = match rest.strip_prefix('[') {
            Some(bracket) => bracket.split_once(']').unwrap_or((bracket, "")),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        tokens.push(token);
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    tokens
}

/// Whether an item of a list is one that nobody else may have.
fn is_ours(item: &Value) -> bool {
    item["name"].as_str().is_some_and(|name| name.starts_with(RESERVED_NAME))
        || item["conditionType"] == ROUTE_REACHABLE
}

/// A value in a few words.
fn summary(value: &Value) -> String {
    let text = |key: &str| value[key].as_str();
    match (text("name"), text("mountPath"), value["emptyDir"]["sizeLimit"].as_str()) {
        (Some(name), Some(path), _) => format!("{name} at {path}"),
        (Some(name), _, Some(size)) => format!("{name}, {size}"),
        (Some(name), ..) => name.to_owned(),
        _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_has_its_parts_whatever_its_keys_hold() {
        assert_eq!(tokens("spec.containers[10].env[0]"), ["spec", "containers", "10", "env", "0"]);
        assert_eq!(tokens("metadata.labels[cofferdam.dev/session]"), ["metadata", "labels", "cofferdam.dev/session"]);
    }

    #[test]
    fn nothing_is_shown_of_a_place_that_is_not_there_or_may_be_another_by_now() {
        let pod = json!({ "spec": { "initContainers": [{ "name": "cofferdam-fetch" }], "volumes": [] } });
        for path in ["spec.initContainers[0]", "spec.volumes[0]", "spec.volumes[x]", "spec.none", "spec.none[0].name"] {
            assert_eq!(at(&pod, path), None, "{path}");
        }
    }

    #[test]
    fn of_what_others_have_put_into_a_list_since_nothing_is_shown() {
        let pod = json!({
            "metadata": { "labels": { "cofferdam.dev/session": "abc" } },
            "spec": {
                "runtimeClassName": "gvisor",
                "readinessGates": [{ "conditionType": "example.com/up" }, { "conditionType": ROUTE_REACHABLE }],
                "volumes": [{ "name": "theirs", "csi": { "driver": "x" } }, { "name": "cofferdam-tmp", "emptyDir": {} }],
                "containers": [
                    {
                        "name": "sidecar",
                        "command": ["/theirs"],
                        "env": [{ "name": "TOKEN", "value": "hunter2" }, { "name": "HOME", "value": "/home" }],
                        "volumeMounts": [
                            { "name": "theirs", "mountPath": "/theirs" },
                            { "name": "cofferdam-tmp", "mountPath": "/tmp" },
                        ],
                    },
                ],
            },
        });
        for (path, shown) in [
            ("metadata.labels[cofferdam.dev/session]", Some("abc")),
            ("spec.runtimeClassName", Some("gvisor")),
            ("spec.volumes[0]", None),
            ("spec.volumes[0].csi.driver", None),
            ("spec.volumes[1]", Some("cofferdam-tmp")),
            ("spec.readinessGates[0]", None),
            ("spec.readinessGates[1]", Some(r#"{"conditionType":"cofferdam.dev/RouteReachable"}"#)),
            ("spec.containers[0].command", None),
            ("spec.containers[0].env[0]", Some("TOKEN")),
            ("spec.containers[0].env[0].value", Some("TOKEN")),
            ("spec.containers[0].env[1]", Some("HOME")),
            ("spec.containers[0].volumeMounts[0]", None),
            ("spec.containers[0].volumeMounts[1]", Some("cofferdam-tmp at /tmp")),
        ] {
            assert_eq!(at(&pod, path).as_deref(), shown, "{path}");
        }
    }
}
