//! Ending a cluster, and removing what the kernel does not.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Cluster, read_number};
use crate::error::Error;
use crate::hold;
use crate::paths::{NodePaths, Paths};

impl Cluster {
    /// Ends the cluster called `name` and removes all that it left, running or not.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn down(name: &str) -> Result<(), Error> {
        let paths = Paths::new(name)?;
        for name in node_names(&paths) {
            node(&paths.node(&name))?;
        }
        remove(&paths)
    }
}

/// The nodes that have a folder, in the order of their names.
pub(super) fn node_names(paths: &Paths) -> Vec<String> {
    let entries = fs::read_dir(paths.nodes()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The process id of a node's holder, if it lives and is one: numbers are used again.
pub(super) fn holder(node: &NodePaths) -> Option<Pid> {
    let pid: i32 = read_number(&node.holder_pid())?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
    let cluster = node.cgroup();
    let ours = words.contains(&b"hold".as_slice())
        && words.windows(2).any(|pair| pair[0] == b"--node" && cluster.as_bytes().ends_with(pair[1]));
    if ours { Pid::from_raw(pid) } else { None }
}

/// Ends a node's holder and all that hangs on it.
pub(super) fn node(node: &NodePaths) -> Result<(), Error> {
    let Some(pid) = holder(node) else { return Ok(()) };
    // It may have gone in between.
    let _ = kill_process(pid, Signal::TERM);
    let start = Instant::now();
    while holder(node).is_some() {
        if start.elapsed() > Duration::from_secs(10) {
            let _ = kill_process(pid, Signal::KILL);
        }
        if start.elapsed() > Duration::from_secs(20) {
            return Err(Error::Timeout {
                what: "the end of a node".to_owned(),
                after: Duration::from_secs(20),
                look: format!("look at process {}", pid.as_raw_nonzero()),
            });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Removes what the nodes of a cluster that does not run have left.
pub(super) fn remove(paths: &Paths) -> Result<(), Error> {
    for name in node_names(paths) {
        hold::remove(paths, &paths.node(&name))?;
    }
    hold::remove_folder(paths.root())
}
