//! What a policy may say: each value alone, and beside the others.

use std::collections::BTreeSet;

use serde_saphyr::Spanned;

use super::{
    AppArmor, Ceilings, LOG_MARGIN, Lifetime, PodCeilings, PolicyError, Profile, Request, Requests, Resources, RunAs,
    Scratch, constant,
    file::{
        Amount, AppArmorFile, EachRequest, LifetimeFile, Maybe, PodFile, ProfileFile, RequestFile, RequestsFile,
        ResourcesFile, RunAsFile, ScratchFile, line,
    },
    suggest::nearest,
};
use crate::{keys, quantity::Quantity};

/// Kubernetes keeps seconds and ids in 32 bits.
const MOST: i64 = i32::MAX as i64;

/// Longest DNS label, and so the longest volume name or label value.
const LABEL: usize = 63;

/// Every volume type there is, to catch slips of the pen (Kubernetes 1.37, `VolumeSource`).
const VOLUME_TYPES: [&str; 30] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
];

/// Turns what a file says into checked profiles.
pub(super) struct Checker<'f> {
    file: &'f str,
}

type Checked<T> = Result<T, PolicyError>;

/// A value, and the line to blame for it; 0 where it is the default.
#[derive(Clone, Copy)]
struct Given<T> {
    value: T,
    line: u64,
}

impl<'f> Checker<'f> {
    pub(super) fn new(file: &'f str) -> Self {
        Self { file }
    }

    pub(super) fn invalid(&self, line: u64, key: &str, problem: impl Into<String>) -> PolicyError {
        PolicyError::Invalid { file: self.file.to_owned(), line, key: key.to_owned(), problem: problem.into() }
    }

    /// Profiles are chosen by a pod label, so their names are label values.
    pub(super) fn profile_name(&self, name: &str, line: u64) -> Checked<()> {
        if is_dns_label(name, LABEL) {
            return Ok(());
        }
        Err(self.invalid(line, name, "cannot name a profile; use at most 63 of a-z, 0-9 and `-`"))
    }

    pub(super) fn profile(&self, file: ProfileFile) -> Checked<Profile> {
        let defaults = Profile::default();
        let resources = self.resources(file.resources.unwrap_or_default(), &defaults.resources)?;
        let volume_types = match file.volume_types {
            Some(types) => self.volume_types(types)?,
            None => defaults.volume_types,
        };
        let scratch = match file.scratch {
            Some(scratch) => self.scratch(scratch, &volume_types, resources.limits.ephemeral_storage)?,
            None => defaults.scratch,
        };
        Ok(Profile {
            pod: self.pod(&file.pod.unwrap_or_default(), defaults.pod)?,
            lifetime: self.lifetime(&file.lifetime.unwrap_or_default(), defaults.lifetime)?,
            run_as: self.run_as(&file.run_as.unwrap_or_default(), defaults.run_as)?,
            seccomp_localhost_profiles: self
                .seccomp_profiles(file.seccomp.unwrap_or_default().localhost_profiles.unwrap_or_default())?,
            app_armor: match file.app_armor {
                Some(AppArmorFile::Inject) => AppArmor::Inject,
                Some(AppArmorFile::Leave) | None => AppArmor::Leave,
            },
            sysctls: self.sysctls(file.sysctls.unwrap_or_default())?,
            token_audiences: self.token_audiences(file.token_audiences.unwrap_or_default())?,
            resources,
            volume_types,
            scratch,
        })
    }

    fn resources(&self, file: ResourcesFile, defaults: &Resources) -> Checked<Resources> {
        let limits_file = file.limits.unwrap_or_default();
        let cpu = self.ceiling("cpu", &limits_file.cpu, defaults.limits.cpu)?;
        let memory = self.ceiling("memory", &limits_file.memory, defaults.limits.memory)?;
        let storage =
            self.ceiling("ephemeral-storage", &limits_file.ephemeral_storage, defaults.limits.ephemeral_storage)?;
        let requests = match file.requests {
            Some(RequestsFile::Limits) => {
                Requests { cpu: Request::Limit, memory: Request::Limit, ephemeral_storage: Request::Limit }
            }
            Some(RequestsFile::Each(each)) => self.requests(&each, defaults.requests, cpu, memory, storage)?,
            None => self.requests(&EachRequest::default(), defaults.requests, cpu, memory, storage)?,
        };
        for name in file.extended.iter().flatten() {
            if !name.value.contains('/') && !name.value.starts_with("hugepages-") {
                let problem = "holds a name that is no extended resource; write one such as example.com/gpu";
                return Err(self.invalid(line(name), "extended", problem));
            }
        }
        Ok(Resources {
            limits: Ceilings { cpu: cpu.value, memory: memory.value, ephemeral_storage: storage.value },
            requests,
            extended: values(file.extended.unwrap_or_default()),
            claims: file.claims.unwrap_or(defaults.claims),
        })
    }

    fn ceiling(&self, key: &str, file: &Maybe<Amount>, default: Quantity) -> Checked<Given<Quantity>> {
        let given = Given::of(file, Amount(default));
        let ceiling = Given { value: given.value.0, line: given.line };
        if ceiling.value <= Quantity::ZERO {
            return Err(self.invalid(ceiling.line, key, "must be more than 0: nothing runs within it"));
        }
        Ok(ceiling)
    }

    fn requests(
        &self,
        file: &EachRequest,
        defaults: Requests,
        cpu: Given<Quantity>,
        memory: Given<Quantity>,
        storage: Given<Quantity>,
    ) -> Checked<Requests> {
        Ok(Requests {
            cpu: self.request("cpu", &file.cpu, defaults.cpu, cpu)?,
            memory: self.request("memory", &file.memory, defaults.memory, memory)?,
            ephemeral_storage: self.request(
                "ephemeral-storage",
                &file.ephemeral_storage,
                defaults.ephemeral_storage,
                storage,
            )?,
        })
    }

    fn request(
        &self,
        key: &str,
        file: &Maybe<RequestFile>,
        default: Request,
        ceiling: Given<Quantity>,
    ) -> Checked<Request> {
        let Some(given) = file else {
            // A default above a small ceiling is no mistake of the file's: it means as much as the limit.
            return Ok(match default {
                Request::Amount(amount) if amount > ceiling.value => Request::Limit,
                fitting => fitting,
            });
        };
        match given.value {
            RequestFile::Limit => Ok(Request::Limit),
            RequestFile::Amount(amount) if amount.is_negative() => {
                Err(self.invalid(line(given), key, "must not be negative"))
            }
            RequestFile::Amount(amount) if amount > ceiling.value => {
                let problem = format!("requests {amount}, which is more than its limit of {}", ceiling.value);
                Err(self.invalid(line(given), key, problem))
            }
            RequestFile::Amount(amount) => Ok(Request::Amount(amount)),
        }
    }

    fn pod(&self, file: &PodFile, defaults: PodCeilings) -> Checked<PodCeilings> {
        let containers = Given::of(&file.containers, defaults.containers);
        let sum = Given::of(&file.sum, defaults.sum);
        if containers.value == 0 {
            return Err(self.invalid(containers.line, "containers", "must be at least 1"));
        }
        if containers.value > sum.value {
            let problem = format!(
                "lets {} containers run together, but `sum` holds {} of them at their ceilings; make `sum` at least \
                 `containers`",
                containers.value, sum.value
            );
            return Err(self.invalid(containers.line.max(sum.line), "containers", problem));
        }
        Ok(PodCeilings { containers: containers.value, sum: sum.value })
    }

    fn lifetime(&self, file: &LifetimeFile, defaults: Lifetime) -> Checked<Lifetime> {
        Ok(Lifetime {
            deadline_seconds: self.positive("deadlineSeconds", &file.deadline_seconds, defaults.deadline_seconds)?,
            grace_seconds: self.positive("graceSeconds", &file.grace_seconds, defaults.grace_seconds)?,
        })
    }

    fn run_as(&self, file: &RunAsFile, defaults: RunAs) -> Checked<RunAs> {
        Ok(RunAs {
            user: self.positive("user", &file.user, defaults.user)?,
            group: self.positive("group", &file.group, defaults.group)?,
            fs_group: self.positive("fsGroup", &file.fs_group, defaults.fs_group)?,
        })
    }

    fn positive(&self, key: &str, file: &Maybe<i64>, default: i64) -> Checked<i64> {
        let given = Given::of(file, default);
        if (1..=MOST).contains(&given.value) {
            return Ok(given.value);
        }
        Err(self.invalid(given.line, key, format!("must be a whole number from 1 to {MOST}")))
    }

    fn volume_types(&self, types: Vec<Spanned<String>>) -> Checked<Vec<String>> {
        for kind in &types {
            if !VOLUME_TYPES.contains(&kind.value.as_str()) {
                let hint = nearest(&kind.value, VOLUME_TYPES).map_or_else(
                    || "see `kubectl explain pod.spec.volumes`".to_owned(),
                    |k| format!("did you mean `{k}`?"),
                );
                let problem = format!("holds `{}`, which is no volume type; {hint}", kind.value);
                return Err(self.invalid(line(kind), "volumeTypes", problem));
            }
        }
        Ok(values(types))
    }

    fn scratch(&self, file: Vec<ScratchFile>, volume_types: &[String], ceiling: Quantity) -> Checked<Vec<Scratch>> {
        let mut names = BTreeSet::new();
        let mut variables = BTreeSet::new();
        let mut scratch: Vec<Scratch> = Vec::new();
        let mut together = constant(LOG_MARGIN);
        for file in file {
            let size = self.ceiling("size", &Some(file.size.clone()), Quantity::ZERO)?.value;
            together = together.plus(size);
            if together > ceiling {
                let problem = format!(
                    "is too large: with the other directories and {LOG_MARGIN} for logs it is more than the \
                     ephemeral-storage limit of {ceiling}, so a session that used it would be evicted"
                );
                return Err(self.invalid(line(&file.size), "size", problem));
            }
            if !is_dns_label(&file.name.value, LABEL - keys::RESERVED_NAME.len())
                || !names.insert(file.name.value.clone())
            {
                let problem = "must be a short DNS label of its own: it names the volume";
                return Err(self.invalid(line(&file.name), "name", problem));
            }
            if !is_clean_path(&file.path.value)
                || scratch.iter().any(|other| is_within(&other.path, &file.path.value))
                || scratch.iter().any(|other| is_within(&file.path.value, &other.path))
            {
                let problem =
                    "must be an absolute path without `:`, `.` or `..`, neither within another's nor around it";
                return Err(self.invalid(line(&file.path), "path", problem));
            }
            for variable in &file.env {
                if !is_variable(&variable.value) || !variables.insert(variable.value.clone()) {
                    let problem = "must be the name of an environment variable that no other directory sets";
                    return Err(self.invalid(line(variable), "env", problem));
                }
            }
            if !volume_types.iter().any(|kind| kind == "emptyDir") {
                let problem = "needs `emptyDir` among `volumeTypes`; add it, or set `scratch: []`";
                return Err(self.invalid(line(&file.name), "scratch", problem));
            }
            scratch.push(Scratch { name: file.name.value, path: file.path.value, size, env: values(file.env) });
        }
        Ok(scratch)
    }

    fn seccomp_profiles(&self, profiles: Vec<Spanned<String>>) -> Checked<Vec<String>> {
        for profile in &profiles {
            if profile.value.is_empty() || profile.value.starts_with('/') || profile.value.split('/').any(|p| p == "..")
            {
                let problem = "holds a path that does not lead down from the kubelet's seccomp folder";
                return Err(self.invalid(line(profile), "localhostProfiles", problem));
            }
        }
        Ok(values(profiles))
    }

    fn sysctls(&self, names: Vec<Spanned<String>>) -> Checked<Vec<String>> {
        for name in &names {
            if name.value.is_empty() || name.value.contains('*') {
                return Err(self.invalid(line(name), "sysctls", "must name each sysctl in full"));
            }
        }
        Ok(names.into_iter().map(|name| name.value.replace('/', ".")).collect())
    }

    fn token_audiences(&self, audiences: Vec<Spanned<String>>) -> Checked<Vec<String>> {
        for audience in &audiences {
            if audience.value.is_empty() || audience.value.starts_with("https://kubernetes.default.svc") {
                let problem = "holds the API server's own audience; a session never gets a token for it";
                return Err(self.invalid(line(audience), "tokenAudiences", problem));
            }
        }
        Ok(values(audiences))
    }
}

impl<T: Copy> Given<T> {
    fn of(file: &Maybe<T>, default: T) -> Self {
        match file {
            Some(given) => Self { value: given.value, line: line(given) },
            None => Self { value: default, line: 0 },
        }
    }
}

fn values(spanned: Vec<Spanned<String>>) -> Vec<String> {
    spanned.into_iter().map(|spanned| spanned.value).collect()
}

fn is_dns_label(text: &str, most: usize) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.len() <= most && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_clean_path(path: &str) -> bool {
    path.len() > 1
        && path.starts_with('/')
        && !path.contains(':')
        && path.split('/').skip(1).all(|part| !matches!(part, "" | "." | ".."))
}

fn is_within(outer: &str, path: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
