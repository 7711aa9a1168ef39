//! The policy: what a session may at most be, profile by profile.
//!
//! One typed YAML file. Every key has a default, so a file says only what differs; a key that nothing reads stops the
//! program instead of protecting nothing. The file in `manifests/base/policy.yaml` is compiled in and holds where no
//! other is given.

use std::{collections::BTreeMap, fmt::Write as _, sync::LazyLock};

use sha2::{Digest, Sha256};

use crate::keys::{KUBE_SYSTEM, SYSTEM_NAMESPACE};

mod bodies;
mod check;
mod error;
mod file;
mod image_pattern;
mod kubernetes;
mod network;
mod params;
mod profile;
mod routing;
mod schema;
mod show;
mod suggest;

pub use bodies::Bodies;
pub(crate) use bodies::CREDENTIALS_DIRECTORY;
pub use error::PolicyError;
pub(crate) use image_pattern::matches as image_matches;
pub(crate) use kubernetes::{DEFAULT_SCHEDULER, SAFE_SYSCTLS};
pub use network::{Network, NetworkMode};
pub use params::{params, params_config_map};
pub(crate) use profile::ENTRY;
pub use profile::{
    Allow, AppArmor, Ceilings, DefaultRequest, HostUsers, Images, Lifetime, PodCeilings, Profile, Requests, Resources,
    RunAs, RuntimeClass, Scheduling, Scratch, SlippedThrough, SupplementalGroups, Toleration,
};
pub use routing::{
    ParentGateway, ProbeAddress, ProbeHost, ProbeRouting, ProofMode, PublicUrl, Routing, RoutingMode, Scheme,
};
pub use schema::schema;
pub use suggest::did_you_mean;

/// The policy that ships in the manifests.
const BUILT_IN: &str = include_str!("../../../manifests/base/policy.yaml");

/// What a policy file is called in messages when it is the one compiled in.
const BUILT_IN_NAME: &str = "the built-in policy";

/// Hex digits of a digest that are kept: enough to tell two policies apart by eye and by metric.
const DIGEST_LENGTH: usize = 12;

/// Log lines of a container count against its ephemeral storage too; a kubelet keeps up to 50 MiB of them by default.
const LOG_MARGIN: &str = "64Mi";

/// How long a finished pod is kept, for who wants to read its log.
const FINISHED_GRACE_SECONDS: u32 = 600;

/// The longest that a finished pod is kept, in seconds, whoever asks: what nobody deletes fills the cluster.
pub const LONGEST_FINISHED_GRACE_SECONDS: u32 = 24 * 60 * 60;

/// A checked policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    profiles: BTreeMap<String, Profile>,
    trusted: Vec<String>,
    routing: Routing,
    network: Network,
    finished_grace_seconds: u32,
    bodies: Bodies,
    /// Where Cofferdam itself runs.
    system_namespace: String,
    digest: String,
}

impl Policy {
    /// Reads and checks a policy. `file_name` is only for messages.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, PolicyError> {
        let check::Meaning { profiles, routing, network, finished_grace_seconds, bodies, trusted } =
            file::read(file_name, text)
                .and_then(|file| check::Checker::new(file_name).policy(file))
                .map_err(PolicyError::on_one_line)?;
        let system_namespace = SYSTEM_NAMESPACE.to_owned();
        let digest = digest(text);
        Ok(Self { profiles, trusted, routing, network, finished_grace_seconds, bodies, system_namespace, digest })
    }

    /// The same policy, with the image that holds `cofferdam-fetch`: the file does not say it, since it is the image of
    /// whoever runs the rules.
    #[must_use]
    pub fn with_image(mut self, image: impl Into<String>) -> Self {
        self.bodies.image = image.into();
        self
    }

    /// The same policy, for an installation in `namespace`: its pods are left alone, and those of the namespace that
    /// installations have by default no longer are.
    #[must_use]
    pub fn with_system_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.system_namespace = namespace.into();
        self
    }

    /// Whether pods of that namespace are left alone: the cluster and Cofferdam itself must start while the webhook is
    /// down.
    #[must_use]
    pub fn exempts(&self, namespace: &str) -> bool {
        namespace == KUBE_SYSTEM || namespace == self.system_namespace
    }

    /// The policy that holds where none is given.
    #[must_use]
    #[expect(clippy::expect_used, reason = "compiled in, and a test reads it")]
    pub fn built_in() -> Self {
        // Reading it takes longer than hardening a pod by it.
        static READ: LazyLock<Policy> =
            LazyLock::new(|| Policy::parse(BUILT_IN_NAME, BUILT_IN).expect("the built-in policy is valid"));
        READ.clone()
    }

    /// The same policy with other bodies.
    #[cfg(test)]
    pub(crate) fn with_bodies(self, bodies: Bodies) -> Self {
        Self { bodies, ..self }
    }

    /// The same policy with other routing.
    #[cfg(test)]
    pub(crate) fn with_routing(self, routing: Routing) -> Self {
        Self { routing, ..self }
    }

    /// The same policy with another profile `default`.
    #[cfg(test)]
    pub(crate) fn with_default(mut self, profile: Profile) -> Self {
        self.profiles.insert(crate::keys::DEFAULT_PROFILE.to_owned(), profile);
        self
    }

    /// The profile of that name.
    #[must_use]
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.get(name)
    }

    /// The names of all profiles, in order.
    pub fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    /// User names that may set what is otherwise written by us alone.
    #[must_use]
    pub fn trusted(&self) -> &[String] {
        &self.trusted
    }

    /// Whether and how sessions get an address.
    #[must_use]
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// What sessions may reach, and who may reach them.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Whether sessions get addresses, and the network policy that agents keep lets no gateway in, since no namespace of a
    /// data plane is named.
    #[must_use]
    pub fn lacks_data_plane(&self) -> bool {
        let network = &self.network;
        self.routing.is_on() && network.mode == NetworkMode::Managed && network.data_plane_namespaces.is_empty()
    }

    /// How long a finished pod is kept, in seconds.
    #[must_use]
    pub fn finished_grace_seconds(&self) -> u32 {
        self.finished_grace_seconds
    }

    /// How bodies get into pods.
    #[must_use]
    pub fn bodies(&self) -> &Bodies {
        &self.bodies
    }

    /// The first 12 hex digits of the file's SHA-256: which policy hardened a pod.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// Who may write our labels and annotations if the file does not say: the programs that do.
fn trusted_by_default() -> Vec<String> {
    ["cofferdam-api", "cofferdam-agent"].map(|name| format!("system:serviceaccount:{SYSTEM_NAMESPACE}:{name}")).to_vec()
}

fn digest(text: &str) -> String {
    let mut digest = String::new();
    for byte in Sha256::digest(text.as_bytes()).iter().take(DIGEST_LENGTH / 2) {
        // Writing to a string cannot fail.
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

#[cfg(test)]
mod tests;
