//! What the command line means.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use cofferdam_certs::Files;
use cofferdam_model::policy::{Policy, PolicyError};
use cofferdam_runtime::logs::LogsError;
use rustls::pki_types::ServerName;

/// Everything a server needs to start.
#[derive(Clone, Debug)]
pub struct Config {
    /// The policy that holds.
    pub policy: Policy,
    /// Where it came from.
    pub policy_source: PolicySource,
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

/// Where a policy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicySource {
    /// Compiled in.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

/// A configuration that the program cannot start with.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The policy file could not be read.
    #[error("cannot read the policy file {}", path.display())]
    PolicyFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The policy file says something that it cannot; the message names file, line and key.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Format or filter of the logs.
    #[error(transparent)]
    Logs(#[from] LogsError),
}

impl PolicySource {
    /// Reads and checks the policy.
    pub fn load(&self) -> Result<Policy, ConfigError> {
        match self {
            Self::BuiltIn => Ok(Policy::built_in()),
            Self::File(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| ConfigError::PolicyFile { path: path.clone(), source })?;
                Ok(Policy::parse(&path.to_string_lossy(), &text)?)
            }
        }
    }
}

impl fmt::Display for PolicySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Config {
    /// Logs what is in effect, once. Nothing here is secret; the key's file is named, not shown.
    pub(crate) fn log(&self) {
        let Self {
            policy,
            policy_source,
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
