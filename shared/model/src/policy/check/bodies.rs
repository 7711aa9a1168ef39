//! How bodies get into pods.

use super::{Checked, Checker, permitted::is_api_servers_audience, scratch::is_reserved};
use crate::{
    names::{is_clean_path, overlap},
    policy::{
        Bodies, CREDENTIALS_DIRECTORY,
        file::{BodiesFile, value::Given},
    },
};

/// Bodies, and where the file says what may contradict a profile.
pub(super) struct GivenBodies {
    pub(super) bodies: Bodies,
    pub(super) path_line: u64,
    pub(super) size_line: u64,
    pub(super) audience_line: u64,
}

impl Checker<'_> {
    pub(super) fn bodies(&self, file: BodiesFile) -> Checked<GivenBodies> {
        let defaults = Bodies::default();
        let path = file.path.unwrap_or(Given::nowhere(defaults.path));
        if !is_clean_path(&path.value) || is_reserved(&path.value) || overlap(&path.value, CREDENTIALS_DIRECTORY) {
            let problem =
                "must be an absolute path without `:`, `$`, `.` or `..`, which a container does not need itself";
            return Err(self.invalid(path.line, "path", problem));
        }
        let size = self.ceiling("size", file.size, defaults.size)?;
        let max_entries = file.max_entries.unwrap_or(Given::nowhere(defaults.max_entries));
        if max_entries.value == 0 {
            return Err(self.invalid(max_entries.line, "maxEntries", "must be at least 1"));
        }
        let audience = file.audience.unwrap_or(Given::nowhere(defaults.audience));
        if is_api_servers_audience(&audience.value) || audience.value.contains(char::is_whitespace) {
            let problem = "must be an audience of its own, without spaces: a token for the API server would be one for \
                           the whole cluster";
            return Err(self.invalid(audience.line, "audience", problem));
        }
        Ok(GivenBodies {
            path_line: path.line,
            size_line: size.line,
            audience_line: audience.line,
            bodies: Bodies {
                enabled: file.enabled.unwrap_or(defaults.enabled),
                image: defaults.image,
                path: path.value,
                size: size.value,
                max_entries: max_entries.value,
                deadline_seconds: self.positive("deadlineSeconds", file.deadline_seconds, defaults.deadline_seconds)?,
                audience: audience.value,
            },
        })
    }
}
