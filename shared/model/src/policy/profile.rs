//! One profile: the ceilings and defaults of a session.

use super::constant;
use crate::quantity::Quantity;

/// What a session of this profile gets and may at most ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
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

/// A writable directory, kept in a sized `emptyDir` that the containers of a pod share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// The volume is `cofferdam-<name>`.
    pub name: String,
    /// Where it is mounted.
    pub path: String,
    /// `sizeLimit` of the volume.
    pub size: Quantity,
    /// Environment variables that are set to the path.
    pub env: Vec<String>,
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
            resources: Resources::default(),
            pod: PodCeilings { containers: 4, sum: 4 },
            lifetime: Lifetime { deadline_seconds: 3600, grace_seconds: 30 },
            run_as: RunAs { user: 1000, group: 1000, fs_group: 1000 },
            volume_types: RESTRICTED_VOLUME_TYPES.map(str::to_owned).to_vec(),
            scratch: vec![
                Scratch { name: "tmp".to_owned(), path: "/tmp".to_owned(), size: constant("256Mi"), env: Vec::new() },
                Scratch {
                    name: "home".to_owned(),
                    path: "/home/session".to_owned(),
                    size: constant("256Mi"),
                    env: vec!["HOME".to_owned()],
                },
            ],
            seccomp_localhost_profiles: Vec::new(),
            app_armor: AppArmor::Leave,
            sysctls: Vec::new(),
            token_audiences: Vec::new(),
        }
    }
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            limits: Ceilings { cpu: constant("500m"), memory: constant("512Mi"), ephemeral_storage: constant("1Gi") },
            requests: Requests {
                cpu: DefaultRequest::Amount(constant("50m")),
                memory: DefaultRequest::Limit,
                ephemeral_storage: DefaultRequest::Amount(constant("64Mi")),
            },
            extended: Vec::new(),
            claims: false,
        }
    }
}

/// Volume types that PodSecurity `restricted` admits (Kubernetes 1.34 to 1.37).
pub(super) const RESTRICTED_VOLUME_TYPES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
