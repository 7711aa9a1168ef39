//! How the parts of an object are read. What is missing, or of another kind, is empty: an object that somebody wrote oddly
//! keeps nobody from the next one.

use std::str::FromStr;

use serde_json::Value;

/// A text; empty where there is none.
#[must_use]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What a text says, such as a time or an address; none where it says none.
#[must_use]
pub fn parsed<T: FromStr>(value: &Value) -> Option<T> {
    value.as_str()?.parse().ok()
}

/// The members of a list, in its order.
pub fn each(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// An object's name.
#[must_use]
pub fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// An object's namespace; empty also where it belongs to none.
#[must_use]
pub fn namespace(object: &Value) -> &str {
    text(&object["metadata"]["namespace"])
}

/// An object's uid.
#[must_use]
pub fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

/// The version of an object as a number, which versions are (KEP-5504); 0 for none, which is older than all.
#[must_use]
pub fn version(object: &Value) -> u64 {
    parsed(&object["metadata"]["resourceVersion"]).unwrap_or_default()
}

/// An object's label.
#[must_use]
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

/// An object's annotation.
#[must_use]
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// Whether an object is being deleted; it may stay for long, where somebody has a finalizer on it.
#[must_use]
pub fn is_leaving(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// The owner references of an object.
pub fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    each(&object["metadata"]["ownerReferences"])
}

/// Those that name a pod.
pub fn owning_pods(object: &Value) -> impl Iterator<Item = &Value> {
    owners(object).filter(|owner| owner["kind"] == "Pod")
}

/// The condition of that type among those of a status, or of a part of one that has conditions.
#[must_use]
pub fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    each(&status["conditions"]).find(|condition| condition["type"] == type_)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_or_of_another_kind_is_empty() {
        let odd = json!({"metadata": {"name": 1, "namespace": [], "uid": {}, "resourceVersion": 7, "labels": "x",
            "annotations": {"a": 1}, "ownerReferences": {"kind": "Pod"}, "deletionTimestamp": null}, "conditions": "x"});
        for object in [Value::Null, json!("x"), json!([]), json!({"metadata": "x"}), odd] {
            assert_eq!(
                (name(&object), namespace(&object), uid(&object), version(&object)),
                ("", "", "", 0),
                "{object}"
            );
            assert_eq!((label(&object, "a"), annotation(&object, "a")), (None, None), "{object}");
            assert_eq!((owners(&object).count(), condition(&object, "Ready")), (0, None), "{object}");
            assert!(!is_leaving(&object), "{object}");
        }
        assert_eq!((parsed::<u8>(&json!("x")), parsed::<u8>(&json!(7))), (None, None));
    }

    #[test]
    fn what_is_there_is_read() {
        let object = json!({"metadata": {"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "7",
            "labels": {"a": "l"}, "annotations": {"a": "n"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"kind": "ConfigMap", "uid": "1"}, {"kind": "Pod", "uid": "2"}]},
            "status": {"conditions": [{"type": "Other", "status": "1"}, {"type": "Ready", "status": "2"}]}});
        assert_eq!((name(&object), namespace(&object), uid(&object), version(&object)), ("n", "ns", "u", 7));
        assert_eq!((label(&object, "a"), annotation(&object, "a")), (Some("l"), Some("n")));
        assert!(is_leaving(&object));
        let pods: Vec<&str> = owning_pods(&object).map(|pod| text(&pod["uid"])).collect();
        assert_eq!((pods, owners(&object).count()), (vec!["2"], 2));
        assert_eq!(condition(&object["status"], "Ready").map(|condition| text(&condition["status"])), Some("2"));
    }
}
