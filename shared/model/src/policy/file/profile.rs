//! A profile as it is written. The comments are what the JSON Schema says about each key.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    scheduling::SchedulingFile,
    value::{Amount, Given, RequestFile, RequestsFile},
};

/// What a session of this profile gets, and what it may at most ask for. A key that is left out has the value that it
/// has in the shipped profile `default`.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Profile")]
pub(in crate::policy) struct ProfileFile {
    /// Who may use the profile. Others are refused.
    pub(in crate::policy) allow: Option<AllowFile>,
    /// Which images may run, and how they are pulled.
    pub(in crate::policy) images: Option<ImagesFile>,
    /// Where pods may run.
    pub(in crate::policy) scheduling: Option<SchedulingFile>,
    /// cpu, memory and ephemeral storage of each container.
    pub(in crate::policy) resources: Option<ResourcesFile>,
    /// What all containers of a pod may be together. More is refused.
    pub(in crate::policy) pod: Option<PodFile>,
    /// How long a pod may live, and take to end.
    pub(in crate::policy) lifetime: Option<LifetimeFile>,
    /// Numbers that a pod runs as if it names none. 0 is root, and never allowed.
    pub(in crate::policy) run_as: Option<RunAsFile>,
    /// Volume types that a pod may use, as members of `spec.volumes[*]`. A volume of any other type is refused.
    pub(in crate::policy) volume_types: Option<Given<Vec<Given<String>>>>,
    /// Directories that stay writable in containers that are made read-only.
    pub(in crate::policy) scratch: Option<Vec<ScratchFile>>,
    /// Seccomp is RuntimeDefault; what may stand in for it.
    pub(in crate::policy) seccomp: Option<SeccompFile>,
    /// Whether AppArmor is asked for where a pod does not.
    pub(in crate::policy) app_armor: Option<AppArmorFile>,
    /// Sysctls that a pod may set besides those that Kubernetes calls safe; in full, spelled with dots.
    pub(in crate::policy) sysctls: Option<Vec<Given<String>>>,
    /// Audiences for which a pod may project a token of its service account. The API server's own is never allowed.
    pub(in crate::policy) token_audiences: Option<Vec<Given<String>>>,
    /// Whether a pod may share the node's user namespace.
    pub(in crate::policy) host_users: Option<HostUsersFile>,
    /// Whether groups that the image's `/etc/group` gives the user reach the process.
    pub(in crate::policy) supplemental_groups_policy: Option<SupplementalGroupsFile>,
    /// Whether a pod may use `spec.hostAliases`.
    pub(in crate::policy) host_aliases: Option<HostAliasesFile>,
    /// What the first container runs if the pod names an entry, and the container neither command nor arguments. One
    /// item has to hold `$(ENTRY)`, which stands for the entry's path. Empty for nothing.
    pub(in crate::policy) command: Option<Given<Vec<Given<String>>>>,
    /// Whether pods wait with Ready until their address works, where routing is on.
    pub(in crate::policy) readiness_gate: Option<bool>,
    /// What becomes of a session that is found unhardened while it lives.
    pub(in crate::policy) slipped_through: Option<SlippedThroughFile>,
}

/// Who may use a profile. An empty list asks for nothing; users have to be in one of `users` and `groups`.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Allow")]
pub(in crate::policy) struct AllowFile {
    /// Namespaces; `*` stands for any text.
    pub(in crate::policy) namespaces: Option<Vec<Given<String>>>,
    /// User names, each in full, as the API server authenticates them.
    pub(in crate::policy) users: Option<Vec<Given<String>>>,
    /// Groups, each in full.
    pub(in crate::policy) groups: Option<Vec<Given<String>>>,
}

/// Which images may run, and how they are pulled.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Images")]
pub(in crate::policy) struct ImagesFile {
    /// Patterns of references in full, such as docker.io/library/python. `*` stands for text without `/`, `:` and `@`,
    /// `**` for any text; a pattern without tag and digest means all of them. An empty list allows none.
    pub(in crate::policy) allowed: Option<Vec<Given<String>>>,
    /// Whether an image has to be named by its digest.
    pub(in crate::policy) digest_only: Option<bool>,
    /// How images are pulled.
    pub(in crate::policy) pull_policy: Option<PullPolicyFile>,
}

/// How images are pulled.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "PullPolicy")]
pub(in crate::policy) enum PullPolicyFile {
    /// As the pod says.
    #[serde(rename = "leave")]
    Leave,
    /// `imagePullPolicy: Always` in every container, so that who has no right to an image cannot use a node's copy.
    Always,
}

/// cpu, memory and ephemeral storage of each container.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Resources")]
pub(in crate::policy) struct ResourcesFile {
    /// The most a container may ask for, and what it gets if it asks for nothing. A higher limit is lowered to this,
    /// with a warning.
    pub(in crate::policy) limits: Option<LimitsFile>,
    /// What a container requests if it says nothing.
    pub(in crate::policy) requests: Option<RequestsFile>,
    /// Other resource names that a pod may ask for, such as example.com/gpu. Any other name is refused.
    pub(in crate::policy) extended: Option<Vec<Given<String>>>,
    /// Whether a pod may use `spec.resourceClaims`.
    pub(in crate::policy) claims: Option<bool>,
}

/// One quantity for each resource that is always limited.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(rename = "Limits")]
pub(in crate::policy) struct LimitsFile {
    /// Cores.
    pub(in crate::policy) cpu: Option<Given<Amount>>,
    /// Bytes.
    pub(in crate::policy) memory: Option<Given<Amount>>,
    /// Bytes. Scratch directories, a body and 64Mi for logs have to fit.
    pub(in crate::policy) ephemeral_storage: Option<Given<Amount>>,
}

/// A request each, none above its limit.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(in crate::policy) struct EachRequest {
    /// Cores.
    pub(in crate::policy) cpu: Option<Given<RequestFile>>,
    /// Bytes.
    pub(in crate::policy) memory: Option<Given<RequestFile>>,
    /// Bytes.
    pub(in crate::policy) ephemeral_storage: Option<Given<RequestFile>>,
}

/// What all containers of a pod may be together.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Pod")]
pub(in crate::policy) struct PodFile {
    /// Containers that run at the same time: the pod's own and its native sidecars.
    #[schemars(range(min = 1))]
    pub(in crate::policy) containers: Option<Given<u32>>,
    /// Limits of the whole pod, as multiples of one container's; at least `containers`.
    #[schemars(range(min = 1))]
    pub(in crate::policy) sum: Option<Given<u32>>,
}

/// How long a pod may live, and take to end.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Lifetime")]
pub(in crate::policy) struct LifetimeFile {
    /// The most `activeDeadlineSeconds` may be, and what a pod without gets.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub(in crate::policy) deadline_seconds: Option<Given<i64>>,
    /// The most `terminationGracePeriodSeconds` may be: a kubelet waits that long after the deadline.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub(in crate::policy) grace_seconds: Option<Given<i64>>,
}

/// Numbers that a pod runs as if it names none.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "RunAs")]
pub(in crate::policy) struct RunAsFile {
    /// `runAsUser`
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub(in crate::policy) user: Option<Given<i64>>,
    /// `runAsGroup`
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub(in crate::policy) group: Option<Given<i64>>,
    /// `fsGroup`
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub(in crate::policy) fs_group: Option<Given<i64>>,
}

/// A directory that stays writable: an emptyDir, mounted in every container that is made read-only and does not mount
/// the path itself.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Scratch")]
pub(in crate::policy) struct ScratchFile {
    /// The volume is `cofferdam-<name>`.
    pub(in crate::policy) name: Given<String>,
    /// Where it is mounted.
    pub(in crate::policy) path: Given<String>,
    /// Its `sizeLimit`.
    pub(in crate::policy) size: Given<Amount>,
    /// Environment variables that point there unless the container sets them, and the place below the path that each
    /// names; an empty text for the path itself.
    pub(in crate::policy) env: Option<BTreeMap<Given<String>, Given<String>>>,
    /// Whether all containers see the same directory. Otherwise each has one of its own in the volume, as it would have
    /// with a writable root.
    pub(in crate::policy) shared: Option<bool>,
}

/// What may stand in for seccomp's RuntimeDefault.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Seccomp")]
pub(in crate::policy) struct SeccompFile {
    /// Paths of profiles, below the kubelet's seccomp folder.
    pub(in crate::policy) localhost_profiles: Option<Vec<Given<String>>>,
}

/// Whether AppArmor is asked for where a pod does not.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AppArmor")]
pub(in crate::policy) enum AppArmorFile {
    /// It is not: a kubelet without AppArmor refuses a pod that asks for it.
    Leave,
    /// RuntimeDefault is asked for.
    Inject,
}

/// Whether a pod may share the node's user namespace.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HostUsers")]
pub(in crate::policy) enum HostUsersFile {
    /// As the pod says: not every node can give a pod a user namespace of its own.
    Leave,
    /// `hostUsers: false` in every pod.
    Never,
}

/// Whether groups that the image's `/etc/group` gives the user reach the process.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "SupplementalGroupsPolicy")]
pub(in crate::policy) enum SupplementalGroupsFile {
    /// As the pod says: a node whose runtime does not know the field refuses pods that ask for it.
    #[serde(rename = "leave")]
    Leave,
    /// `supplementalGroupsPolicy: Strict` in every pod: they do not.
    Strict,
}

/// Whether a pod may use `spec.hostAliases`.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "HostAliases")]
pub(in crate::policy) enum HostAliasesFile {
    /// It may.
    Allow,
    /// A pod that uses it is refused.
    Refuse,
}

/// What becomes of a session that is found unhardened while it lives. It is reported, and has no address.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SlippedThrough")]
pub(in crate::policy) enum SlippedThroughFile {
    /// It goes on.
    Keep,
    /// It is deleted.
    Delete,
}
