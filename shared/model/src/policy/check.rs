//! What a policy may say: each value alone, and beside the others.

use std::collections::BTreeSet;

use super::{
    AppArmor, Ceilings, DefaultRequest, LOG_MARGIN, Lifetime, PodCeilings, PolicyError, Profile, Requests, Resources,
    RunAs, Scratch, constant,
    file::{
        Amount, AppArmorFile, EachRequest, Given, LifetimeFile, PodFile, ProfileFile, RequestFile, RequestsFile,
        ResourcesFile, RunAsFile, ScratchFile,
    },
    kubernetes::VOLUME_TYPES,
    suggest::nearest,
};
use crate::{keys, quantity::Quantity};

/// Kubernetes keeps seconds and ids in 32 bits.
const MOST: i64 = i32::MAX as i64;

/// Longest DNS label, and so the longest volume name or label value.
const LABEL: usize = 63;

/// Turns what a file says into checked profiles.
pub(super) struct Checker<'f> {
    file: &'f str,
}

type Checked<T> = Result<T, PolicyError>;

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
        let resources_file = file.resources.unwrap_or_default();
        let storage_line =
            resources_file.limits.as_ref().and_then(|limits| limits.ephemeral_storage).map_or(0, |l| l.line);
        let resources = self.resources(resources_file, &defaults.resources)?;
        let types_line = file.volume_types.as_ref().map_or(0, |types| types.line);
        let volume_types = match file.volume_types {
            Some(types) => self.volume_types(types.value)?,
            None => defaults.volume_types,
        };
        let scratch = match file.scratch {
            Some(scratch) => self.scratch(scratch)?,
            None => defaults.scratch,
        };
        self.scratch_fits(&scratch, Given { value: resources.limits.ephemeral_storage, line: storage_line })?;
        if !scratch.is_empty() && !volume_types.iter().any(|kind| kind == "emptyDir") {
            let problem = "lacks `emptyDir`, of which scratch directories are made; add it, or set `scratch: []`";
            return Err(self.invalid(types_line, "volumeTypes", problem));
        }
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
            ..defaults
        })
    }

    fn resources(&self, file: ResourcesFile, defaults: &Resources) -> Checked<Resources> {
        let limits_file = file.limits.unwrap_or_default();
        let cpu = self.ceiling("cpu", limits_file.cpu, defaults.limits.cpu)?;
        let memory = self.ceiling("memory", limits_file.memory, defaults.limits.memory)?;
        let storage =
            self.ceiling("ephemeral-storage", limits_file.ephemeral_storage, defaults.limits.ephemeral_storage)?;
        let requests = match file.requests {
            Some(RequestsFile::Limits) => Requests {
                cpu: DefaultRequest::Limit,
                memory: DefaultRequest::Limit,
                ephemeral_storage: DefaultRequest::Limit,
            },
            Some(RequestsFile::Each(each)) => self.requests(&each, defaults.requests, cpu, memory, storage)?,
            None => self.requests(&EachRequest::default(), defaults.requests, cpu, memory, storage)?,
        };
        for name in file.extended.iter().flatten() {
            if !name.value.contains('/') && !name.value.starts_with("hugepages-") {
                let problem = "holds a name that is no extended resource; write one such as example.com/gpu";
                return Err(self.invalid(name.line, "extended", problem));
            }
        }
        Ok(Resources {
            limits: Ceilings { cpu: cpu.value, memory: memory.value, ephemeral_storage: storage.value },
            requests,
            extended: values(file.extended.unwrap_or_default()),
            claims: file.claims.unwrap_or(defaults.claims),
        })
    }

    fn ceiling(&self, key: &str, file: Option<Given<Amount>>, default: Quantity) -> Checked<Given<Quantity>> {
        let given = given(file, Amount(default));
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
            cpu: self.request("cpu", file.cpu, defaults.cpu, cpu)?,
            memory: self.request("memory", file.memory, defaults.memory, memory)?,
            ephemeral_storage: self.request(
                "ephemeral-storage",
                file.ephemeral_storage,
                defaults.ephemeral_storage,
                storage,
            )?,
        })
    }

    fn request(
        &self,
        key: &str,
        file: Option<Given<RequestFile>>,
        default: DefaultRequest,
        ceiling: Given<Quantity>,
    ) -> Checked<DefaultRequest> {
        let Some(given) = file else {
            // A default above a small ceiling is no mistake of the file's: it means as much as the limit.
            return Ok(match default {
                DefaultRequest::Amount(amount) if amount > ceiling.value => DefaultRequest::Limit,
                fitting => fitting,
            });
        };
        match given.value {
            RequestFile::Limit => Ok(DefaultRequest::Limit),
            RequestFile::Amount(amount) if amount <= Quantity::ZERO => {
                Err(self.invalid(given.line, key, "must be more than 0: a request of nothing counts as missing"))
            }
            RequestFile::Amount(amount) if amount > ceiling.value => {
                let problem = format!("requests {amount}, which is more than its limit of {}", ceiling.value);
                Err(self.invalid(given.line, key, problem))
            }
            RequestFile::Amount(amount) => Ok(DefaultRequest::Amount(amount)),
        }
    }

    fn pod(&self, file: &PodFile, defaults: PodCeilings) -> Checked<PodCeilings> {
        let containers = given(file.containers, defaults.containers);
        let sum = given(file.sum, defaults.sum);
        if containers.value == 0 {
            return Err(self.invalid(containers.line, "containers", "must be at least 1"));
        }
        if containers.value > sum.value {
            let problem = format!(
                "does not fit: {} containers at their ceilings are more than a `sum` of {}; make `sum` at least \
                 `containers`",
                containers.value, sum.value
            );
            let (line, key) = if containers.line > 0 { (containers.line, "containers") } else { (sum.line, "sum") };
            return Err(self.invalid(line, key, problem));
        }
        Ok(PodCeilings { containers: containers.value, sum: sum.value })
    }

    fn lifetime(&self, file: &LifetimeFile, defaults: Lifetime) -> Checked<Lifetime> {
        Ok(Lifetime {
            deadline_seconds: self.positive("deadlineSeconds", file.deadline_seconds, defaults.deadline_seconds)?,
            grace_seconds: self.positive("graceSeconds", file.grace_seconds, defaults.grace_seconds)?,
        })
    }

    fn run_as(&self, file: &RunAsFile, defaults: RunAs) -> Checked<RunAs> {
        Ok(RunAs {
            user: self.positive("user", file.user, defaults.user)?,
            group: self.positive("group", file.group, defaults.group)?,
            fs_group: self.positive("fsGroup", file.fs_group, defaults.fs_group)?,
        })
    }

    fn positive(&self, key: &str, file: Option<Given<i64>>, default: i64) -> Checked<i64> {
        let given = given(file, default);
        if (1..=MOST).contains(&given.value) {
            return Ok(given.value);
        }
        Err(self.invalid(given.line, key, format!("must be a whole number from 1 to {MOST}")))
    }

    fn volume_types(&self, types: Vec<Given<String>>) -> Checked<Vec<String>> {
        for kind in &types {
            if !VOLUME_TYPES.contains(&kind.value.as_str()) {
                let hint = nearest(&kind.value, VOLUME_TYPES).map_or_else(
                    || "see `kubectl explain pod.spec.volumes`".to_owned(),
                    |k| format!("did you mean `{k}`?"),
                );
                let problem = format!("holds `{}`, which is no volume type; {hint}", kind.value);
                return Err(self.invalid(kind.line, "volumeTypes", problem));
            }
        }
        Ok(values(types))
    }

    fn scratch(&self, file: Vec<ScratchFile>) -> Checked<Vec<Scratch>> {
        let mut names = BTreeSet::new();
        let mut variables = BTreeSet::new();
        let mut scratch: Vec<Scratch> = Vec::new();
        for file in file {
            if !is_dns_label(&file.name.value, LABEL - keys::RESERVED_NAME.len())
                || !names.insert(file.name.value.clone())
            {
                let problem = "must be a short DNS label of its own: it names the volume";
                return Err(self.invalid(file.name.line, "name", problem));
            }
            let path = &file.path.value;
            if !is_clean_path(path)
                || scratch.iter().any(|other| is_within(&other.path, path) || is_within(path, &other.path))
            {
                let problem =
                    "must be an absolute path without `:`, `.` or `..`, and neither in another's nor around it";
                return Err(self.invalid(file.path.line, "path", problem));
            }
            for variable in &file.env {
                if !is_variable(&variable.value) || !variables.insert(variable.value.clone()) {
                    let problem = "must name an environment variable that no other directory sets";
                    return Err(self.invalid(variable.line, "env", problem));
                }
            }
            let size = self.ceiling("size", Some(file.size), Quantity::ZERO)?.value;
            let env = values(file.env).into_iter().map(|variable| (variable, String::new())).collect();
            scratch.push(Scratch { name: file.name.value, path: file.path.value, size, env, per_container: false });
        }
        Ok(scratch)
    }

    /// A kubelet evicts a pod that uses more than its limits, so what a session is given must fit them.
    fn scratch_fits(&self, scratch: &[Scratch], ceiling: Given<Quantity>) -> Checked<()> {
        let needed = scratch.iter().fold(constant(LOG_MARGIN), |sum, scratch| sum.plus(scratch.size));
        if needed <= ceiling.value {
            return Ok(());
        }
        let problem = format!(
            "is {}, but the scratch directories and {LOG_MARGIN} for logs take {needed}, and a session that used them \
             would be evicted; raise it, or make the directories' `size` less",
            ceiling.value
        );
        Err(self.invalid(ceiling.line, "ephemeral-storage", problem))
    }

    fn seccomp_profiles(&self, profiles: Vec<Given<String>>) -> Checked<Vec<String>> {
        for profile in &profiles {
            if profile.value.is_empty() || profile.value.starts_with('/') || profile.value.split('/').any(|p| p == "..")
            {
                let problem = "holds a path that does not lead down from the kubelet's seccomp folder";
                return Err(self.invalid(profile.line, "localhostProfiles", problem));
            }
        }
        Ok(values(profiles))
    }

    fn sysctls(&self, names: Vec<Given<String>>) -> Checked<Vec<String>> {
        for name in &names {
            let has_dots = name.value.find(['.', '/']).is_some_and(|first| name.value[first..].starts_with('.'));
            if !has_dots || name.value.contains('*') {
                return Err(self.invalid(name.line, "sysctls", "must name each sysctl in full, spelled with dots"));
            }
        }
        Ok(values(names))
    }

    fn token_audiences(&self, audiences: Vec<Given<String>>) -> Checked<Vec<String>> {
        for audience in &audiences {
            if audience.value.is_empty() || audience.value.starts_with("https://kubernetes.default.svc") {
                let problem = "holds the API server's own audience; a session never gets a token for it";
                return Err(self.invalid(audience.line, "tokenAudiences", problem));
            }
        }
        Ok(values(audiences))
    }
}

fn given<T>(file: Option<Given<T>>, default: T) -> Given<T> {
    file.unwrap_or(Given { value: default, line: 0 })
}

fn values(given: Vec<Given<String>>) -> Vec<String> {
    given.into_iter().map(|given| given.value).collect()
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
