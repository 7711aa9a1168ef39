//! The first process of a node: process 1 of its own process, network and mount namespaces.
//!
//! It covers the folders that programs write to by habit, opens the [gate](crate::gate), starts the node's components,
//! starts again what ends, and reaps what dies. The kernel ends everything in the namespaces with it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};

use crate::error::Error;
use crate::gate::{ComponentStatus, Order};
use crate::node_spec::{Component, Dependency, NodeSpec};

/// How long a component that ended rests before it is started again.
const REST: Duration = Duration::from_millis(500);
/// How often a dependency that does not answer yet is tried.
const POLL: Duration = Duration::from_millis(20);

/// Runs a node until the process is killed.
///
/// # Errors
/// When the namespaces cannot be made ready. A component that fails is started again instead.
pub(crate) fn run(spec: &Path) -> Result<(), Error> {
    let text = fs::read(spec).map_err(Error::io("read", spec))?;
    let spec: NodeSpec =
        serde_json::from_slice(&text).map_err(|source| Error::State { path: spec.to_owned(), source })?;
    cover(&spec)?;
    let listener = UnixListener::bind(&spec.gate).map_err(Error::io("listen on", &spec.gate))?;
    let node = Arc::new(Node { spec, running: Mutex::default() });
    let reaper = Arc::clone(&node);
    thread::spawn(move || reaper.reap());
    for stream in listener.incoming().flatten() {
        let node = Arc::clone(&node);
        thread::spawn(move || node.serve(stream));
    }
    Ok(())
}

/// Gives the node private copies of folders of the machine, and mounts that its pods share.
fn cover(spec: &NodeSpec) -> Result<(), Error> {
    let fail = |what: &Path| {
        let action = format!("mount over {}", what.display());
        move |errno: rustix::io::Errno| Error::Io { action, source: errno.into() }
    };
    let root = Path::new("/");
    // Private to the machine already (unshare saw to it); shared from here on, as a kubelet asks for.
    mount_change(root, MountPropagationFlags::SHARED | MountPropagationFlags::REC).map_err(fail(root))?;
    for folder in spec.covered.iter().filter(|folder| folder.is_dir()) {
        let name = folder.to_string_lossy().replace('/', "_");
        let (upper, work) = (spec.covers.join(&name).join("upper"), spec.covers.join(&name).join("work"));
        for made in [&upper, &work] {
            fs::create_dir_all(made).map_err(Error::io("make", made))?;
        }
        let options = format!("lowerdir={},upperdir={},workdir={}", folder.display(), upper.display(), work.display());
        let options = std::ffi::CString::new(options).map_err(|e| Error::Usage(e.to_string()))?;
        mount("overlay", folder, "overlay", MountFlags::empty(), Some(options.as_c_str())).map_err(fail(folder))?;
    }
    let run = Path::new("/run");
    mount("tmpfs", run, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=755")).map_err(fail(run))?;
    fs::create_dir_all("/run/lock").map_err(Error::io("make", Path::new("/run/lock")))
}

struct Node {
    spec: NodeSpec,
    running: Mutex<BTreeMap<String, ComponentStatus>>,
}

impl Node {
    /// A panic elsewhere must not stop the reaper: the table is always whole.
    fn table(&self) -> MutexGuard<'_, BTreeMap<String, ComponentStatus>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(self: Arc<Self>, stream: UnixStream) {
        // The other side may hang up at any time: there is nobody left to tell.
        let _ = self.answer(stream);
    }

    fn answer(self: &Arc<Self>, mut stream: UnixStream) -> io::Result<()> {
        let mut line = String::new();
        // Byte by byte: what follows the line belongs to the connection that is dialled.
        let mut reader = BufReader::with_capacity(1, stream.try_clone()?);
        reader.read_line(&mut line)?;
        match line.parse() {
            Ok(Order::Start) => {
                self.start();
                writeln!(stream, "ok")
            }
            Ok(Order::Status) => {
                let all: Vec<ComponentStatus> = self.table().values().cloned().collect();
                writeln!(stream, "{}", serde_json::to_string(&all)?)
            }
            Ok(Order::Signal { component, number }) => {
                let pid = self.table().get(&component).and_then(|status| status.pid);
                match (pid.and_then(Pid::from_raw), Signal::from_named_raw(number)) {
                    (Some(pid), Some(signal)) => {
                        kill_process(pid, signal)?;
                        writeln!(stream, "ok")
                    }
                    (None, _) => writeln!(stream, "{component} does not run here"),
                    (_, None) => writeln!(stream, "{number} is no signal"),
                }
            }
            Ok(Order::Dial(address)) => splice(stream, TcpStream::connect(address)?),
            Err(reason) => writeln!(stream, "{reason}"),
        }
    }

    /// Starts every component once; a second order changes nothing.
    fn start(self: &Arc<Self>) {
        if !self.table().is_empty() {
            return;
        }
        for component in &self.spec.components {
            let status = ComponentStatus { name: component.name.clone(), pid: None, starts: 0, last_exit: None };
            self.table().insert(component.name.clone(), status);
            let (node, component) = (Arc::clone(self), component.clone());
            thread::spawn(move || node.launch(&component, Duration::ZERO));
        }
    }

    /// Starts a component as soon as what it waits for answers; what cannot be started is tried again.
    fn launch(&self, component: &Component, mut rest: Duration) {
        loop {
            thread::sleep(rest);
            while !component.after.iter().all(answers) {
                thread::sleep(POLL);
            }
            // Held until the process id is written down, or the reaper would not know whom it reaped.
            let mut table = self.table();
            let started = self.spawn(component);
            let Some(status) = table.get_mut(&component.name) else { return };
            status.starts += 1;
            match started {
                Ok(pid) => {
                    status.pid = Some(pid);
                    return;
                }
                Err(error) => status.last_exit = Some(format!("cannot start: {error}")),
            }
            rest = REST;
        }
    }

    fn spawn(&self, component: &Component) -> io::Result<i32> {
        let (program, arguments) = component.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let log = open_log(&self.spec.logs, &component.name)?;
        let mut command = Command::new(program);
        // Nothing leads out of here, so a proxy of the machine's cannot be reached and must not be asked.
        for proxy in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            command.env_remove(proxy);
        }
        let child = command
            .args(arguments)
            .envs(component.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        i32::try_from(child.id()).map_err(io::Error::other)
    }

    /// Collects every process that ends in here, orphans of the container runtime included.
    fn reap(self: Arc<Self>) {
        loop {
            let Ok(Some((pid, status))) = wait(WaitOptions::empty()) else {
                thread::sleep(POLL); // nothing runs yet
                continue;
            };
            let pid = pid.as_raw_nonzero().get();
            let mut table = self.table();
            let Some(ended) = table.values_mut().find(|component| component.pid == Some(pid)) else { continue };
            ended.pid = None;
            ended.last_exit = Some(match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (_, Some(signal)) => format!("signal {signal}"),
                _ => "unknown".to_owned(),
            });
            let name = ended.name.clone();
            drop(table);
            if let Some(component) = self.spec.components.iter().find(|component| component.name == name).cloned() {
                let node = Arc::clone(&self);
                thread::spawn(move || node.launch(&component, REST));
            }
        }
    }
}

fn open_log(folder: &Path, name: &str) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    OpenOptions::new().create(true).append(true).open(folder.join(format!("{name}.log")))
}

fn answers(dependency: &Dependency) -> bool {
    match dependency {
        Dependency::Socket(path) => UnixStream::connect(path).is_ok(),
        Dependency::File(path) => path.exists(),
        Dependency::Tcp(address) => TcpStream::connect_timeout(address, POLL).is_ok(),
    }
}

/// Copies both ways until both sides have said all.
fn splice(near: UnixStream, far: TcpStream) -> io::Result<()> {
    // As the relay outside does.
    far.set_nodelay(true)?;
    let (mut near_in, mut far_out) = (near.try_clone()?, far.try_clone()?);
    let up = thread::spawn(move || {
        let copied = io::copy(&mut near_in, &mut far_out);
        // Fails only when the far side is gone, which is what was wanted.
        let _ = far_out.shutdown(Shutdown::Write);
        copied
    });
    let (mut far_in, mut near_out) = (far, near);
    let down = io::copy(&mut far_in, &mut near_out);
    let _ = near_out.shutdown(Shutdown::Write);
    let _ = up.join();
    down.map(|_| ())
}
