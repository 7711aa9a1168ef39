//! Where containers mount things, with paths compared as a runtime resolves them.

use crate::pod::{Draft, Path};

/// Whether the container mounts that path itself, or a folder around it: a mount point inside somebody's volume would
/// have to be created there, and cannot be where it is read-only.
pub(super) fn is_covered(pod: &mut Draft, container: &Path, path: &str) -> bool {
    let path = parts(path);
    let mounts = pod.items(&container.at(&["volumeMounts"]));
    mounts.iter().any(|mount| {
        pod.text(&mount.at(&["mountPath"])).is_some_and(|mounted| {
            let mounted = parts(&mounted);
            !mounted.is_empty() && path.starts_with(&mounted)
        })
    })
}

/// The parts of a path as a runtime resolves it: `/tmp`, `//tmp/` and `/a/../tmp` are the same.
fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn paths_are_compared_as_a_runtime_resolves_them() {
        assert_eq!(parts("//a/./b/../c/"), ["a", "c"]);
        assert!(parts("/../..").is_empty());
    }
}
