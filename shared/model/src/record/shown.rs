//! What stands in a pod at a place that a record names, in a few words.

use serde_json::Value;

/// The value at `path`, such as `spec.volumes[0]`; `None` where nothing is there, or something else may be by now.
pub(super) fn at(pod: &Value, path: &str) -> Option<String> {
    // The container that fetches the body goes before those of the author, after their places were written down.
    if path.starts_with("spec.initContainers") {
        return None;
    }
    pod.pointer(&pointer(path)).filter(|value| !value.is_null()).map(summary)
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
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_becomes_a_pointer_whatever_its_keys_hold() {
        assert_eq!(pointer("spec.containers[10].env[0]"), "/spec/containers/10/env/0");
        assert_eq!(pointer("metadata.labels[cofferdam.dev/session]"), "/metadata/labels/cofferdam.dev~1session");
    }

    #[test]
    fn nothing_is_shown_of_a_place_that_is_not_there_or_may_be_another_by_now() {
        let pod = json!({ "spec": { "initContainers": [{ "name": "x" }], "volumes": [] } });
        assert_eq!(at(&pod, "spec.initContainers[0]"), None);
        assert_eq!(at(&pod, "spec.volumes[0]"), None);
    }
}
