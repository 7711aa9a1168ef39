//! What probes come to.

use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, IntCounterVec, IntGauge, Opts, Registry};

use crate::probe::{Kind, Outcome, Record};

/// A probe waits only while there is more to ask than the budget allows.
const WAIT_SECONDS: [f64; 9] = [0.001, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0];

/// The metrics of probes.
#[derive(Debug)]
pub(super) struct Probes {
    probes: IntCounterVec,
    wait: Histogram,
}

impl Probes {
    pub(super) fn register(registry: &Registry, limit: u32) -> prometheus::Result<Self> {
        let probes = IntCounterVec::new(
            Opts::new("probes_total", "Probes of ports and addresses by what they came to."),
            &["probe", "result"],
        )?;
        let wait = Histogram::with_opts(
            HistogramOpts::new(
                "probe_wait_seconds",
                "How long probes waited for their turn in the budget; not those of targets that gave no answer last time.",
            )
            .buckets(WAIT_SECONDS.to_vec()),
        )?;
        let most = IntGauge::new("probes_per_second_limit", "The most questions that probes ask in a second.")?;
        most.set(limit.into());
        for kind in [Kind::Port, Kind::Address] {
            for outcome in Outcome::ALL {
                probes.with_label_values(&[kind.as_str(), outcome.as_str()]);
            }
        }
        registry.register(Box::new(probes.clone()))?;
        registry.register(Box::new(wait.clone()))?;
        registry.register(Box::new(most))?;
        Ok(Self { probes, wait })
    }
}

impl Record for Probes {
    fn probed(&self, kind: Kind, outcome: Outcome) {
        self.probes.with_label_values(&[kind.as_str(), outcome.as_str()]).inc();
    }

    fn waited(&self, waited: Duration) {
        self.wait.observe(waited.as_secs_f64());
    }
}
