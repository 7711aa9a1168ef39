//! The holder: the one process on the machine that a node hangs on.
//!
//! ```text
//! holder ── setpriv/unshare ── init (pid 1 in namespaces of its own) ── components, shims, pods
//! ```
//!
//! Each link dies with the one before it, by the kernel's doing: the holder's death signals `unshare`
//! (`PR_SET_PDEATHSIG`), whose death signals process 1, whose death ends its namespaces. So it does not matter how the
//! holder ends. When it is asked to (by a signal, or by the end of its standard input before the starter has said that
//! the node is to be kept, which is what a panic and Ctrl-C look like from here), it also removes the node's files and
//! cgroups.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::cgroup;
use crate::error::Error;
use crate::paths::{NodePaths, Paths, write_whole};
use crate::relay;

/// What the starter writes to the holder's standard input so that the node outlives it.
pub(crate) const KEEP: &[u8] = b"keep";

/// What a holder is told on its command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Hold {
    /// The cluster's name.
    #[arg(long)]
    cluster: String,
    /// The node's name.
    #[arg(long)]
    node: String,
    /// Offer this address of the node (its API server) on the machine's loopback.
    #[arg(long)]
    api: Option<String>,
}

/// Runs a node until it ends or is asked to.
pub(crate) async fn run(hold: &Hold) -> Result<(), Error> {
    let paths = Paths::new(&hold.cluster)?;
    let node = paths.node(&hold.node);
    cgroup::create(node.cgroup())?;
    write_whole(&node.holder_pid(), &std::process::id().to_string())?;
    let mut terminate = signals(SignalKind::terminate())?;
    let mut interrupt = signals(SignalKind::interrupt())?;
    let mut child = spawn(&node)?;
    let mut init = None;
    let ended_by_itself = tokio::select! {
        // Only ends when it fails: a node that runs is ended by one of the others.
        failed = serve(hold, &node, child.id().unwrap_or_default(), &mut init) => {
            failed?;
            true
        }
        _ = child.wait() => true,
        _ = terminate.recv() => false,
        _ = interrupt.recv() => false,
        () = abandoned() => false,
    };
    if !ended_by_itself {
        write_whole(&node.ending(), "")?;
    }
    // Fails only when it is gone already.
    let _ = child.kill().await;
    if let Some(init) = init {
        gone(init).await;
    }
    if ended_by_itself {
        return Ok(()); // the files say why; `down` and the next `up` remove them
    }
    remove(&paths, &node)
}

/// Says where the node's first process is, and relays connections into it.
async fn serve(hold: &Hold, node: &NodePaths, unshare: u32, init: &mut Option<u32>) -> Result<(), Error> {
    let pid = first_child(unshare).await;
    *init = Some(pid);
    write_whole(&node.init_pid(), &pid.to_string())?;
    relay::serve(node, hold.api.as_deref()).await
}

fn spawn(node: &NodePaths) -> Result<Child, Error> {
    let this = std::env::current_exe().map_err(Error::io("find", Path::new("the running program")))?;
    let log_path = node.log("init");
    let log = fs::File::create(&log_path).map_err(Error::io("write", &log_path))?;
    let errors = log.try_clone().map_err(Error::io("write", &log_path))?;
    Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"])
        .args(["--mount-proc", "--propagation", "private", "--"])
        .arg(this)
        .arg("init")
        .arg(node.spec())
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors)
        .spawn()
        .map_err(Error::io("start", Path::new("setpriv and unshare (package util-linux)")))
}

/// The process id of `parent`'s only child, once it has one.
async fn first_child(parent: u32) -> u32 {
    let children = format!("/proc/{parent}/task/{parent}/children");
    loop {
        let text = fs::read_to_string(&children).unwrap_or_default();
        if let Some(child) = text.split_whitespace().next().and_then(|child| child.parse().ok()) {
            return child;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a killed process, and so its namespaces, have ended. Where nobody reaps orphans it stays as a zombie.
async fn gone(pid: u32) {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let lives = || {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        // The first thread may end before the one that ends the namespaces: as long as there is another it is not over.
        let threads = fs::read_dir(process.join("task")).map_or(0, Iterator::count);
        !stat.is_empty() && (threads > 1 || !is_zombie(&stat))
    };
    while lives() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a line of `/proc/PID/stat` is about a process that has ended: its state follows the name in brackets.
fn is_zombie(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Returns when the starter ends without having said that the node is to be kept.
async fn abandoned() {
    let mut said = Vec::new();
    // A read that fails is an end as well.
    let _ = tokio::io::stdin().read_to_end(&mut said).await;
    if said == KEEP {
        std::future::pending::<()>().await;
    }
}

/// Removes what a node leaves on the machine, and the cluster's folder with the last node.
pub(crate) fn remove(paths: &Paths, node: &NodePaths) -> Result<(), Error> {
    cgroup::remove(node.cgroup())?;
    remove_folder(node.root())?;
    // Refused while another node's folder is in it, and then that node's holder does the rest.
    if fs::remove_dir(paths.nodes()).is_ok() {
        remove_folder(paths.root())?;
    }
    Ok(())
}

/// Removes a folder, if there is one.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", folder)(error)),
        _ => Ok(()),
    }
}

fn signals(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Error> {
    signal(kind).map_err(Error::io("listen for", Path::new("signals")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_is_told_from_a_process_whatever_its_name() {
        assert!(is_zombie("7 (cofferdam) Z 1 2 3"));
        assert!(is_zombie("7 (a) b) Z 1"));
        assert!(!is_zombie("7 (Z) S 1 2 3"));
        assert!(!is_zombie(""));
    }
}
