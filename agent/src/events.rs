//! Events on pods: each step that a person would ask about, once.
//!
//! Not kube's recorder: it looks through all that it sent in six minutes for each one that it sends.

use std::sync::{Arc, OnceLock};

use cofferdam_kubernetes::{Cluster, Resource, json};
use futures_util::{StreamExt as _, stream};
use k8s_openapi::jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use tokio::sync::broadcast::{self, error::RecvError};

use cofferdam_model::keys;
use cofferdam_model::text::shown;

use crate::metrics::Metrics;
use crate::session::Session;

/// Events that may wait to be sent. They are told, not owed: a flood of them must not fill the memory. A power of two, as
/// any other number would become in the channel.
const WAITING: usize = 2048;

/// Requests that are on their way at once. More than one, since each may take seconds when the API server is slow; few,
/// since it has more to do then than to take events.
const SENT_AT_ONCE: usize = 4;

/// Bytes of the longest name of an object.
const LONGEST_NAME: usize = 253;

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
    /// Where too many wait, this drops the oldest: what happened last says most.
    waiting: broadcast::Sender<Arc<Waiting>>,
    metrics: Arc<Metrics>,
    namespace: Arc<str>,
    pod: Arc<str>,
}

/// An event that is to be sent. What became of it is counted when it is dropped, wherever that happens.
struct Waiting {
    event: Value,
    /// Set once there was an answer.
    outcome: OnceLock<&'static str>,
    metrics: Arc<Metrics>,
}

impl Events {
    /// For the agent that is this pod; with it what sends events, in the order in which they are handed in. What is not sent
    /// when that is dropped never is.
    pub(crate) fn new(
        cluster: Cluster,
        metrics: Metrics,
        namespace: &str,
        pod: &str,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (waiting, handed_in) = broadcast::channel(WAITING);
        let sending = async move {
            let events = Resource::of("events", "events.k8s.io/v1");
            stream::unfold(handed_in, next)
                .for_each_concurrent(SENT_AT_ONCE, |waiting| send(&cluster, &events, waiting))
                .await;
        };
        (Self { waiting, metrics: Arc::new(metrics), namespace: namespace.into(), pod: pod.into() }, sending)
    }

    /// Tells something about a session's pod.
    pub(crate) fn tell(&self, session: &Session, tone: Tone, reason: &str, note: &str) {
        self.hand_in(&session.namespace, &session.name, &session.uid, tone, reason, note);
    }

    /// Tells something about the agent's own pod.
    pub(crate) fn tell_own(&self, tone: Tone, reason: &str, note: &str) {
        self.hand_in(&self.namespace, &self.pod, "", tone, reason, note);
    }

    fn hand_in(&self, namespace: &str, pod: &str, uid: &str, tone: Tone, reason: &str, note: &str) {
        let now = Timestamp::now();
        let time = now.round(Unit::Microsecond).unwrap_or(now);
        let event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": namespace, "name": name(pod, now)},
            "eventTime": format!("{time:.6}"),
            "reportingController": keys::AGENT,
            "reportingInstance": &*self.pod,
            "action": reason,
            "reason": reason,
            "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": pod, "uid": uid},
            "note": shown(note, LONGEST_NOTE),
            "type": match tone { Tone::Normal => "Normal", Tone::Warning => "Warning" },
        });
        // One that nobody takes any more is dropped here, and counted.
        let _ = self.waiting.send(Arc::new(Waiting {
            event,
            outcome: OnceLock::new(),
            metrics: Arc::clone(&self.metrics),
        }));
    }
}

type HandedIn = broadcast::Receiver<Arc<Waiting>>;

async fn next(mut handed_in: HandedIn) -> Option<(Arc<Waiting>, HandedIn)> {
    loop {
        match handed_in.recv().await {
            Ok(waiting) => return Some((waiting, handed_in)),
            // They were counted when they were dropped.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

async fn send(cluster: &Cluster, events: &Resource, waiting: Arc<Waiting>) {
    let outcome = match cluster.create(events, json::namespace(&waiting.event), &waiting.event).await {
        Ok(_) => "sent",
        Err(error) => {
            tracing::debug!(%error, "an event was not taken");
            "failed"
        }
    };
    waiting.outcome.get_or_init(|| outcome);
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.metrics.event(self.outcome.get().unwrap_or(&"dropped"));
    }
}

/// The name of an Event about that pod, of the length that Kubernetes takes, however long the pod's is.
fn name(pod: &str, now: Timestamp) -> String {
    let suffix = format!(".{:x}", now.as_nanosecond());
    let begin = pod.get(..LONGEST_NAME - suffix.len()).unwrap_or(pod).trim_end_matches(['-', '.']);
    format!("{begin}{suffix}")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Request;
    use http_body_util::BodyExt as _;
    use kube::Client;
    use kube::client::Body;
    use prometheus::{Registry, TextEncoder};
    use tokio::sync::{mpsc, oneshot};
    use tokio::task::JoinHandle;

    use super::*;
    use crate::desired::testing::session;
    use crate::testing::answer;

    #[test]
    fn an_event_has_a_name_that_kubernetes_takes_however_long_the_pods_is() {
        for pod in ["a".to_owned(), "a".repeat(253), format!("{}.{}", "a".repeat(235), "b".repeat(17))] {
            let name = name(&pod, Timestamp::now());
            assert!(cofferdam_model::is_object_name(&name), "{name}");
        }
    }

    /// Events, and an API server that answers to each when it is told to.
    struct Told {
        registry: Registry,
        events: Events,
        sending: JoinHandle<()>,
        asked: mpsc::UnboundedReceiver<(Value, oneshot::Sender<()>)>,
    }

    impl Told {
        /// What is told before anything is sent.
        fn first(tell: impl FnOnce(&Events)) -> Self {
            let (ask, asked) = mpsc::unbounded_channel();
            let service = tower::service_fn(move |request: Request<Body>| {
                let ask = ask.clone();
                async move {
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let event: Value = serde_json::from_slice(&body).unwrap();
                    let (release, released) = oneshot::channel();
                    ask.send((event.clone(), release)).unwrap();
                    released.await.unwrap();
                    Ok::<_, Infallible>(answer(&event))
                }
            });
            let registry = Registry::new();
            let cluster = Cluster::new(Client::new(service, "default"), keys::AGENT, &registry).unwrap();
            let metrics = Metrics::register(&registry, "digest", false).unwrap();
            let (events, sending) = Events::new(cluster, metrics, "cofferdam-system", "agent");
            tell(&events);
            Self { registry, events, sending: tokio::spawn(sending), asked }
        }

        /// What has become of some.
        fn counts(&self, outcome: &str, count: u64) {
            let text = TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap();
            let line = format!("events_total{{outcome=\"{outcome}\"}} {count}\n");
            assert!(text.contains(&line), "not {line}{text}");
        }

        /// The reason of the next request, and what lets it be answered.
        async fn asked(&mut self) -> (usize, oneshot::Sender<()>) {
            let (event, release) = self.asked.recv().await.unwrap();
            (event["reason"].as_str().unwrap().parse().unwrap(), release)
        }
    }

    fn tell(events: &Events, count: usize) {
        let session = session("3000");
        (0..count).for_each(|number| events.tell(&session, Tone::Normal, &number.to_string(), "note"));
    }

    #[tokio::test]
    async fn a_note_is_one_that_kubernetes_takes_whoever_wrote_its_words() {
        let note = format!("two\nlines {}", "é".repeat(1024));
        let mut told = Told::first(|events| events.tell(&session("3000"), Tone::Normal, "Reason", &note));
        let (event, _release) = told.asked.recv().await.unwrap();
        let note = event["note"].as_str().unwrap();
        assert!(note.starts_with("two lines é") && note.len() <= 1024, "{} bytes: {note}", note.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_are_sent_at_once_in_their_order() {
        let mut told = Told::first(|events| tell(events, SENT_AT_ONCE + 2));
        let mut releases = Vec::new();
        for number in 0..SENT_AT_ONCE {
            let (asked, release) = told.asked().await;
            assert_eq!(asked, number);
            releases.push(release);
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(told.asked.is_empty(), "more are on their way");
        // Another than the oldest: that is the one that takes long.
        releases.pop().unwrap().send(()).unwrap();
        assert_eq!(told.asked().await.0, SENT_AT_ONCE);
        told.counts("sent", 1);
        // Time passes at once, and with it the patience for an answer.
        told.counts("failed", 0);
    }

    #[tokio::test(start_paused = true)]
    async fn where_too_many_wait_the_oldest_is_dropped() {
        let mut told = Told::first(|events| tell(events, WAITING + 3));
        told.counts("dropped", 3);
        let (asked, _release) = told.asked().await;
        assert_eq!(asked, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_sent_at_the_end_is_counted() {
        let mut told = Told::first(|events| tell(events, SENT_AT_ONCE + 3));
        told.asked().await.1.send(()).unwrap();
        let mut on_their_way = Vec::new();
        for _ in 0..SENT_AT_ONCE {
            on_their_way.push(told.asked().await);
        }
        told.sending.abort();
        assert!((&mut told.sending).await.unwrap_err().is_cancelled());
        told.counts("sent", 1);
        told.counts("dropped", u64::try_from(SENT_AT_ONCE).unwrap() + 2);
        told.events.tell_own(Tone::Warning, "Late", "note");
        told.counts("dropped", u64::try_from(SENT_AT_ONCE).unwrap() + 3);
    }
}
