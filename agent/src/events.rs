//! Events on pods: each step that a person would ask about, once.
//!
//! Not kube's recorder: it looks through all that it sent in six minutes for each one that it sends.

use std::sync::Arc;

use k8s_openapi::jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use cofferdam_model::keys;
use cofferdam_model::text::shown;

use crate::cluster::{Cluster, Resource};
use crate::metrics::Metrics;
use crate::session::Session;

/// Events that may wait to be sent. They are told, not owed: a flood of them must not fill the memory.
const WAITING: usize = 2000;

/// Bytes of the longest note that Kubernetes takes.
const LONGEST_NOTE: usize = 1024;

/// Whether something went as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// It did.
    Normal,
    /// Somebody should look.
    Warning,
}

/// Where events are handed in. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    waiting: mpsc::Sender<Value>,
    metrics: Metrics,
    instance: Arc<str>,
}

impl Events {
    /// Sends what is handed in, one after the other, until the last clone is dropped. `pod` is the agent's own.
    #[must_use]
    pub(crate) fn begin(cluster: Cluster, metrics: Metrics, pod: &str) -> Self {
        let (waiting, mut sending) = mpsc::channel::<Value>(WAITING);
        let its_metrics = metrics.clone();
        tokio::spawn(async move {
            let events = Resource::of("events", "events.k8s.io/v1");
            while let Some(event) = sending.recv().await {
                let namespace = event["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
                match cluster.create(&events, &namespace, &event).await {
                    Ok(_) => its_metrics.event("sent"),
                    Err(error) => {
                        its_metrics.event("failed");
                        tracing::debug!(%error, "an event was not taken");
                    }
                }
            }
        });
        Self { waiting, metrics, instance: pod.into() }
    }

    /// Tells something about a session's pod.
    pub(crate) fn tell(&self, session: &Session, tone: Tone, reason: &str, note: &str) {
        let regarding = json!({"apiVersion": "v1", "kind": "Pod", "namespace": session.namespace,
            "name": session.name, "uid": session.uid});
        self.hand_in(&session.namespace, &session.name, &regarding, tone, reason, note);
    }

    /// Tells something about an object of Cofferdam's own, in its namespace.
    pub(crate) fn tell_of(&self, kind: &str, namespace: &str, name: &str, tone: Tone, reason: &str, note: &str) {
        let regarding = json!({"apiVersion": "v1", "kind": kind, "namespace": namespace, "name": name});
        self.hand_in(namespace, name, &regarding, tone, reason, note);
    }

    fn hand_in(&self, namespace: &str, name: &str, regarding: &Value, tone: Tone, reason: &str, note: &str) {
        let now = Timestamp::now();
        let time = now.round(Unit::Microsecond).unwrap_or(now);
        let event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "name": format!("{name}.{:x}", now.as_nanosecond())},
            "eventTime": format!("{time:.6}"),
            "reportingController": keys::AGENT,
            "reportingInstance": &*self.instance,
            "action": reason,
            "reason": reason,
            "regarding": regarding,
            "note": shown(note, LONGEST_NOTE),
            "type": match tone { Tone::Normal => "Normal", Tone::Warning => "Warning" },
        });
        if self.waiting.try_send(event).is_err() {
            self.metrics.event("dropped");
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus::Registry;

    use super::*;
    use crate::desired::testing::session;

    #[test]
    fn a_note_is_one_that_kubernetes_takes_whoever_wrote_its_words() {
        let (waiting, mut handed_in) = mpsc::channel(1);
        let metrics = Metrics::register(&Registry::new(), "digest", false).unwrap();
        let events = Events { waiting, metrics, instance: "agent".into() };
        let note = format!("two\nlines {}", "é".repeat(1024));
        events.tell(&session("3000"), Tone::Normal, "Reason", &note);
        let event = handed_in.try_recv().unwrap();
        let note = event["note"].as_str().unwrap();
        assert!(note.starts_with("two lines é") && note.len() <= 1024, "{} bytes: {note}", note.len());
    }
}
