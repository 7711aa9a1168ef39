//! Lists of what a pod may use: volume types, seccomp profiles, sysctls, audiences.

use super::{Checked, Checker, bodies::GivenBodies, scratch::GivenScratch, values};
use crate::{
    names::leads_out,
    policy::{
        file::{profile::SeccompFile, value::Given},
        kubernetes::VOLUME_TYPES,
        suggest::did_you_mean,
    },
};

impl Checker<'_> {
    pub(super) fn volume_types(
        &self,
        file: Option<Given<Vec<Given<String>>>>,
        default: Vec<String>,
    ) -> Checked<Given<Vec<String>>> {
        let Some(types) = file else { return Ok(Given::nowhere(default)) };
        for kind in &types.value {
            if !VOLUME_TYPES.contains(&kind.value.as_str()) {
                let otherwise = || "see `kubectl explain pod.spec.volumes`".to_owned();
                let hint = did_you_mean(&kind.value, VOLUME_TYPES, otherwise);
                let problem = format!("holds `{}`, which is no volume type; {hint}", kind.value);
                return Err(self.invalid(kind.line, "volumeTypes", problem));
            }
        }
        Ok(Given { value: values(types.value), line: types.line })
    }

    /// Scratch directories are volumes, and the rule for those holds for ours too. (A profile that lacks a type that
    /// bodies are made of refuses pods that name one.)
    pub(super) fn empty_dirs_are_permitted(
        &self,
        volume_types: &Given<Vec<String>>,
        scratch: &[GivenScratch],
    ) -> Checked<()> {
        if scratch.is_empty() || volume_types.value.iter().any(|kind| kind == "emptyDir") {
            return Ok(());
        }
        let problem = "lacks `emptyDir`, of which scratch directories are made; add it, or set `scratch: []`";
        Err(self.invalid(volume_types.line, "volumeTypes", problem))
    }

    pub(super) fn seccomp_profiles(&self, file: SeccompFile) -> Checked<Vec<String>> {
        let profiles = file.localhost_profiles.unwrap_or_default();
        for profile in &profiles {
            if profile.value.is_empty() || leads_out(&profile.value) || profile.value.contains(',') {
                let problem = "must hold paths that lead down from the kubelet's seccomp folder, without `,`";
                return Err(self.invalid(profile.line, "localhostProfiles", problem));
            }
        }
        Ok(values(profiles))
    }

    pub(super) fn sysctls(&self, names: Vec<Given<String>>) -> Checked<Vec<String>> {
        for name in &names {
            let has_dots = name.value.find(['.', '/']).is_some_and(|first| name.value[first..].starts_with('.'));
            let can_be_one = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
            if !has_dots || !name.value.bytes().all(can_be_one) {
                return Err(self.invalid(name.line, "sysctls", "must name each sysctl in full, spelled with dots"));
            }
        }
        Ok(values(names))
    }

    pub(super) fn token_audiences(&self, audiences: Vec<Given<String>>, bodies: &GivenBodies) -> Checked<Vec<String>> {
        for audience in &audiences {
            if is_api_servers_audience(&audience.value) {
                let problem = "holds the API server's own audience; a session never gets a token for it";
                return Err(self.invalid(audience.line, "tokenAudiences", problem));
            }
            if audience.value.contains(|c: char| c == ',' || c.is_whitespace()) {
                return Err(self.invalid(
                    audience.line,
                    "tokenAudiences",
                    "must hold audiences without spaces and `,`",
                ));
            }
            if bodies.bodies.enabled && audience.value == bodies.bodies.audience {
                let keys = [("tokenAudiences", audience.line), ("audience", bodies.audience_line)];
                let problem = "is an audience of tokens that fetch bodies, and no session may have one of those after \
                               its start; use another";
                return Err(self.contradiction(&keys, problem));
            }
        }
        Ok(values(audiences))
    }
}

/// Whether a token for this audience is one for the API server. An empty one means the API server too.
pub(super) fn is_api_servers_audience(audience: &str) -> bool {
    audience.is_empty() || audience.starts_with("https://kubernetes.default.svc")
}
