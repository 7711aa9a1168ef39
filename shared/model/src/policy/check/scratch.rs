//! Writable directories: that they can be mounted side by side, and that what they hold fits.

use std::collections::{BTreeMap, BTreeSet};

use super::{Checked, Checker, bodies::GivenBodies};
use crate::{
    keys,
    names::{LABEL, is_clean_path, is_clean_place, is_dns_label, is_variable, overlap},
    policy::{
        LOG_MARGIN, Scratch,
        file::{profile::ScratchFile, value::Given},
    },
    quantity::Quantity,
};

/// What a runtime or a kubelet puts into every container, and would no longer find room for.
const NEEDED: [&str; 5] = ["/proc", "/sys", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"];

/// What the volumes of bodies are named by.
const BODY: &str = "body";

/// A directory, and where the file says what may contradict the rest.
pub(super) struct GivenScratch {
    pub(super) scratch: Scratch,
    path_line: u64,
    size_line: u64,
}

impl Checker<'_> {
    pub(super) fn scratch(&self, file: Option<Vec<ScratchFile>>, defaults: &[Scratch]) -> Checked<Vec<GivenScratch>> {
        let Some(file) = file else {
            let nowhere = |scratch: &Scratch| GivenScratch { scratch: scratch.clone(), path_line: 0, size_line: 0 };
            return Ok(defaults.iter().map(nowhere).collect());
        };
        let mut names = BTreeSet::new();
        let mut variables = BTreeSet::new();
        let mut checked: Vec<GivenScratch> = Vec::new();
        for file in file {
            let name = &file.name.value;
            let is_first = names.insert(name.clone());
            let is_bodies = name.split('-').next() == Some(BODY);
            if !is_dns_label(name, LABEL - keys::RESERVED_NAME.len()) || !is_first || is_bodies {
                let problem = "must be a short DNS label of its own, and not `body`: it names the volume";
                return Err(self.invalid(file.name.line, "name", problem));
            }
            let path = &file.path.value;
            if !is_clean_path(path)
                || is_reserved(path)
                || checked.iter().any(|other| overlap(&other.scratch.path, path))
            {
                let problem = "must be an absolute path without `:`, `$`, `.` or `..`, which a container does not need \
                               itself, and neither in another's nor around it";
                return Err(self.invalid(file.path.line, "path", problem));
            }
            let size = self.ceiling("size", Some(file.size), Quantity::ZERO)?;
            checked.push(GivenScratch {
                path_line: file.path.line,
                size_line: size.line,
                scratch: Scratch {
                    name: file.name.value,
                    path: file.path.value,
                    size: size.value,
                    env: self.env(file.env.unwrap_or_default(), &mut variables)?,
                    per_container: !file.shared.unwrap_or(false),
                },
            });
        }
        Ok(checked)
    }

    /// `taken` are the variables of all directories so far.
    fn env(
        &self,
        file: BTreeMap<Given<String>, Given<String>>,
        taken: &mut BTreeSet<String>,
    ) -> Checked<Vec<(String, String)>> {
        let mut env = Vec::new();
        for (variable, place) in file {
            if !is_variable(&variable.value) || !taken.insert(variable.value.clone()) {
                let problem = "must name environment variables that no other directory sets";
                return Err(self.invalid(variable.line, "env", problem));
            }
            if !place.value.is_empty() && !is_clean_place(&place.value) {
                let problem =
                    "must be a place below the path, without `:`, `$`, `.` or `..`; empty for the path itself";
                return Err(self.invalid(place.line, &variable.value, problem));
            }
            env.push((variable.value, place.value));
        }
        Ok(env)
    }

    /// A body must not lie in a directory that is mounted over it, nor the other way round.
    pub(super) fn paths_are_apart(&self, scratch: &[GivenScratch], bodies: &GivenBodies) -> Checked<()> {
        let path = &bodies.bodies.path;
        match scratch.iter().find(|given| overlap(&given.scratch.path, path)) {
            Some(given) if bodies.bodies.enabled => {
                let keys = [("path", given.path_line), ("path", bodies.path_line)];
                let problem = format!(
                    "has to be apart: bodies are unpacked into {path}, and {} is a scratch directory; move one of them",
                    given.scratch.path
                );
                Err(self.contradiction(&keys, problem))
            }
            _ => Ok(()),
        }
    }

    /// A kubelet evicts a pod that uses more than its limits, so what a session is given must fit them.
    pub(super) fn storage_is_enough(
        &self,
        ceiling: Given<Quantity>,
        scratch: &[GivenScratch],
        bodies: &GivenBodies,
    ) -> Checked<()> {
        let mut needed = scratch.iter().fold(Quantity::constant(LOG_MARGIN), |sum, given| sum.plus(given.scratch.size));
        if bodies.bodies.enabled {
            needed = needed.plus(bodies.bodies.size);
        }
        if needed <= ceiling.value {
            return Ok(());
        }
        let problem = format!(
            "leaves too little: scratch directories, a body and {LOG_MARGIN} for logs take {needed}, more than the \
             `ephemeral-storage` limit of {}, and a session that used them would be evicted; raise the limit, or \
             lower a `size`",
            ceiling.value
        );
        let mut keys = vec![("ephemeral-storage", ceiling.line)];
        keys.extend(scratch.iter().rev().map(|given| ("size", given.size_line)));
        keys.push(("size", bodies.size_line));
        Err(self.contradiction(&keys, problem))
    }
}

/// Whether a volume there would hide what a container needs.
pub(super) fn is_reserved(path: &str) -> bool {
    path == "/dev" || NEEDED.iter().any(|needed| overlap(needed, path))
}
