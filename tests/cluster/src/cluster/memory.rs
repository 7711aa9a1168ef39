//! The memory of a pod's containers, as the kernel counts it.

use std::fs;
use std::path::Path;

use super::Cluster;
use crate::cgroup;
use crate::error::Error;

/// The memory of a container since it began, in bytes, with the files that the kernel keeps for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// The most that it ever was.
    pub peak: u64,
    /// The most that it may be.
    pub limit: u64,
}

impl Cluster {
    /// The memory of a pod's container, by the name of that.
    ///
    /// # Errors
    /// [`Error::Command`] when there is no such pod, [`Error::Usage`] when no process of the container runs or it has no limit.
    pub fn memory(&self, namespace: &str, pod: &str, container: &str) -> Result<Memory, Error> {
        let processes = self.processes(namespace, pod, Some(container))?;
        let group = processes.into_iter().find_map(cgroup::memory_of);
        let group =
            group.ok_or_else(|| Error::Usage(format!("no process of {container} in {namespace}/{pod} runs")))?;
        memory(&group).ok_or_else(|| Error::Usage(format!("{container} of {namespace}/{pod} has no limit of memory")))
    }
}

/// What a cgroup of either version says.
fn memory(group: &Path) -> Option<Memory> {
    let number = |file| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok();
    let peak = number("memory.peak").or_else(|| number("memory.max_usage_in_bytes"))?;
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    Some(Memory { peak, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_of_both_versions_are_read() {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("a/memory.peak", "5\n"),
            ("a/memory.max", "7\n"),
            ("b/memory.max_usage_in_bytes", "6\n"),
            ("b/memory.limit_in_bytes", "8\n"),
            ("c/memory.peak", "5\n"),
            ("c/memory.max", "max\n"),
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let of = |group| memory(&root.path().join(group));
        assert_eq!(of("a"), Some(Memory { peak: 5, limit: 7 }));
        assert_eq!(of("b"), Some(Memory { peak: 6, limit: 8 }));
        assert_eq!(of("c"), None, "it has no limit");
    }
}
