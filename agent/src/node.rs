//! How a node is, by its condition Ready.

use cofferdam_kubernetes::json::{condition, parsed};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

/// A node that said within so many seconds of its creation that it is not Ready, and has said nothing else since, is
/// starting: it never was Ready.
const STARTING_SECONDS: i64 = 10;

/// How a node is. Its own agent and the elected one go by the same, so that at most one of them speaks for its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It says so.
    Ready,
    /// It has joined, and never was Ready.
    Starting,
    /// It says that it is not, or says nothing any more.
    NotReady,
}

impl State {
    /// Reads a Node. One without the condition has a kubelet that never reported.
    #[must_use]
    pub(crate) fn of(node: &Value) -> Self {
        let Some(ready) = condition(&node["status"], "Ready") else { return Self::Starting };
        let seconds = |value: &Value| parsed(value).map(Timestamp::as_second);
        let since_creation =
            || Some(seconds(&ready["lastTransitionTime"])? - seconds(&node["metadata"]["creationTimestamp"])?);
        match ready["status"].as_str() {
            Some("True") => Self::Ready,
            // Unknown is what the cluster says of a kubelet that is silent.
            Some("False") if since_creation().is_some_and(|seconds| seconds <= STARTING_SECONDS) => Self::Starting,
            _ => Self::NotReady,
        }
    }

    /// Whether its sessions go out of service, where that lasts.
    #[must_use]
    pub(crate) fn is_lost(self) -> bool {
        self == Self::NotReady
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b143_a_node_that_was_ready_once_is_no_starting_one() {
        let (early, late) = ("2026-01-01T00:00:10Z", "2026-01-01T00:00:11Z");
        for (status, changed, state, is_lost) in [
            ("True", late, State::Ready, false),
            ("True", early, State::Ready, false),
            ("False", early, State::Starting, false),
            ("False", late, State::NotReady, true),
            ("False", "", State::NotReady, true),
            ("Unknown", early, State::NotReady, true),
            ("Unknown", late, State::NotReady, true),
        ] {
            let node = json!({
                "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
                "status": {"conditions": [
                    {"type": "MemoryPressure", "status": "False"},
                    {"type": "Ready", "status": status, "lastTransitionTime": changed},
                ]},
            });
            let read = State::of(&node);
            assert_eq!((read, read.is_lost()), (state, is_lost), "{status} {changed}");
        }
        assert_eq!(State::of(&Value::Null), State::Starting);
    }
}
