//! What the webhook counts. The registry puts `cofferdam_webhook_` in front of every name.

use std::time::Instant;

use cofferdam_certs::Outcome as Renewal;
use cofferdam_policy_file::PolicyMetrics;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};

use crate::admit::{Entry, Outcome};

/// A review takes well under a millisecond; what is slower is a big pod, a slow client or a starved processor.
const SECONDS: [f64; 13] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// A patch of a plain pod is about 2 KiB before base64.
const BYTES: [f64; 8] = [256.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 65536.0, 1_048_576.0];

/// All metrics of the webhook; clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    requests: IntCounterVec,
    seconds: HistogramVec,
    in_flight: IntGauge,
    patch_bytes: Histogram,
    certificate_expiry: IntGauge,
    certificate_reloads: IntCounterVec,
    /// Those of the policy.
    pub policy: PolicyMetrics,
}

impl Metrics {
    /// Registers everything, at zero, with the policy's digest. Fails only if that was done before.
    pub fn register(registry: &Registry, policy_digest: &str) -> prometheus::Result<Self> {
        let metrics = Self {
            requests: IntCounterVec::new(
                Opts::new("requests_total", "Requests by the webhook entry they came through and what became of them."),
                &["webhook", "scope", "outcome"],
            )?,
            seconds: HistogramVec::new(
                HistogramOpts::new("request_duration_seconds", "From the end of a request's head to its answer.")
                    .buckets(SECONDS.to_vec()),
                &["webhook", "scope"],
            )?,
            in_flight: IntGauge::new("in_flight_requests", "Requests that are being read or judged now.")?,
            patch_bytes: Histogram::with_opts(
                HistogramOpts::new("patch_bytes", "Size of the patches sent, before base64.").buckets(BYTES.to_vec()),
            )?,
            certificate_expiry: IntGauge::new(
                "certificate_expiry_timestamp_seconds",
                "When the certificate that is served expires, in seconds since 1970.",
            )?,
            certificate_reloads: IntCounterVec::new(
                Opts::new(
                    "certificate_reloads_total",
                    "Looks at changed certificate files: swapped, or failed, when the old certificate stays.",
                ),
                &["outcome"],
            )?,
            policy: PolicyMetrics::register(registry, policy_digest)?,
        };
        for entry in Entry::ALL.into_iter().map(|(_, entry)| Some(entry)).chain([None]) {
            let [webhook, scope] = Entry::words(entry);
            metrics.seconds.with_label_values(&[webhook, scope]);
            for outcome in Outcome::ALL.iter().filter(|outcome| outcome.belongs_to(entry)) {
                metrics.requests.with_label_values(&[webhook, scope, outcome.as_str()]);
            }
        }
        for outcome in ["swapped", "failed"] {
            metrics.certificate_reloads.with_label_values(&[outcome]);
        }
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.seconds.clone()))?;
        registry.register(Box::new(metrics.in_flight.clone()))?;
        registry.register(Box::new(metrics.patch_bytes.clone()))?;
        registry.register(Box::new(metrics.certificate_expiry.clone()))?;
        registry.register(Box::new(metrics.certificate_reloads.clone()))?;
        Ok(metrics)
    }

    /// A request through `entry`, or by no path of ours, begins.
    #[must_use]
    pub fn begin(&self, entry: Option<Entry>) -> InFlight {
        self.in_flight.inc();
        InFlight { metrics: self.clone(), entry, since: Instant::now(), outcome: None }
    }

    /// A patch of so many bytes goes out.
    pub fn patched(&self, bytes: usize) {
        #[expect(clippy::cast_precision_loss, reason = "a patch is shorter than 2^53 bytes")]
        self.patch_bytes.observe(bytes as f64);
    }

    /// The certificate that is served expires then.
    pub fn certificate_expires(&self, unix_seconds: u64) {
        self.certificate_expiry.set(i64::try_from(unix_seconds).unwrap_or(i64::MAX));
    }

    /// Somebody looked at the certificate's files.
    pub fn certificate_looked_at(&self, outcome: Renewal) {
        let label = match outcome {
            Renewal::Unchanged => return,
            Renewal::Swapped => "swapped",
            Renewal::Kept => "failed",
        };
        self.certificate_reloads.with_label_values(&[label]).inc();
    }
}

/// A request that is being worked on. Dropped without an outcome it counts as panicked or abandoned, whichever it is.
#[derive(Debug)]
pub struct InFlight {
    metrics: Metrics,
    entry: Option<Entry>,
    since: Instant,
    outcome: Option<Outcome>,
}

impl InFlight {
    /// It was answered.
    pub fn end(mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let left = if std::thread::panicking() { Outcome::Panicked } else { Outcome::Abandoned };
        let outcome = self.outcome.unwrap_or(left);
        let [webhook, scope] = Entry::words(self.entry);
        self.metrics.in_flight.dec();
        self.metrics.seconds.with_label_values(&[webhook, scope]).observe(self.since.elapsed().as_secs_f64());
        self.metrics.requests.with_label_values(&[webhook, scope, outcome.as_str()]).inc();
    }
}
