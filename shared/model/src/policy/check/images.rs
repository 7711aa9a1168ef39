//! Which images may run.

use super::{Checked, Checker, values};
use crate::{
    image::{DEFAULT_REGISTRY, LEGACY_REGISTRY, OFFICIAL, is_registry},
    policy::{
        Images,
        file::{
            profile::{ImagesFile, PullPolicyFile},
            value::Given,
        },
        image_pattern,
    },
};

impl Checker<'_> {
    pub(super) fn images(&self, file: ImagesFile, defaults: Images) -> Checked<Images> {
        let digest_only = file.digest_only.unwrap_or(defaults.digest_only);
        let allowed = match file.allowed {
            Some(patterns) => self.patterns(patterns, digest_only)?,
            None => defaults.allowed,
        };
        Ok(Images {
            allowed,
            digest_only,
            always_pull: match file.pull_policy {
                Some(PullPolicyFile::Always) => true,
                Some(PullPolicyFile::Leave) => false,
                None => defaults.always_pull,
            },
        })
    }

    fn patterns(&self, patterns: Vec<Given<String>>, digest_only: bool) -> Checked<Vec<String>> {
        for pattern in &patterns {
            if let Some(problem) = problem(&pattern.value) {
                return Err(self.invalid(pattern.line, "allowed", problem));
            }
            if digest_only && !image_pattern::may_mean_a_digest(&pattern.value) {
                let problem = format!(
                    "holds `{}`, which means images by tag, and `digestOnly` asks for a digest, so it allows nothing; \
                     leave the tag out, or add `@*:*`",
                    pattern.value
                );
                return Err(self.invalid(pattern.line, "allowed", problem));
            }
        }
        Ok(values(patterns))
    }
}

/// Why the pattern can mean no reference, and what was probably meant.
fn problem(pattern: &str) -> Option<String> {
    let can_be_one = |b: u8| b.is_ascii_alphanumeric() || b"._-/:@*".contains(&b);
    if pattern.is_empty() || !pattern.bytes().all(can_be_one) || pattern.contains("***") || pattern.contains("//") {
        return Some(
            "must hold image references in full, without spaces and scheme; `*` stands for text without `/`, `:` and \
             `@`, and `**` for any text"
                .to_owned(),
        );
    }
    let (first, rest) = pattern.split_once('/').map_or((pattern, None), |(first, rest)| (first, Some(rest)));
    if first.contains('*') {
        return None;
    }
    let meant = match rest {
        None => format!("{DEFAULT_REGISTRY}/{OFFICIAL}{pattern}"),
        Some(_) if !is_registry(first) => format!("{DEFAULT_REGISTRY}/{pattern}"),
        Some(rest) if first == LEGACY_REGISTRY => format!("{DEFAULT_REGISTRY}/{rest}"),
        Some(rest) if first == DEFAULT_REGISTRY && !rest.contains(['/', '*']) => {
            format!("{DEFAULT_REGISTRY}/{OFFICIAL}{rest}")
        }
        Some(_) => return None,
    };
    Some(format!("holds `{pattern}`, but is compared with references in full; did you mean `{meant}`?"))
}
