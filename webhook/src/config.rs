//! What the command line means.

use std::net::SocketAddr;
use std::time::Duration;

use cofferdam_certs::Files;
use cofferdam_model::policy::Policy;
use cofferdam_policy_file::{Installation, PolicyFileError, PolicySource};
use cofferdam_runtime::logs::LogsError;
use rustls::pki_types::ServerName;

/// Everything a server needs to start.
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
    /// Where certificate and key are.
    pub certificate: Files,
    /// Names that the certificate must cover; none, and no name is checked.
    pub server_names: Vec<ServerName<'static>>,
    /// How often the files of the certificate are looked at.
    pub certificate_poll: Duration,
    /// Where admission reviews are answered. Port 0 is any free one.
    pub listen: SocketAddr,
    /// Where the admin port is.
    pub admin_listen: SocketAddr,
    /// From the wish to stop to the closing of the listener.
    pub drain_delay: Duration,
    /// From there to the cutting off of what is still in flight.
    pub drain_timeout: Duration,
}

/// A configuration that the program cannot start with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The policy.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// Format or filter of the logs.
    #[error(transparent)]
    Logs(#[from] LogsError),
}

impl Config {
    /// Logs what is in effect, once. Nothing here is secret; the key's file is named, not shown.
    pub(crate) fn log(&self) {
        let Self {
            policy,
            policy_source,
            installation,
            policy_poll,
            certificate,
            server_names,
            certificate_poll,
            listen,
            admin_listen,
            drain_delay,
            drain_timeout,
        } = self;
        let server_names: Vec<_> = server_names.iter().map(ServerName::to_str).collect();
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            policy = %policy_source,
            policy_digest = policy.digest(),
            policy_poll_interval = ?policy_poll,
            image = policy.bodies().image,
            namespace = installation.namespace,
            tls_cert = %certificate.chain.display(),
            tls_key = %certificate.key.display(),
            tls_server_name = server_names.join(","),
            tls_poll_interval = ?certificate_poll,
            %listen,
            %admin_listen,
            ?drain_delay,
            ?drain_timeout,
            "starting"
        );
    }
}
