//! What the agent counts. The registry puts `cofferdam_agent_` in front of every name.
//!
//! No series is named for a session, unless that is switched on: labels have values from closed sets alone (cases B154,
//! B158). A session takes its part out of every gauge when it ends.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_kubernetes::watch::Watches;
use cofferdam_policy_file::PolicyMetrics;
use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

mod probes;
mod tally;

use crate::objects::Kind;
use crate::probe::Record;

pub(crate) use tally::{PortState, SessionState, Tally};

/// From 10 ms up to what a large image takes.
const STARTUP_SECONDS: [f64; 14] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

/// An apply takes a few milliseconds.
const PUBLISH_SECONDS: [f64; 11] = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0];

/// The stages of a session's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Stage {
    /// From the pod's creation until it has a node; in whole seconds, as its time stamps are.
    Scheduled,
    /// From the agent's first sight of it until its body is there.
    Body,
    /// From its body, or from the first sight where it was there by then, until all its containers run.
    Running,
    /// From its address until its objects are applied.
    Published,
    /// From the last apply until the routing layer has taken its routes.
    Programmed,
    /// From the last apply, too, until its address is known to work.
    Reachable,
}

impl Stage {
    /// Each of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Scheduled, Self::Body, Self::Running, Self::Published, Self::Programmed, Self::Reachable];

    /// As a label.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Body => "body",
            Self::Running => "running",
            Self::Published => "published",
            Self::Programmed => "programmed",
            Self::Reachable => "reachable",
        }
    }
}

/// All metrics of the agent; clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    /// Those of the watches.
    pub watches: Watches,
    tallies: Arc<tally::Gauges>,
    startup: HistogramVec,
    publish: Histogram,
    applies: IntCounterVec,
    replaced: IntCounterVec,
    status_patches: IntCounter,
    events: IntCounterVec,
    slipped_through: IntCounter,
    deletions_held: IntCounter,
    deleted: IntCounterVec,
    queues: IntGaugeVec,
    /// Those of the policy.
    pub policy: PolicyMetrics,
}

impl Metrics {
    /// Registers everything, with the policy's digest; per session too, if `per_session`.
    ///
    /// # Errors
    /// When that was done before.
    pub(crate) fn register(registry: &Registry, policy_digest: &str, per_session: bool) -> prometheus::Result<Self> {
        let counters = |name: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        let metrics = Self {
            tallies: Arc::new(tally::Gauges::register(registry, per_session)?),
            startup: HistogramVec::new(
                HistogramOpts::new("startup_seconds", "Time that sessions spent in each stage of their start.")
                    .buckets(STARTUP_SECONDS.to_vec()),
                &["stage"],
            )?,
            publish: Histogram::with_opts(
                HistogramOpts::new(
                    "publish_seconds",
                    "From the first event that carries a pod's address to the answer to the last apply.",
                )
                .buckets(PUBLISH_SECONDS.to_vec()),
            )?,
            applies: counters("applies_total", "Writes of the objects of sessions.", &["resource", "verb"])?,
            replaced: counters(
                "replaced_objects_total",
                "Objects that were deleted and made anew, since an apply cannot take away what others added.",
                &["resource"],
            )?,
            status_patches: IntCounter::new("pod_status_patches_total", "Writes of conditions and endpoints of pods.")?,
            events: counters("events_total", "Events on pods, by what became of them.", &["outcome"])?,
            slipped_through: IntCounter::new(
                "slipped_through_pods_total",
                "Pods that had to be hardened sessions and were not.",
            )?,
            deletions_held: IntCounter::new(
                "slipped_through_deletions_held_total",
                "Deletions of pods that slipped through that were put off, since their owner makes new ones as fast.",
            )?,
            deleted: counters("deleted_pods_total", "Pods that the agent deleted, and why.", &["reason"])?,
            queues: IntGaugeVec::new(
                Opts::new(
                    "queue_depth",
                    "Sessions that wait for their turn: to have their objects written (publish) or their pod's status (tell).",
                ),
                &["queue"],
            )?,
            policy: PolicyMetrics::register(registry, policy_digest)?,
            watches: Watches::register(registry)?,
        };
        metrics.begin();
        let collectors: [Box<dyn Collector>; 10] = [
            Box::new(metrics.startup.clone()),
            Box::new(metrics.publish.clone()),
            Box::new(metrics.applies.clone()),
            Box::new(metrics.replaced.clone()),
            Box::new(metrics.status_patches.clone()),
            Box::new(metrics.events.clone()),
            Box::new(metrics.slipped_through.clone()),
            Box::new(metrics.deletions_held.clone()),
            Box::new(metrics.deleted.clone()),
            Box::new(metrics.queues.clone()),
        ];
        collectors.into_iter().try_for_each(|collector| registry.register(collector))?;
        Ok(metrics)
    }

    /// Every series is there from the start, at zero, so that a rate sees the first increase.
    fn begin(&self) {
        for stage in Stage::ALL {
            self.startup.with_label_values(&[stage.as_str()]);
        }
        for reason in ["finished", "slipped_through"] {
            self.deleted.with_label_values(&[reason]);
        }
        for queue in [Queue::Publish, Queue::Tell] {
            self.queues.with_label_values(&[queue.as_str()]);
        }
        for outcome in ["sent", "failed", "dropped"] {
            self.events.with_label_values(&[outcome]);
        }
        for resource in Kind::ALL.map(Kind::plural) {
            self.replaced.with_label_values(&[resource]);
            for verb in ["create", "apply", "delete"] {
                self.applies.with_label_values(&[resource, verb]);
            }
        }
    }

    /// Counts what probes come to, within a budget of `limit` questions a second.
    ///
    /// # Errors
    /// When that was done before.
    pub(crate) fn probes(registry: &Registry, limit: u32) -> prometheus::Result<Arc<dyn Record>> {
        Ok(Arc::new(probes::Probes::register(registry, limit)?))
    }

    /// A session comes; what it counts for goes when this is dropped.
    #[must_use]
    pub(crate) fn tally(&self) -> Tally {
        Tally::new(Arc::clone(&self.tallies))
    }

    /// A session has come through a stage.
    pub(crate) fn stage(&self, stage: Stage, took: Duration) {
        self.startup.with_label_values(&[stage.as_str()]).observe(took.as_secs_f64());
    }

    /// A session was published for the first time.
    pub(crate) fn published(&self, took: Duration) {
        self.publish.observe(took.as_secs_f64());
    }

    /// An object of a session was written.
    pub(crate) fn wrote(&self, resource: &str, verb: &str) {
        self.applies.with_label_values(&[resource, verb]).inc();
    }

    /// An object of a session was deleted and made anew.
    pub(crate) fn replaced(&self, resource: &str) {
        self.replaced.with_label_values(&[resource]).inc();
    }

    /// A pod's status was written.
    pub(crate) fn status_patched(&self) {
        self.status_patches.inc();
    }

    /// Something became of an event: `sent`, `failed` or `dropped`.
    pub(crate) fn event(&self, outcome: &str) {
        self.events.with_label_values(&[outcome]).inc();
    }

    /// A pod slipped through.
    pub(crate) fn slipped_through(&self) {
        self.slipped_through.inc();
    }

    /// A pod that slipped through is not deleted yet.
    pub(crate) fn deletion_held(&self) {
        self.deletions_held.inc();
    }

    /// A pod was deleted because it is `finished` or `slipped_through`.
    pub(crate) fn deleted(&self, reason: &str) {
        self.deleted.with_label_values(&[reason]).inc();
    }

    /// A session waits for its turn until this is dropped.
    #[must_use]
    pub(crate) fn queued(&self, queue: Queue) -> Queued {
        let depth = self.queues.with_label_values(&[queue.as_str()]);
        depth.inc();
        Queued(depth)
    }

    /// How many wait.
    #[cfg(test)]
    pub(crate) fn depth(&self, queue: Queue) -> i64 {
        self.queues.with_label_values(&[queue.as_str()]).get()
    }
}

/// What a session waits for its turn to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// To have its objects written, or its pod deleted.
    Publish,
    /// To have its pod's status written.
    Tell,
}

impl Queue {
    /// As a label.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Tell => "tell",
        }
    }
}

/// A session that waits for its turn.
#[derive(Debug)]
pub(crate) struct Queued(IntGauge);

impl Drop for Queued {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests;
