//! What the command line means.

use std::net::SocketAddr;
use std::time::Duration;

use cofferdam_model::policy::Policy;
use cofferdam_policy_file::{Installation, PolicySource};

/// Everything an agent needs to start.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The policy to begin with.
    pub policy: Policy,
    /// Where it came from, and where the next one will be.
    pub policy_source: PolicySource,
    /// What the file does not say.
    pub installation: Installation,
    /// How often the policy file is looked at.
    pub policy_poll: Duration,
    /// The node's name.
    pub node: String,
    /// The name of the agent's own pod.
    pub pod: String,
    /// The only namespace that may be looked into.
    pub namespace_only: Option<String>,
    /// Where the admin port is.
    pub admin_listen: SocketAddr,
    /// Whether each session has series of its own.
    pub per_session_metrics: bool,
    /// The most questions of all probes in a second.
    pub probes_per_second: u32,
    /// The share of nodes that may be lost at once.
    pub lost_node_share: f64,
    /// How long a node must not be Ready until it is lost.
    pub lost_node: Duration,
    /// How long an agent may be silent.
    pub silent_agent: Duration,
}

impl Config {
    /// Logs what is in effect, once.
    pub(crate) fn log(&self) {
        let Self {
            policy,
            policy_source,
            installation,
            policy_poll,
            node,
            pod,
            namespace_only,
            admin_listen,
            per_session_metrics,
            probes_per_second,
            lost_node_share,
            lost_node,
            silent_agent,
        } = self;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            policy = %policy_source,
            policy_digest = policy.digest(),
            policy_poll_interval = ?policy_poll,
            node,
            pod,
            namespace = installation.namespace,
            namespace_only,
            %admin_listen,
            per_session_metrics,
            probes_per_second,
            lost_node_share,
            ?lost_node,
            ?silent_agent,
            "starting"
        );
    }
}
