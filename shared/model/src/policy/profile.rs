//! One profile: the ceilings and defaults of a session.

use std::collections::BTreeMap;

use super::kubernetes::RESTRICTED_VOLUME_TYPES;
use crate::{glob::matches, quantity::Quantity};

/// What stands for the entry's path in a profile's command.
pub(crate) const ENTRY: &str = "$(ENTRY)";

/// What a session of this profile gets and may at most ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Who may use it.
    pub allow: Allow,
    /// Which images may run, and how they are pulled.
    pub images: Images,
    /// Where pods may run.
    pub scheduling: Scheduling,
    /// cpu, memory and ephemeral storage of each container.
    pub resources: Resources,
    /// What all containers of a pod may be together.
    pub pod: PodCeilings,
    /// How long a pod may live and take to end.
    pub lifetime: Lifetime,
    /// The user that a pod runs as if it names none.
    pub run_as: RunAs,
    /// Volume types that a pod may use, by the name of their member in `spec.volumes[*]`.
    pub volume_types: Vec<String>,
    /// Writable directories for containers that are made read-only.
    pub scratch: Vec<Scratch>,
    /// `localhostProfile`s that may stand in for `RuntimeDefault` seccomp.
    pub seccomp_localhost_profiles: Vec<String>,
    /// Whether AppArmor is asked for where the pod does not.
    pub app_armor: AppArmor,
    /// Sysctls that may be set besides those that Kubernetes calls safe; spelled with dots.
    pub sysctls: Vec<String>,
    /// Audiences that a projected service account token may have; the API server's own never is among them.
    pub token_audiences: Vec<String>,
    /// Whether a pod may share the node's user namespace.
    pub host_users: HostUsers,
    /// Whether groups that an image's `/etc/group` names reach the process.
    pub supplemental_groups: SupplementalGroups,
    /// Whether `spec.hostAliases` may be used.
    pub host_aliases: bool,
    /// What the first container runs if it names neither command nor arguments and the pod names an entry;
    /// `$(ENTRY)` in it stands for the entry's path. Empty for nothing.
    pub command: Vec<String>,
    /// Whether pods wait with Ready for their address, where routing is on.
    pub readiness_gate: bool,
    /// What becomes of a session that an audit finds unhardened.
    pub slipped_through: SlippedThrough,
}

/// What becomes of a session that an audit finds unhardened. It is never published, and its owner is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlippedThrough {
    /// It goes on.
    #[default]
    Keep,
    /// It is deleted.
    Delete,
}

/// Who may use a profile. Empty lists ask for nothing; a user has to be in one of `users` and `groups`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    /// Namespaces, `*` standing for any text.
    pub namespaces: Vec<String>,
    /// User names, as the API server authenticates them.
    pub users: Vec<String>,
    /// Groups.
    pub groups: Vec<String>,
}

impl Allow {
    /// Whether pods of that namespace may use the profile, as far as the namespace decides.
    #[must_use]
    pub fn admits_namespace(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|pattern| matches(pattern, namespace))
    }
}

/// Which images may run, and how they are pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Patterns of references in full (`docker.io/library/python:3.12`). `*` stands for text without `/`, `:` and `@`,
    /// `**` for any text; a pattern without tag and digest means all of them. Empty allows none.
    pub allowed: Vec<String>,
    /// Whether an image has to be named by its digest.
    pub digest_only: bool,
    /// Whether images are always pulled, so that who has no right to one cannot use a node's copy.
    pub always_pull: bool,
}

/// Where pods may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduling {
    /// Runtime classes that may be used. The first is what a pod gets that names none, if `inject_runtime_class`.
    pub runtime_classes: Vec<RuntimeClass>,
    /// Whether a pod that names no runtime class gets the first.
    pub inject_runtime_class: bool,
    /// Schedulers that a pod may name, besides `default-scheduler`.
    pub scheduler_names: Vec<String>,
    /// Put into every pod.
    pub node_selector: BTreeMap<String, String>,
    /// Labels of nodes that a pod may choose by, in a node selector or node affinity.
    pub node_labels: Vec<String>,
    /// Put into every pod.
    pub tolerations: Vec<Toleration>,
    /// What a pod may bring besides.
    pub allowed_tolerations: Vec<Toleration>,
    /// Put into every pod, beside its own.
    pub image_pull_secrets: Vec<String>,
    /// The most that a pod's resolved priority may be.
    pub max_priority: i64,
}

/// A runtime class, and what its `scheduling` puts into pods, which the API server does before a webhook sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeClass {
    /// Its name.
    pub name: String,
    /// Its node selector.
    pub node_selector: BTreeMap<String, String>,
    /// Its tolerations.
    pub tolerations: Vec<Toleration>,
}

/// A toleration, as in a pod. As a pattern, a missing key, value or effect is what it is in a pod: any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Toleration {
    /// The taint's key; without one, every taint.
    pub key: Option<String>,
    /// `Exists` (true) or `Equal` (false).
    pub exists: bool,
    /// The taint's value, for `Equal`.
    pub value: Option<String>,
    /// The taint's effect; without one, every effect.
    pub effect: Option<String>,
}

/// What to do about the node's user namespace (Kubernetes: User Namespaces).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostUsers {
    /// Nothing: not every node can give a pod its own.
    Leave,
    /// `hostUsers: false` in every pod.
    Never,
}

/// What to do about groups that an image's `/etc/group` gives the user (Kubernetes: supplementalGroupsPolicy).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupplementalGroups {
    /// Nothing: a node whose runtime does not know the field refuses pods that ask for it.
    Leave,
    /// `supplementalGroupsPolicy: Strict` in every pod.
    Strict,
}

/// Ceilings and defaults of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Limits: the most a container may ask for, and what it gets if it asks for nothing.
    pub limits: Ceilings,
    /// Requests of a container that names none.
    pub requests: Requests,
    /// Other resource names that a pod may ask for, such as `example.com/gpu`.
    pub extended: Vec<String>,
    /// Whether a pod may use `spec.resourceClaims`.
    pub claims: bool,
}

impl Resources {
    /// Each resource that is always limited, with its ceiling and the request of a container that names none.
    pub(crate) fn limited(&self) -> [(&'static str, Quantity, DefaultRequest); 3] {
        let (limits, requests) = (self.limits, self.requests);
        [
            ("cpu", limits.cpu, requests.cpu),
            ("memory", limits.memory, requests.memory),
            ("ephemeral-storage", limits.ephemeral_storage, requests.ephemeral_storage),
        ]
    }
}

/// One amount for each resource that is always limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceilings {
    /// cores
    pub cpu: Quantity,
    /// bytes
    pub memory: Quantity,
    /// bytes
    pub ephemeral_storage: Quantity,
}

/// Requests of a container that names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requests {
    /// cores
    pub cpu: DefaultRequest,
    /// bytes
    pub memory: DefaultRequest,
    /// bytes
    pub ephemeral_storage: DefaultRequest,
}

/// A request that is put where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultRequest {
    /// As much as the container's limit.
    Limit,
    /// This much, or the container's limit if that is less.
    Amount(Quantity),
}

/// What all containers of a pod may be together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodCeilings {
    /// Containers that run at the same time: the pod's own and its native sidecars.
    pub containers: u32,
    /// The pod's limits, as multiples of one container's ceiling. Never less than `containers`, so that containers
    /// at their ceilings fit.
    pub sum: u32,
}

/// How long a pod may live and take to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Most `activeDeadlineSeconds`, and what a pod without gets.
    pub deadline_seconds: i64,
    /// Most `terminationGracePeriodSeconds`.
    pub grace_seconds: i64,
}

/// Numbers that a pod runs as if it names none; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// `runAsUser`
    pub user: i64,
    /// `runAsGroup`
    pub group: i64,
    /// `fsGroup`
    pub fs_group: i64,
}

/// A writable directory, kept in a sized `emptyDir`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// The volume is `cofferdam-<name>`.
    pub name: String,
    /// Where it is mounted.
    pub path: String,
    /// `sizeLimit` of the volume.
    pub size: Quantity,
    /// Environment variables, and the place below the path that each is set to; empty for the path itself. In order
    /// of their names.
    pub env: Vec<(String, String)>,
    /// Whether each container has a directory of its own in it, by subPath, or all share one.
    pub per_container: bool,
}

/// What to do where a pod says nothing about AppArmor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppArmor {
    /// Nothing: a kubelet without AppArmor refuses a pod that asks for it.
    Leave,
    /// Ask for `RuntimeDefault`.
    Inject,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            allow: Allow::default(),
            images: Images { allowed: vec!["**".to_owned()], digest_only: false, always_pull: false },
            scheduling: Scheduling::default(),
            resources: Resources::default(),
            pod: PodCeilings { containers: 4, sum: 4 },
            lifetime: Lifetime { deadline_seconds: 3600, grace_seconds: 30 },
            run_as: RunAs { user: 1000, group: 1000, fs_group: 1000 },
            volume_types: RESTRICTED_VOLUME_TYPES.map(str::to_owned).to_vec(),
            scratch: default_scratch(),
            seccomp_localhost_profiles: Vec::new(),
            app_armor: AppArmor::Leave,
            sysctls: Vec::new(),
            token_audiences: Vec::new(),
            host_users: HostUsers::Leave,
            supplemental_groups: SupplementalGroups::Leave,
            host_aliases: true,
            command: Vec::new(),
            readiness_gate: true,
            slipped_through: SlippedThrough::Keep,
        }
    }
}

/// Caches only: a variable that also names settings or programs, such as `CARGO_HOME`, is the image's.
fn default_scratch() -> Vec<Scratch> {
    let scratch = |name: &str, path: &str, per_container: bool, env: &[(&str, &str)]| Scratch {
        name: name.to_owned(),
        path: path.to_owned(),
        size: Quantity::constant("256Mi"),
        env: env.iter().map(|(variable, place)| ((*variable).to_owned(), (*place).to_owned())).collect(),
        per_container,
    };
    vec![
        scratch("tmp", "/tmp", true, &[("TMPDIR", "")]),
        scratch(
            "home",
            "/home/session",
            false,
            &[
                ("CARGO_HOME", ".cargo"),
                ("GOPATH", "go"),
                ("HOME", ""),
                ("XDG_CACHE_HOME", ".cache"),
                ("npm_config_cache", ".npm"),
            ],
        ),
    ]
}

impl Default for Scheduling {
    fn default() -> Self {
        Self {
            runtime_classes: Vec::new(),
            inject_runtime_class: false,
            scheduler_names: Vec::new(),
            node_selector: BTreeMap::new(),
            node_labels: vec!["kubernetes.io/arch".to_owned(), "kubernetes.io/os".to_owned()],
            tolerations: Vec::new(),
            allowed_tolerations: Vec::new(),
            image_pull_secrets: Vec::new(),
            max_priority: 0,
        }
    }
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            limits: Ceilings {
                cpu: Quantity::constant("500m"),
                memory: Quantity::constant("512Mi"),
                ephemeral_storage: Quantity::constant("1Gi"),
            },
            requests: Requests {
                cpu: DefaultRequest::Amount(Quantity::constant("50m")),
                memory: DefaultRequest::Limit,
                ephemeral_storage: DefaultRequest::Amount(Quantity::constant("64Mi")),
            },
            extended: Vec::new(),
            claims: false,
        }
    }
}
