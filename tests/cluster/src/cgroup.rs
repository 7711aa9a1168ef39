//! A node's cgroup, on machines with cgroup v1, v2, or both at once.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use crate::error::Error;

const ROOT: &str = "/sys/fs/cgroup";
/// How long a cgroup may stay busy after its last process.
const LETTING_GO: Duration = Duration::from_secs(5);
/// What a kubelet accounts for; v1 has one hierarchy for each.
const CONTROLLERS: [&str; 8] = ["cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"];

/// Makes the cgroup called `name`, with what a kubelet expects to find in it.
pub(crate) fn create(name: &str) -> Result<(), Error> {
    create_in(Path::new(ROOT), name)
}

fn create_in(root: &Path, name: &str) -> Result<(), Error> {
    let made = |path: PathBuf| match fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(error) => Err(Error::io("make the cgroup", &path)(error)),
    };
    if is_v2(root) {
        // Handed down one by one: a kernel may lack some, and one refusal would refuse the whole line.
        for controller in ["cpu", "cpuset", "memory", "pids", "io", "hugetlb"] {
            let _ = fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
        }
        return made(root.join(name)).map(|_| ());
    }
    for controller in CONTROLLERS.iter().chain(&["systemd"]) {
        if !root.join(controller).is_dir() {
            continue;
        }
        let group = made(root.join(controller).join(name))?;
        if *controller == "cpuset" {
            // A new v1 cpuset is empty, and a process cannot enter one that has no processor and no memory.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let all = root.join("cpuset").join(file);
                let value = fs::read(&all).map_err(Error::io("read", &all))?;
                fs::write(group.join(file), value).map_err(Error::io("fill", &group.join(file)))?;
            }
        }
    }
    Ok(())
}

/// The cgroup that a process takes its memory from.
pub(crate) fn memory_of(process: Pid) -> Option<PathBuf> {
    let memberships = fs::read_to_string(format!("/proc/{}/cgroup", process.as_raw_nonzero())).ok()?;
    memory_in(Path::new(ROOT), &memberships)
}

/// The same by the text of `/proc/PID/cgroup`. A machine may have both versions, and then the first has the memory.
fn memory_in(root: &Path, memberships: &str) -> Option<PathBuf> {
    memberships.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        if is_v2(root) {
            return controllers.is_empty().then(|| root.join(path));
        }
        let is_memory = controllers.split(',').any(|controller| controller == "memory");
        is_memory.then(|| root.join("memory").join(path))
    })
}

/// Whether the machine has the unified hierarchy only.
fn is_v2(root: &Path) -> bool {
    root.join("cgroup.controllers").exists()
}

/// Removes the cgroup called `name` and all below it, in every hierarchy. Its processes must be gone.
pub(crate) fn remove(name: &str) -> Result<(), Error> {
    let root = Path::new(ROOT);
    let mut groups = vec![root.join(name)];
    groups.extend(children(root).into_iter().map(|hierarchy| hierarchy.join(name)));
    for group in groups.iter().filter(|group| group.is_dir()) {
        remove_tree(group)?;
    }
    Ok(())
}

fn remove_tree(group: &Path) -> Result<(), Error> {
    for child in children(group) {
        remove_tree(&child)?;
    }
    let start = Instant::now();
    loop {
        match fs::remove_dir(group) {
            // A kernel lets a process go from its cgroup a moment after it has ended.
            Err(error) if error.kind() == ErrorKind::ResourceBusy && start.elapsed() < LETTING_GO => {
                thread::sleep(Duration::from_millis(10));
            }
            result => return result.map_err(Error::io("remove the cgroup", group)),
        }
    }
}

/// The folders in `path`; links are other names of hierarchies (`cpu -> cpu,cpuacct`) and are passed over.
fn children(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_v1_machine_gets_a_group_in_every_hierarchy_it_has_with_its_cpuset_filled() {
        let root = tempfile::tempdir().unwrap();
        for controller in ["cpu", "cpuset", "memory"] {
            fs::create_dir(root.path().join(controller)).unwrap();
        }
        fs::write(root.path().join("cpuset/cpuset.cpus"), "0-1\n").unwrap();
        fs::write(root.path().join("cpuset/cpuset.mems"), "0\n").unwrap();
        create_in(root.path(), "n").unwrap();
        assert!(root.path().join("memory/n").is_dir());
        assert!(!root.path().join("pids").exists());
        assert_eq!(fs::read_to_string(root.path().join("cpuset/n/cpuset.cpus")).unwrap(), "0-1\n");
    }

    #[test]
    fn a_v2_machine_gets_one_group_and_its_controllers_are_handed_down() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        create_in(root.path(), "n").unwrap();
        assert!(root.path().join("n").is_dir());
        assert!(root.path().join("cgroup.subtree_control").exists());
        assert!(!root.path().join("memory").exists());
    }

    #[test]
    fn the_memory_of_a_process_is_in_the_cgroup_of_the_version_that_counts_it() {
        let root = tempfile::tempdir().unwrap();
        let both = "9:cpu:/x\n4:memory,hugetlb:/pod/a\n0::/pod/b\n";
        assert_eq!(memory_in(root.path(), both), Some(root.path().join("memory/pod/a")));
        assert_eq!(memory_in(root.path(), "0::/pod/b\n"), None);
        fs::write(root.path().join("cgroup.controllers"), "memory\n").unwrap();
        assert_eq!(memory_in(root.path(), "0::/pod/b\n"), Some(root.path().join("pod/b")));
    }
}
