//! What the elected agent counts. The registry puts `cofferdam_agent_` in front of every name.

use cofferdam_kubernetes::watch::Watches;
use prometheus::{IntCounterVec, IntGauge, Opts, Registry};

use super::nodes::Assessment;
use super::outage::Outage;
use crate::objects::Kind;

/// The metrics of the elected agent; clones share them. Gauges are zero on every agent that is not elected.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    leader: IntGauge,
    lost_nodes: IntGauge,
    lost_node_brake: IntGauge,
    silent_agents: IntGauge,
    swept: IntCounterVec,
    /// Those of its watches, among those of the node's own.
    pub(super) watches: Watches,
}

impl Metrics {
    /// Registers everything, at zero. Fails only if that was done before.
    pub(crate) fn register(registry: &Registry, watches: Watches) -> prometheus::Result<Self> {
        let gauge = |name: &str, help: &str| -> prometheus::Result<IntGauge> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let swept = IntCounterVec::new(
            Opts::new("swept_objects_total", "Objects of ours that no agent looked after any more, and were deleted."),
            &["resource"],
        )?;
        registry.register(Box::new(swept.clone()))?;
        for kind in Kind::ALL {
            swept.with_label_values(&[kind.plural()]);
        }
        Ok(Self {
            leader: gauge("leader", "Whether this agent is the elected one.")?,
            lost_nodes: gauge(
                "lost_nodes",
                "Nodes that are not Ready; one that has only joined, or is deleted, is none.",
            )?,
            lost_node_brake: gauge(
                "lost_node_brake",
                "Whether so many nodes seem lost at once that nothing is done about any.",
            )?,
            silent_agents: gauge("silent_agents", "Ready nodes whose agent is not ready, or not there.")?,
            swept,
            watches,
        })
    }

    /// This agent is the elected one.
    pub(super) fn leading(&self) {
        self.leader.set(1);
    }

    /// It is not any more, and knows nothing of other nodes.
    pub(super) fn not_leading(&self) {
        for gauge in [&self.leader, &self.lost_nodes, &self.lost_node_brake, &self.silent_agents] {
            gauge.set(0);
        }
    }

    /// So many nodes are not Ready, and so many agents silent.
    pub(super) fn assessed(&self, assessment: &Assessment) {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.lost_nodes.set(count(assessment.not_ready_count));
        self.lost_node_brake.set(i64::from(assessment.is_braked));
        let silent = assessment.outages.values().filter(|(outage, _)| *outage == Outage::Silent);
        self.silent_agents.set(count(silent.count()));
    }

    /// An object that no agent looks after was deleted.
    pub(super) fn swept(&self, resource: &str) {
        self.swept.with_label_values(&[resource]).inc();
    }
}
