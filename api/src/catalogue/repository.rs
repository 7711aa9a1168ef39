//! A repository by its name: which registry it is in, and what it is called there.

use cofferdam_model::image::{has_version, in_full};
use cofferdam_model::text::shown;
use http::uri::Authority;

/// How references call Docker Hub.
const DOCKER_HUB: &str = "docker.io";

/// The longest name that there is (OCI distribution specification, in practice).
const LONGEST: usize = 255;

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repository {
    /// As the operator wrote it, which is how images of it are shown.
    pub(super) name: String,
    /// The registry's host, and its port if it has one.
    pub(super) registry: Authority,
    /// Its name within the registry, of lower-case parts.
    pub(super) path: String,
}

/// No repository.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The name says which tag.
    #[error("`{0}` names an image, not a repository; leave tag and digest out")]
    Version(String),
    /// Nothing that a registry can have.
    #[error(
        "`{0}` cannot name a repository; write one such as node, docker.io/team/runtime or registry.example.com/runtime"
    )]
    Name(String),
}

impl Repository {
    pub(super) fn parse(name: &str) -> Result<Self, RepositoryError> {
        let told = || shown(name, LONGEST);
        if has_version(name) {
            return Err(RepositoryError::Version(told()));
        }
        let full = in_full(name);
        let (registry, path) = full.split_once('/').ok_or_else(|| RepositoryError::Name(told()))?;
        let path = path.strip_suffix(":latest").unwrap_or(path);
        let registry = registry.parse::<Authority>().ok().filter(|registry| !registry.as_str().contains('@'));
        match registry {
            Some(registry) if path.len() <= LONGEST && path.split('/').all(is_part) => {
                Ok(Self { name: name.to_owned(), registry, path: path.to_owned() })
            }
            _ => Err(RepositoryError::Name(told())),
        }
    }

    pub(super) fn is_on_docker_hub(&self) -> bool {
        self.registry == DOCKER_HUB
    }
}

fn is_part(part: &str) -> bool {
    let is_outer = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = part.as_bytes();
    let inner = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(b);
    is_outer(bytes.first()) && is_outer(bytes.last()) && bytes.iter().all(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_a_registry_and_a_path() {
        for (name, registry, path) in [
            ("node", "docker.io", "library/node"),
            ("team/run", "docker.io", "team/run"),
            ("docker.io/node", "docker.io", "library/node"),
            ("index.docker.io/team/run", "docker.io", "team/run"),
            ("registry.example.com/run", "registry.example.com", "run"),
            ("registry.example.com:5000/a/b/c", "registry.example.com:5000", "a/b/c"),
            ("localhost/run", "localhost", "run"),
            ("127.0.0.1:5000/run", "127.0.0.1:5000", "run"),
            ("[::1]:5000/run", "[::1]:5000", "run"),
        ] {
            let repository = Repository::parse(name).unwrap();
            let parts = (repository.name.as_str(), repository.registry.as_str(), repository.path.as_str());
            assert_eq!(parts, (name, registry, path));
            assert_eq!(repository.is_on_docker_hub(), registry == "docker.io");
        }
    }

    #[test]
    fn what_names_an_image_or_nothing_is_refused() {
        for name in ["node:20", "node@sha256:01", "registry.example.com/run:1"] {
            assert!(matches!(Repository::parse(name), Err(RepositoryError::Version(_))), "{name}");
        }
        for name in
            ["", "Node", "a//b", "a/", "/a", "a b", "a/..", "-a", "registry.example.com/../a", "u@b.example/a", "a?b"]
        {
            assert!(Repository::parse(name).is_err(), "{name}");
        }
    }
}
