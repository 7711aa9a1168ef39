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
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::cgroup;
use crate::error::Error;
use crate::paths::{NodePaths, Paths};

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
    write_pid(&node.holder_pid(), std::process::id())?;
    let mut terminate = signals(SignalKind::terminate())?;
    let mut interrupt = signals(SignalKind::interrupt())?;
    let mut child = spawn(&node)?;
    let unshare = child.id().unwrap_or_default();
    let init = first_child(unshare)
        .await
        .ok_or_else(|| Error::Died { what: "unshare".to_owned(), log: node.log("init").display().to_string() })?;
    write_pid(&node.init_pid(), init)?;
    if let Some(api) = &hold.api {
        offer(&node, api).await?;
    }
    let ended_by_itself = tokio::select! {
        _ = child.wait() => true,
        _ = terminate.recv() => false,
        _ = interrupt.recv() => false,
        () = abandoned() => false,
    };
    // Fails only when it is gone already.
    let _ = child.kill().await;
    gone(init).await;
    if ended_by_itself {
        return Ok(()); // the files say why; `down` and the next `up` remove them
    }
    remove(&paths, &node)
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

/// The process id of `parent`'s only child, once it has one; nothing when `parent` ends first.
async fn first_child(parent: u32) -> Option<u32> {
    let children = format!("/proc/{parent}/task/{parent}/children");
    loop {
        let text = fs::read_to_string(&children).ok()?;
        if let Some(child) = text.split_whitespace().next() {
            return child.parse().ok();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a killed process, and so its namespaces, have ended.
async fn gone(pid: u32) {
    while Path::new(&format!("/proc/{pid}")).exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Relays connections on a loopback port of the machine to `target` inside the node.
async fn offer(node: &NodePaths, target: &str) -> Result<(), Error> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(Error::io("listen on", Path::new("127.0.0.1")))?;
    let port = listener.local_addr().map_err(Error::io("listen on", Path::new("127.0.0.1")))?.port();
    write_pid(&node.api_port(), port)?;
    let (gate, target) = (node.gate(), target.to_owned());
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((near, _)) => {
                    tokio::spawn(relay(near, gate.clone(), target.clone()));
                }
                // Out of descriptors, most likely: others will close theirs.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    });
    Ok(())
}

/// A connection that breaks is the client's to notice.
async fn relay(mut near: TcpStream, gate: PathBuf, target: String) -> std::io::Result<()> {
    let mut far = UnixStream::connect(gate).await?;
    far.write_all(format!("dial {target}\n").as_bytes()).await?;
    tokio::io::copy_bidirectional(&mut near, &mut far).await.map(|_| ())
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

/// Written whole or not at all: others wait for the file to appear and read it at once.
fn write_pid(path: &Path, number: impl std::fmt::Display) -> Result<(), Error> {
    let partial = path.with_extension("partial");
    fs::write(&partial, number.to_string()).map_err(Error::io("write", &partial))?;
    fs::rename(&partial, path).map_err(Error::io("write", path))
}

fn signals(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Error> {
    signal(kind).map_err(Error::io("listen for", Path::new("signals")))
}
