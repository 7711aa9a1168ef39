//! Image references in full, as runtimes read them.
//!
//! Source: the reference grammar of the container distribution project, which containerd and CRI-O follow.

use std::borrow::Cow;

pub(crate) const DEFAULT_REGISTRY: &str = "docker.io";

/// What the default registry was once called.
pub(crate) const LEGACY_REGISTRY: &str = "index.docker.io";

/// Where the default registry keeps names of one part.
pub(crate) const OFFICIAL: &str = "library/";

/// The reference with its registry, its whole name and a version: `docker.io/library/python:latest` for `python`.
///
/// `sha256:…` without a name stays as it is: a runtime takes it for the id of an image that happens to be on the node,
/// whatever its name and registry, so it must not pass for a name of the default registry.
#[must_use]
pub fn in_full(reference: &str) -> Cow<'_, str> {
    if is_id(reference) {
        return Cow::Borrowed(reference);
    }
    let (registry, name) = match reference.split_once('/') {
        Some((LEGACY_REGISTRY, name)) => (DEFAULT_REGISTRY, name),
        Some((first, name)) if is_registry(first) => (first, name),
        _ => (DEFAULT_REGISTRY, reference),
    };
    let official = if registry == DEFAULT_REGISTRY && !name.contains('/') { OFFICIAL } else { "" };
    let version = if has_version(name) { "" } else { ":latest" };
    Cow::Owned(format!("{registry}/{official}{name}{version}"))
}

/// Whether the reference, or a pattern of references, says something about tag or digest.
#[must_use]
pub fn has_version(reference: &str) -> bool {
    reference.rsplit('/').next().is_some_and(|last| last.contains([':', '@']))
}

/// Whether the reference, in full, names an image by its digest.
pub(crate) fn has_digest(reference: &str) -> bool {
    reference.contains('@')
}

/// What stands before the first `/` is a registry if it cannot be a part of a name.
pub(crate) fn is_registry(first: &str) -> bool {
    first == "localhost" || first.contains(['.', ':']) || first.contains(char::is_uppercase)
}

fn is_id(reference: &str) -> bool {
    ["sha256:", "sha384:", "sha512:"].iter().any(|algorithm| reference.starts_with(algorithm))
        && !reference.contains('/')
}

#[cfg(test)]
mod tests {
    use super::{has_digest, in_full};

    #[test]
    fn what_is_left_out_is_what_a_runtime_puts_there() {
        for (reference, full) in [
            ("python", "docker.io/library/python:latest"),
            ("python:3.12", "docker.io/library/python:3.12"),
            ("python@sha256:01", "docker.io/library/python@sha256:01"),
            ("python:3.12@sha256:01", "docker.io/library/python:3.12@sha256:01"),
            ("library/python", "docker.io/library/python:latest"),
            ("team/app", "docker.io/team/app:latest"),
            ("team/app/part:1", "docker.io/team/app/part:1"),
            ("docker.io/python", "docker.io/library/python:latest"),
            ("docker.io/team/app", "docker.io/team/app:latest"),
            ("index.docker.io/python", "docker.io/library/python:latest"),
            ("index.docker.io/team/app:1", "docker.io/team/app:1"),
            ("registry:5000", "docker.io/library/registry:5000"),
            ("registry:5000/app", "registry:5000/app:latest"),
            ("registry.example.com/app:1", "registry.example.com/app:1"),
            ("registry.example.com:5000/team/app", "registry.example.com:5000/team/app:latest"),
            ("localhost/app", "localhost/app:latest"),
            ("localhost:5000/app", "localhost:5000/app:latest"),
            ("[::1]:5000/app", "[::1]:5000/app:latest"),
            // Names are in lower case, so this is a host, and it stays apart from the registry it looks like.
            ("Team/app", "Team/app:latest"),
            ("Docker.io/library/python", "Docker.io/library/python:latest"),
            ("docker.io.example.com/python", "docker.io.example.com/python:latest"),
            ("", "docker.io/library/:latest"),
        ] {
            assert_eq!(in_full(reference), full, "{reference}");
        }
    }

    #[test]
    fn the_id_of_an_image_is_no_name_of_the_default_registry() {
        for id in ["sha256:0123456789abcdef", "sha256:01", "sha512:01"] {
            assert_eq!(in_full(id), id);
            assert!(!has_digest(&in_full(id)));
        }
        assert_eq!(in_full("sha256"), "docker.io/library/sha256:latest");
        assert_eq!(in_full("example.com/sha256:01"), "example.com/sha256:01");
    }
}
