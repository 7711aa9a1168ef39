//! What a policy may say: each value alone, and beside the others.

use std::{collections::BTreeMap, fmt::Display, ops::RangeInclusive};

use super::{
    AppArmor, Bodies, FINISHED_GRACE_SECONDS, HostUsers, LONGEST_FINISHED_GRACE_SECONDS, Lifetime, Network,
    PolicyError, Profile, Routing, RunAs, SlippedThrough, SupplementalGroups,
    file::{
        PolicyFile,
        profile::{
            AppArmorFile, HostAliasesFile, HostUsersFile, LifetimeFile, ProfileFile, RunAsFile, SlippedThroughFile,
            SupplementalGroupsFile,
        },
        value::Given,
    },
};
use crate::{
    keys,
    names::{LABEL, is_dns_label},
};

mod access;
mod bodies;
mod command;
mod images;
mod network;
mod permitted;
mod probe;
mod resources;
mod routing;
mod scheduling;
mod scratch;

use bodies::GivenBodies;

/// Kubernetes keeps seconds and ids in 32 bits.
const MOST: i64 = i32::MAX as i64;

/// Turns what a file says into a checked policy. Stops at the first thing that is wrong.
pub(super) struct Checker<'f> {
    file: &'f str,
}

/// What a file means.
pub(super) struct Meaning {
    pub(super) profiles: BTreeMap<String, Profile>,
    pub(super) routing: Routing,
    pub(super) network: Network,
    pub(super) finished_grace_seconds: u32,
    pub(super) bodies: Bodies,
    pub(super) trusted: Vec<String>,
}

type Checked<T> = Result<T, PolicyError>;

impl<'f> Checker<'f> {
    /// `file` is what the file is called in messages.
    pub(super) fn new(file: &'f str) -> Self {
        Self { file }
    }

    pub(super) fn policy(&self, file: PolicyFile) -> Checked<Meaning> {
        let routing = self.routing(file.routing.unwrap_or_default())?;
        let network = self.network(file.network.unwrap_or_default())?;
        let finished_grace_seconds = self.within(
            "finishedGraceSeconds",
            file.finished_grace_seconds,
            FINISHED_GRACE_SECONDS,
            0..=LONGEST_FINISHED_GRACE_SECONDS,
        )?;
        let bodies = self.bodies(file.bodies.unwrap_or_default())?;
        let trusted = match file.trusted {
            Some(names) => self.trusted(names)?,
            None => super::trusted_by_default(),
        };
        let mut profiles = BTreeMap::new();
        for (name, profile) in file.profiles.value {
            self.profile_name(&name)?;
            profiles.insert(name.value, self.profile(profile.unwrap_or_default(), &bodies)?);
        }
        if !profiles.contains_key(keys::DEFAULT_PROFILE) {
            let problem = "has no `default`, the profile of a pod that names none; add it, `default: {}` is enough";
            return Err(self.invalid(file.profiles.line, "profiles", problem));
        }
        Ok(Meaning { profiles, routing, network, finished_grace_seconds, bodies: bodies.bodies, trusted })
    }

    fn invalid(&self, line: u64, key: &str, problem: impl Into<String>) -> PolicyError {
        PolicyError::Invalid { file: self.file.to_owned(), line, key: key.to_owned(), problem: problem.into() }
    }

    /// Blames the first of these keys that stands in the file, for what they only together are wrong in.
    fn contradiction(&self, keys: &[(&str, u64)], problem: impl Into<String>) -> PolicyError {
        let first = keys.iter().find(|(_, line)| *line > 0).or(keys.first());
        let (key, line) = first.copied().unwrap_or_default();
        self.invalid(line, key, problem)
    }

    /// Profiles are chosen by a pod label, so their names are label values.
    fn profile_name(&self, name: &Given<String>) -> Checked<()> {
        if is_dns_label(&name.value, LABEL) {
            return Ok(());
        }
        Err(self.invalid(name.line, &name.value, "cannot name a profile; use at most 63 of a-z, 0-9 and `-`"))
    }

    fn profile(&self, file: ProfileFile, bodies: &GivenBodies) -> Checked<Profile> {
        let defaults = Profile::default();
        let (resources, limits) = self.resources(file.resources.unwrap_or_default(), &defaults.resources)?;
        let volume_types = self.volume_types(file.volume_types, defaults.volume_types)?;
        let scratch = self.scratch(file.scratch, &defaults.scratch)?;
        self.paths_are_apart(&scratch, bodies)?;
        self.storage_is_enough(limits.ephemeral_storage, &scratch, bodies)?;
        self.empty_dirs_are_permitted(&volume_types, &scratch)?;
        Ok(Profile {
            allow: self.allow(file.allow.unwrap_or_default())?,
            images: self.images(file.images.unwrap_or_default(), defaults.images)?,
            scheduling: self.scheduling(file.scheduling.unwrap_or_default(), defaults.scheduling)?,
            resources,
            pod: self.pod(&file.pod.unwrap_or_default(), defaults.pod, limits)?,
            lifetime: self.lifetime(&file.lifetime.unwrap_or_default(), defaults.lifetime)?,
            run_as: self.run_as(&file.run_as.unwrap_or_default(), defaults.run_as)?,
            volume_types: volume_types.value,
            scratch: scratch.into_iter().map(|given| given.scratch).collect(),
            seccomp_localhost_profiles: self.seccomp_profiles(file.seccomp.unwrap_or_default())?,
            app_armor: match file.app_armor {
                Some(AppArmorFile::Inject) => AppArmor::Inject,
                Some(AppArmorFile::Leave) => AppArmor::Leave,
                None => defaults.app_armor,
            },
            sysctls: self.sysctls(file.sysctls.unwrap_or_default())?,
            token_audiences: self.token_audiences(file.token_audiences.unwrap_or_default(), bodies)?,
            host_users: match file.host_users {
                Some(HostUsersFile::Never) => HostUsers::Never,
                Some(HostUsersFile::Leave) => HostUsers::Leave,
                None => defaults.host_users,
            },
            supplemental_groups: match file.supplemental_groups_policy {
                Some(SupplementalGroupsFile::Strict) => SupplementalGroups::Strict,
                Some(SupplementalGroupsFile::Leave) => SupplementalGroups::Leave,
                None => defaults.supplemental_groups,
            },
            host_aliases: match file.host_aliases {
                Some(HostAliasesFile::Allow) => true,
                Some(HostAliasesFile::Refuse) => false,
                None => defaults.host_aliases,
            },
            command: match file.command {
                Some(command) => self.command(command)?,
                None => defaults.command,
            },
            readiness_gate: file.readiness_gate.unwrap_or(defaults.readiness_gate),
            slipped_through: match file.slipped_through {
                Some(SlippedThroughFile::Keep) => SlippedThrough::Keep,
                Some(SlippedThroughFile::Delete) => SlippedThrough::Delete,
                None => defaults.slipped_through,
            },
        })
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
        self.within(key, file, default, 1..=MOST)
    }

    fn within<N: TryFrom<i64> + PartialOrd + Display>(
        &self,
        key: &str,
        file: Option<Given<i64>>,
        default: N,
        range: RangeInclusive<N>,
    ) -> Checked<N> {
        let Some(given) = file else { return Ok(default) };
        N::try_from(given.value).ok().filter(|number| range.contains(number)).ok_or_else(|| {
            self.invalid(given.line, key, format!("must be a whole number from {} to {}", range.start(), range.end()))
        })
    }

    /// A name, by `is_name`; none where the key is left out or empty.
    fn name(
        &self,
        key: &str,
        file: Option<Given<String>>,
        is_name: impl Fn(&str) -> bool,
        what: &str,
    ) -> Checked<Option<String>> {
        match file.filter(|name| !name.value.is_empty()) {
            Some(name) if !is_name(&name.value) => {
                Err(self.invalid(name.line, key, format!("must be the name of {what}, or empty")))
            }
            name => Ok(name.map(|name| name.value)),
        }
    }

    /// Namespaces, each in full.
    fn namespaces(&self, key: &str, names: Vec<Given<String>>) -> Checked<Vec<String>> {
        match names.iter().find(|name| !is_dns_label(&name.value, LABEL)) {
            Some(wrong) => Err(self.invalid(wrong.line, key, "must name namespaces in full, of a-z, 0-9 and `-`")),
            None => Ok(values(names)),
        }
    }
}

fn values(given: Vec<Given<String>>) -> Vec<String> {
    given.into_iter().map(|given| given.value).collect()
}

#[cfg(test)]
mod tests;
