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

/// The process id of a node's holder, if it lives and is one.
pub(super) fn holder(node: &NodePaths) -> Option<Pid> {
    let pid = read_number(&node.holder_pid())?;
    let (cluster, name) = (node.cluster().as_bytes(), node.name().as_bytes());
    let words = [b"hold".as_slice(), b"--cluster", cluster, b"--node", name];
    if runs_with(pid, &words) { Pid::from_raw(i32::try_from(pid).ok()?) } else { None }
}

/// Whether a process runs whose command line has these words in a row: its number alone may be another's by now.
pub(super) fn runs_with(pid: u32, words: &[&[u8]]) -> bool {
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let all: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
    all.windows(words.len()).any(|row| row == words)
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

/// Waits for nodes that are being ended already.
pub(super) fn ended(paths: &Paths) -> Result<(), Error> {
    for name in node_names(paths) {
        let ending = paths.node(&name);
        if ending.ending().exists() {
            node(&ending)?;
        }
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
