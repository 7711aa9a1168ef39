//! What only we know of a session's end: that somebody stopped it, or that it could not start.
//!
//! It is written before what it speaks of is done, so that whoever comes later, or after a restart, tells the same (defect
//! D07). On the session's Secret it is what keeps; the pod is marked too, since its end may be seen before the Secret's.

use cofferdam_kubernetes::json;
use cofferdam_model::keys::{REFUSED, STOPPED};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

/// An end that the pod's status does not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Somebody asked for it.
    Stopped {
        /// When.
        at: Timestamp,
    },
    /// It could not start: its pod was refused, or given up.
    Refused {
        /// Since when that is known.
        at: Timestamp,
        /// Why, in a sentence that a client may see.
        message: String,
    },
}

impl Mark {
    /// The mark of a Secret or pod, of which the metadata is enough; none where there is none that can be read. Who was
    /// stopped before it could be refused is stopped.
    #[must_use]
    pub fn read(object: &Value) -> Option<Self> {
        if let Some(at) = json::annotation(object, STOPPED) {
            return Some(Self::Stopped { at: at.parse().ok()? });
        }
        let refused: Value = serde_json::from_str(json::annotation(object, REFUSED)?).ok()?;
        Some(Self::Refused { at: json::parsed(&refused["at"])?, message: json::text(&refused["message"]).to_owned() })
    }

    /// When it was written.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Stopped { at } | Self::Refused { at, .. } => *at,
        }
    }

    /// The merge patch that writes it on a pod.
    #[must_use]
    pub fn on_pod(&self) -> Value {
        let (key, text) = match self {
            Self::Stopped { at } => (STOPPED, at.to_string()),
            Self::Refused { at, message } => (REFUSED, json!({"at": at.to_string(), "message": message}).to_string()),
        };
        json!({"metadata": {"annotations": {key: text}}})
    }

    /// The merge patch that writes it on the session's Secret. Nothing of what that holds is needed any more, and it no
    /// longer goes when the pod does: it is kept for those who come back.
    #[must_use]
    pub fn on_secret(&self) -> Value {
        let mut patch = self.on_pod();
        patch["metadata"]["ownerReferences"] = Value::Null;
        patch["data"] = Value::Null;
        patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(patches: &[Value]) -> Value {
        let mut secret = json!({"metadata": {"annotations": {}}});
        for patch in patches {
            for (key, text) in patch["metadata"]["annotations"].as_object().unwrap() {
                secret["metadata"]["annotations"][key] = text.clone();
            }
        }
        secret
    }

    #[test]
    fn what_is_written_is_read() {
        let at: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let (stopped, refused) = (Mark::Stopped { at }, Mark::Refused { at, message: "create: \"no\"\n".to_owned() });
        for mark in [&stopped, &refused] {
            assert_eq!(Mark::read(&merged(&[mark.on_secret()])).as_ref(), Some(mark));
            assert_eq!(Mark::read(&merged(&[mark.on_pod()])).as_ref(), Some(mark));
            assert_eq!(mark.at(), at);
        }
        assert_eq!(Mark::read(&merged(&[refused.on_secret(), stopped.on_secret()])), Some(stopped));
    }

    #[test]
    fn d10_values_do_not_outlive_their_use_and_what_is_told_outlives_the_pod() {
        let patch = Mark::Stopped { at: Timestamp::UNIX_EPOCH }.on_secret();
        let patch = patch.as_object().unwrap();
        assert_eq!(patch.keys().collect::<Vec<_>>(), ["data", "metadata"]);
        assert_eq!((&patch["data"], &patch["metadata"]["ownerReferences"]), (&Value::Null, &Value::Null));
        assert!(patch["metadata"].as_object().unwrap().contains_key("ownerReferences"));
    }

    #[test]
    fn what_somebody_else_wrote_is_no_mark() {
        for annotations in
            [json!({}), json!({STOPPED: "yes"}), json!({REFUSED: "no"}), json!({REFUSED: "{}"}), json!(7)]
        {
            assert_eq!(Mark::read(&json!({"metadata": {"annotations": annotations}})), None);
        }
    }
}
