//! An object as it is kept: as text, since it is read rarely and there are many.

use std::sync::Arc;

use cofferdam_kubernetes::json::{uid, version};
use cofferdam_kubernetes::outline;
use serde_json::{Value, json};

use super::Moment;
use crate::objects::{Kind, Live};

/// The most bytes of an object that are kept; of ours one for a hundred ports has half as many.
const LARGEST: usize = 64 * 1024;

/// An object, as text.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) uid: String,
    pub(super) version: u64,
    pub(super) round: Moment,
    text: Arc<str>,
}

impl Kept {
    /// Of one that `may_be_wanted`, and is no larger than any of ours, all that is judged; of any other an outline.
    pub(super) fn new(object: &Value, round: Moment, may_be_wanted: bool) -> Self {
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
        let uid = uid(object).to_owned();
        let text = Some(kept.to_string()).filter(|text| may_be_wanted && text.len() <= LARGEST);
        let text = text.unwrap_or_else(|| outline(object).to_string()).into();
        Self { uid, version: version(object), round, text }
    }

    pub(super) fn live(self, kind: Kind, name: String) -> Live {
        // It was written by the same library a moment ago.
        let object = serde_json::from_str(&self.text).unwrap_or_default();
        Live { kind, name, uid: self.uid, object }
    }
}
