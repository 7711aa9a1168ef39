//! The command line: what may be typed. Every flag has an environment variable, `COFFERDAM_AGENT_` and its name.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use cofferdam_model::keys;
use cofferdam_policy_file::{Installation, PolicyFileError, PolicySource};
use cofferdam_runtime::{duration, logs};

use crate::config::Config;

/// Publishes the routes of the sessions on its node, says whether they work, and tells Prometheus.
#[derive(Debug, Parser)]
#[command(name = "cofferdam-agent", version)]
pub(crate) struct Args {
    /// The policy file. Without it the built-in policy holds. It is read again when it changes.
    #[arg(long, value_name = "FILE", env = "COFFERDAM_AGENT_POLICY")]
    pub policy: Option<PathBuf>,

    /// How often the policy file is looked at.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_AGENT_POLICY_POLL_INTERVAL",
        default_value = "10s",
        value_parser = duration::interval
    )]
    pub policy_poll_interval: Duration,

    /// The node that this program runs on (spec.nodeName of its pod).
    #[arg(long, value_name = "NAME", env = "COFFERDAM_AGENT_NODE_NAME")]
    pub node_name: String,

    /// The pod that this program runs in.
    #[arg(long, value_name = "NAME", env = "COFFERDAM_AGENT_POD_NAME")]
    pub pod_name: String,

    /// The namespace that this program runs in. Its pods are no sessions.
    #[arg(long, value_name = "NAME", env = "COFFERDAM_AGENT_NAMESPACE", default_value = keys::SYSTEM_NAMESPACE)]
    pub namespace: String,

    /// Look into this namespace alone, of which every pod is a session; nobody is elected then.
    #[arg(long, value_name = "NAME", env = "COFFERDAM_AGENT_NAMESPACE_ONLY")]
    pub namespace_only: Option<String>,

    /// Where /livez, /readyz and /metrics are answered, in plain HTTP.
    #[arg(long, value_name = "ADDRESS", env = "COFFERDAM_AGENT_ADMIN_LISTEN", default_value = "0.0.0.0:8080")]
    pub admin_listen: SocketAddr,

    /// One series for the address of each session's port. The registry then grows with the sessions.
    #[arg(long, env = "COFFERDAM_AGENT_PER_SESSION_METRICS")]
    pub per_session_metrics: bool,

    /// The most questions that probes of all sessions ask in a second.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "COFFERDAM_AGENT_PROBES_PER_SECOND",
        default_value = "200",
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub probes_per_second: u32,

    /// The share of nodes that may be lost at once before the elected agent takes it for a fault of its own view. One lost
    /// node alone is always believed.
    #[arg(
        long,
        value_name = "SHARE",
        env = "COFFERDAM_AGENT_LOST_NODE_SHARE",
        default_value = "0.5",
        value_parser = share
    )]
    pub lost_node_share: f64,

    /// How long a node must not be Ready until its sessions go out of service, and how long few enough nodes must be lost
    /// until that is believed again. The cluster notices nodes that fall silent together in groups, 5 s apart.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_AGENT_LOST_NODE",
        default_value = "15s",
        value_parser = duration::interval
    )]
    pub lost_node: Duration,

    /// How long an agent may be silent on a node that is Ready until its sessions are marked.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_AGENT_SILENT_AGENT",
        default_value = "60s",
        value_parser = duration::interval
    )]
    pub silent_agent: Duration,

    /// How log lines look: json or text.
    #[arg(long, value_name = "FORMAT", env = "COFFERDAM_AGENT_LOG_FORMAT", default_value = "text")]
    pub log_format: logs::Format,

    /// What is logged: a level, or levels by target as in info,hyper=debug.
    #[arg(long, value_name = "FILTER", env = "COFFERDAM_AGENT_LOG_FILTER", default_value = "info")]
    pub log_filter: String,
}

impl Args {
    /// What the flags mean. Reads the policy file.
    pub(crate) fn into_config(self) -> Result<Config, PolicyFileError> {
        // Without `..`: a flag that nothing uses is a compiler's warning.
        let Self {
            policy,
            policy_poll_interval,
            node_name,
            pod_name,
            namespace,
            namespace_only,
            admin_listen,
            per_session_metrics,
            probes_per_second,
            lost_node_share,
            lost_node,
            silent_agent,
            log_format: _,
            log_filter: _,
        } = self;
        let installation = Installation { image: None, namespace };
        let policy_source = policy.map_or(PolicySource::BuiltIn, PolicySource::File);
        Ok(Config {
            policy: installation.complete(policy_source.load()?),
            policy_source,
            installation,
            policy_poll: policy_poll_interval,
            node: node_name,
            pod: pod_name,
            namespace_only,
            admin_listen,
            per_session_metrics,
            probes_per_second,
            lost_node_share,
            lost_node,
            silent_agent,
        })
    }
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "this is no number".to_owned())?;
    if share > 0.0 && share <= 1.0 { Ok(share) } else { Err("the share must be above 0 and at most 1".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    const REQUIRED: [&str; 3] = ["cofferdam-agent", "--node-name=n", "--pod-name=p"];

    #[test]
    fn every_flag_has_its_variable_and_none_that_a_service_of_our_name_would_set() {
        for argument in Args::command().get_arguments().filter(|argument| argument.get_env().is_some()) {
            let flag = argument.get_long().unwrap();
            let variable = format!("COFFERDAM_AGENT_{}", flag.to_uppercase().replace('-', "_"));
            assert_eq!(argument.get_env().unwrap().to_str(), Some(variable.as_str()));
            assert!(!flag.starts_with("port") && !flag.starts_with("service"), "{flag}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        assert!(Args::try_parse_from(REQUIRED).is_ok());
        for flag in [
            "--policy-poll-interval=0s",
            "--probes-per-second=0",
            "--lost-node-share=0",
            "--lost-node-share=1.1",
            "--lost-node-share=nan",
            "--silent-agent=60",
            "--lost-node=0s",
            "--admin-listen=8080",
            "--log-format=xml",
        ] {
            assert!(Args::try_parse_from(REQUIRED.into_iter().chain([flag])).is_err(), "{flag}");
        }
    }
}
