//! What is counted of the policy, under the same names by every program.

use prometheus::{IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

use crate::reload::Outcome;

/// The metrics of the policy; clones share them.
#[derive(Clone, Debug)]
pub struct PolicyMetrics {
    info: IntGaugeVec,
    reloads: IntCounterVec,
    last_reload_successful: IntGauge,
}

impl PolicyMetrics {
    /// Registers everything, at zero, with the policy's digest. Fails only if that was done before.
    pub fn register(registry: &Registry, digest: &str) -> prometheus::Result<Self> {
        let metrics = Self {
            info: IntGaugeVec::new(Opts::new("policy_info", "Always 1; which policy is in force."), &["digest"])?,
            reloads: IntCounterVec::new(
                Opts::new(
                    "policy_reloads_total",
                    "Looks at a changed policy file: swapped, or failed, when the last good policy stays.",
                ),
                &["outcome"],
            )?,
            last_reload_successful: IntGauge::new(
                "policy_last_reload_successful",
                "Whether the policy file held a policy when it was last looked at.",
            )?,
        };
        metrics.in_force(digest);
        metrics.last_reload_successful.set(1);
        for outcome in ["swapped", "failed"] {
            metrics.reloads.with_label_values(&[outcome]);
        }
        registry.register(Box::new(metrics.info.clone()))?;
        registry.register(Box::new(metrics.reloads.clone()))?;
        registry.register(Box::new(metrics.last_reload_successful.clone()))?;
        Ok(metrics)
    }

    /// The policy of that digest is in force, and no other.
    pub fn in_force(&self, digest: &str) {
        self.info.reset();
        self.info.with_label_values(&[digest]).set(1);
    }

    /// Somebody looked at the policy's file.
    pub fn looked_at(&self, outcome: Outcome) {
        self.last_reload_successful.set(i64::from(outcome != Outcome::Kept));
        let label = match outcome {
            Outcome::Unchanged => return,
            Outcome::Swapped => "swapped",
            Outcome::Kept => "failed",
        };
        self.reloads.with_label_values(&[label]).inc();
    }
}
