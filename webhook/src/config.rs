//! What the command line means.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_certs::Files;
use cofferdam_model::keys;
use cofferdam_model::policy::{Policy, PolicyError};
use cofferdam_runtime::logs::LogsError;
use rustls::pki_types::ServerName;

/// A ConfigMap holds no more; what is larger is the wrong file.
const LARGEST_POLICY_BYTES: u64 = 1024 * 1024;

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

/// Where a policy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PolicySource {
    /// Compiled in.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

/// What a policy file does not say, since it is known only where Cofferdam is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installation {
    /// The image that holds `cofferdam-fetch`; none for the one of the manifests.
    pub image: Option<String>,
    /// Where Cofferdam itself runs.
    pub namespace: String,
}

/// A configuration that the program cannot start with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The policy file could not be read.
    #[error("cannot read the policy file {}", path.display())]
    PolicyFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The policy file is larger than any policy.
    #[error("{} is larger than 1 MiB, so it is no policy", path.display())]
    PolicyTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The policy file says something that it cannot; the message names file, line and key.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Format or filter of the logs.
    #[error(transparent)]
    Logs(#[from] LogsError),
}

impl Default for Installation {
    /// As the manifests install it.
    fn default() -> Self {
        Self { image: None, namespace: keys::SYSTEM_NAMESPACE.to_owned() }
    }
}

impl Installation {
    /// The policy with what its file does not say.
    #[must_use]
    pub(crate) fn complete(&self, policy: Policy) -> Policy {
        let policy = policy.with_system_namespace(&self.namespace);
        match &self.image {
            Some(image) => policy.with_image(image),
            None => policy,
        }
    }
}

impl PolicySource {
    /// Reads and checks the policy.
    pub(crate) fn load(&self) -> Result<Policy, ConfigError> {
        match self {
            Self::BuiltIn => Ok(Policy::built_in()),
            Self::File(path) => Ok(Policy::parse(&path.to_string_lossy(), &read(path)?)?),
        }
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let mut text = String::new();
    let taken = File::open(path)
        .and_then(|file| file.take(LARGEST_POLICY_BYTES + 1).read_to_string(&mut text))
        .map_err(|source| ConfigError::PolicyFile { path: path.to_owned(), source })?;
    if taken as u64 > LARGEST_POLICY_BYTES {
        return Err(ConfigError::PolicyTooLarge { path: path.to_owned() });
    }
    Ok(text)
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
