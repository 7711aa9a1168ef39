//! An object as it is kept: as text, since it is read rarely and there are many.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Moment;
use crate::objects::{Kind, Live};
use crate::session::version;

/// An object, as text.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) uid: String,
    pub(super) version: u64,
    pub(super) round: Moment,
    text: Arc<str>,
}

impl Kept {
    pub(super) fn new(object: &Value, round: Moment) -> Self {
        let metadata = &object["metadata"];
        let mut kept = json!({"metadata": {}});
        for key in [
            "name",
            "namespace",
            "uid",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "labels",
            "annotations",
            "ownerReferences",
            "finalizers",
        ] {
            if let Some(value) = metadata.get(key) {
                kept["metadata"][key] = value.clone();
            }
        }
        for (key, value) in object.as_object().into_iter().flatten() {
            if !["metadata", "apiVersion", "kind"].contains(&key.as_str()) {
                kept[key] = value.clone();
            }
        }
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        Self { uid, version: version(object), round, text: kept.to_string().into() }
    }

    pub(super) fn live(self, kind: Kind, name: String) -> Live {
        // It was written by the same library a moment ago.
        let object = serde_json::from_str(&self.text).unwrap_or_default();
        Live { kind, name, uid: self.uid, object }
    }
}
