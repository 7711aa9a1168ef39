//! A cluster: started, used, ended.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::gate::{self, ComponentStatus};
use crate::image::Image;
use crate::inside::{self, Inside};
use crate::node_spec::NodeSpec;
use crate::paths::{NodePaths, Paths};
use crate::programs::Programs;
use crate::progress::Progress;
use crate::{addon, api, control_plane, hold, network, node, pki};

/// How long a start may take before it is called a failure. Generous: machines that run tests are busy.
const PATIENCE: Duration = Duration::from_mins(2);

/// What to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The cluster's name: 1 to 24 lower-case letters, digits and hyphens.
    pub name: String,
    /// The Kubernetes version, as in `1.37`.
    pub kubernetes: String,
    /// How many nodes, 1 to 9.
    pub nodes: u8,
    /// Whether the cluster outlives this process. Otherwise it ends with it, however it ends.
    pub keep: bool,
}

/// What later commands have to know about a running cluster.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    kubernetes: String,
    folders: Vec<PathBuf>,
    nodes: Vec<Member>,
    images: Vec<PathBuf>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Member {
    name: String,
    index: u8,
}

/// A running cluster. Dropping it ends it, unless it was started to be kept or was attached to.
#[derive(Debug)]
pub struct Cluster {
    paths: Paths,
    manifest: Manifest,
    programs: Programs,
    /// The holders whose standard input is ours: they go when it closes.
    holders: Vec<Child>,
}

/// A node as `status` shows it.
#[derive(Debug)]
pub struct NodeStatus {
    /// Its name.
    pub name: String,
    /// Its programs, or why they cannot be asked.
    pub components: Result<Vec<ComponentStatus>, Error>,
}

impl Cluster {
    /// Starts a cluster and returns when its first node is Ready; what an earlier one of that name left is removed.
    ///
    /// # Errors
    /// [`Error::Usage`] when one of that name runs; otherwise what could not be started and where its log is.
    pub async fn up(options: &Options, progress: &Progress) -> Result<Self, Error> {
        let paths = Paths::new(&options.name)?;
        if Self::runs(&paths) {
            return Err(Error::Usage(format!(
                "a cluster called `{0}` runs already: `cofferdam-cluster down --name {0}` ends it",
                options.name
            )));
        }
        let programs = Programs::ensure(&options.kubernetes, progress)?;
        remove(&paths)?;
        pki::create(&paths, &network::address(1), network::KUBERNETES_SERVICE)?;
        let manifest = Manifest {
            kubernetes: options.kubernetes.clone(),
            folders: programs.folders().to_vec(),
            nodes: Vec::new(),
            images: Vec::new(),
        };
        let mut cluster = Self { paths, manifest, programs, holders: Vec::new() };
        cluster.manifest.images.push(cluster.pause_image()?);
        for index in 1..=options.nodes {
            cluster.start_node(&format!("node-{index}"), index)?;
        }
        let client = cluster.client().await?;
        cluster.explain(api::ready(&client, PATIENCE).await, "node-1", "kube-apiserver")?;
        let ready = cluster.paths.api_ready();
        fs::write(&ready, "").map_err(Error::io("write", &ready))?;
        for member in cluster.manifest.nodes.clone() {
            let ready = api::node_ready(&client, &member.name, PATIENCE).await;
            cluster.explain(ready, &member.name, "kubelet")?;
        }
        cluster.explain(
            api::namespace_ready(&client, "default", PATIENCE).await,
            "node-1",
            "kube-controller-manager",
        )?;
        cluster.install(&addon::COREDNS, progress)?;
        if options.keep {
            cluster.keep()?;
        }
        Ok(cluster)
    }

    /// The running cluster called `name`, for one more command.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is none.
    pub fn attach(name: &str) -> Result<Self, Error> {
        let paths = Paths::new(name)?;
        if !Self::runs(&paths) {
            return Err(Error::Usage(format!(
                "no cluster called `{name}` runs: `cofferdam-cluster up --name {name}` starts one"
            )));
        }
        let file = paths.manifest();
        let text = fs::read(&file).map_err(Error::io("read", &file))?;
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|source| Error::State { path: file, source })?;
        let programs = Programs::new(manifest.folders.clone());
        Ok(Self { paths, manifest, programs, holders: Vec::new() })
    }

    /// Ends the cluster called `name` and removes all that it left, running or not.
    ///
    /// # Errors
    /// What could not be removed.
    pub fn down(name: &str) -> Result<(), Error> {
        let paths = Paths::new(name)?;
        for node in node_names(&paths) {
            stop(&paths.node(&node))?;
        }
        remove(&paths)
    }

    /// Whether the first node's holder lives.
    fn runs(paths: &Paths) -> bool {
        node_names(paths).iter().any(|node| holder(&paths.node(node)).is_some())
    }

    /// The cluster's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.paths.name()
    }

    /// The Kubernetes version that it runs.
    #[must_use]
    pub fn kubernetes(&self) -> &str {
        &self.manifest.kubernetes
    }

    /// The administrator's kubeconfig, for any client on this machine.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.paths.kubeconfig()
    }

    /// The cluster's programs.
    #[must_use]
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// The names of the nodes, in the order of their numbers.
    #[must_use]
    pub fn nodes(&self) -> Vec<&str> {
        self.manifest.nodes.iter().map(|member| member.name.as_str()).collect()
    }

    /// A client with the administrator's rights.
    ///
    /// # Errors
    /// [`Error::Part`] when the kubeconfig cannot be used.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        api::client(&self.paths.kubeconfig()).await
    }

    /// `kubectl` with the administrator's rights, to which arguments can be added.
    ///
    /// # Errors
    /// [`Error::Usage`] when the program is missing.
    pub fn kubectl_command(&self) -> Result<Command, Error> {
        let mut command = Command::new(self.programs.path("kubectl")?);
        command.env("KUBECONFIG", self.paths.kubeconfig());
        Ok(command)
    }

    /// Runs `kubectl` and returns what it printed.
    ///
    /// # Errors
    /// [`Error::Command`] with its last lines when it fails.
    pub fn kubectl<S: AsRef<std::ffi::OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<String, Error> {
        let output = inside::output(self.kubectl_command()?.args(arguments))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Applies manifests server-side, as the field manager `cofferdam-cluster`.
    ///
    /// # Errors
    /// [`Error::Command`] with kubectl's words.
    pub fn apply(&self, manifests: &str) -> Result<String, Error> {
        let mut command = self.kubectl_command()?;
        command.args(["apply", "--server-side", "--field-manager=cofferdam-cluster", "--force-conflicts", "-f", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let fail = || Error::io("run", Path::new("kubectl"));
        let mut child = command.spawn().map_err(fail())?;
        if let Some(mut input) = child.stdin.take() {
            // When kubectl has ended already, its own words are the better error.
            let _ = input.write_all(manifests.as_bytes());
        }
        let output = inside::check(&command, child.wait_with_output().map_err(fail())?)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The way into a node.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such node.
    pub fn inside(&self, node: &str) -> Result<Inside, Error> {
        let file = self.paths.node(node).init_pid();
        let pid = read_number(&file).ok_or_else(|| Error::Usage(format!("{node} does not run in this cluster")))?;
        Ok(Inside::new(pid))
    }

    /// Imports an OCI image (a tar file) on every node, now and on those that join later.
    ///
    /// # Errors
    /// [`Error::Command`] with containerd's words.
    pub fn load(&mut self, image: &Path) -> Result<(), Error> {
        for member in &self.manifest.nodes {
            self.import(&member.name, image)?;
        }
        if !self.manifest.images.iter().any(|known| known == image) {
            self.manifest.images.push(image.to_owned());
        }
        self.save()
    }

    /// Adds a node called `name` and waits until it is Ready. It lives as long as the cluster.
    ///
    /// # Errors
    /// [`Error::Usage`] when the name is taken or all numbers are.
    pub async fn add_node(&mut self, name: &str, keep: bool) -> Result<(), Error> {
        Paths::new(name)?; // the same letters
        if self.inside(name).is_ok() {
            return Err(Error::Usage(format!("{name} runs already")));
        }
        let known = self.manifest.nodes.iter().find(|member| member.name == name).map(|member| member.index);
        let free = (1..=9).find(|index| self.manifest.nodes.iter().all(|member| member.index != *index));
        let index = known.or(free).ok_or_else(|| Error::Usage("a cluster has at most nine nodes".to_owned()))?;
        if index == 1 {
            return Err(Error::Usage("the first node is the cluster: start it again with `up`".to_owned()));
        }
        stop(&self.paths.node(name))?;
        hold::remove(&self.paths, &self.paths.node(name))?;
        self.start_node(name, index)?;
        let client = self.client().await?;
        self.explain(api::node_ready(&client, name, PATIENCE).await, name, "kubelet")?;
        if keep { self.keep() } else { Ok(()) }
    }

    /// Kills every process of a node at once, as a power cut would.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such node.
    pub fn kill_node(&self, name: &str) -> Result<(), Error> {
        let inside = self.inside(name)?;
        let pid = i32::try_from(inside.pid()).ok().and_then(Pid::from_raw);
        let Some(pid) = pid else { return Err(Error::Usage(format!("{name} does not run"))) };
        kill_process(pid, Signal::KILL)
            .map_err(|errno| Error::Io { action: format!("kill {name}"), source: errno.into() })?;
        let file = self.paths.node(name).init_pid();
        fs::remove_file(&file).map_err(Error::io("remove", &file))
    }

    /// Stops a node's kubelet where it stands: the node falls silent while its pods run on.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such node.
    pub fn pause_node(&self, name: &str) -> Result<(), Error> {
        self.signal(name, "kubelet", Signal::STOP)
    }

    /// Lets a paused kubelet go on.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such node.
    pub fn resume_node(&self, name: &str) -> Result<(), Error> {
        self.signal(name, "kubelet", Signal::CONT)
    }

    /// Sends a signal to one program of a node; one that ends by it is started again half a second later.
    ///
    /// # Errors
    /// [`Error::Usage`] when it does not run there.
    pub fn signal(&self, node: &str, component: &str, signal: Signal) -> Result<(), Error> {
        let answer = gate::ask(&self.paths.node(node).gate(), &format!("signal {component} {}", signal.as_raw()))?;
        if answer == "ok" { Ok(()) } else { Err(Error::Usage(answer)) }
    }

    /// How every node's programs are.
    #[must_use]
    pub fn status(&self) -> Vec<NodeStatus> {
        let ask = |name: &str| {
            let answer = gate::ask(&self.paths.node(name).gate(), "status")?;
            serde_json::from_str(&answer).map_err(|source| Error::State { path: self.paths.node(name).gate(), source })
        };
        let nodes = self.manifest.nodes.iter();
        nodes.map(|member| NodeStatus { name: member.name.clone(), components: ask(&member.name) }).collect()
    }

    /// The file that a component of a node logs to.
    #[must_use]
    pub fn log(&self, node: &str, component: &str) -> PathBuf {
        self.paths.node(node).log(component)
    }

    fn start_node(&mut self, name: &str, index: u8) -> Result<(), Error> {
        let node = self.paths.node(name);
        let logs = node.root().join("log");
        fs::create_dir_all(&logs).map_err(Error::io("make", &logs))?;
        let mut components = node::components(&self.paths, name, index, &self.programs)?;
        if index == 1 {
            components.extend(control_plane::components(&self.paths, &node, &self.programs, &program()?)?);
        }
        let spec = NodeSpec {
            gate: node.gate(),
            logs,
            covered: ["/var/lib", "/var/log", "/etc", "/opt"].map(PathBuf::from).to_vec(),
            covers: node.root().join("covers"),
            components,
        };
        let text = serde_json::to_vec_pretty(&spec).map_err(|source| Error::State { path: node.spec(), source })?;
        fs::write(node.spec(), text).map_err(Error::io("write", &node.spec()))?;
        self.spawn_holder(name, &node, index == 1)?;
        self.connect(name, index)?;
        gate::ask(&node.gate(), "start")?;
        if !self.manifest.nodes.iter().any(|member| member.name == name) {
            self.manifest.nodes.push(Member { name: name.to_owned(), index });
        }
        wait(&format!("containerd on {name}"), &node.log("containerd"), || {
            Ok(std::os::unix::net::UnixStream::connect(node.containerd_socket()).is_ok())
        })?;
        for image in &self.manifest.images {
            self.import(name, image)?;
        }
        self.save()
    }

    fn spawn_holder(&mut self, name: &str, node: &NodePaths, first: bool) -> Result<(), Error> {
        let log = node.log("holder");
        let output = fs::File::create(&log).map_err(Error::io("write", &log))?;
        let errors = output.try_clone().map_err(Error::io("write", &log))?;
        let mut command = Command::new(program()?);
        command.args(["hold", "--cluster", self.paths.name(), "--node", name]);
        if first {
            command.args(["--api", &format!("{}:6443", network::address(1))]);
        }
        // A group of its own: Ctrl-C is for the starter, and the holder sees it go.
        command.stdin(Stdio::piped()).stdout(output).stderr(errors).process_group(0);
        let mut holder = command.spawn().map_err(Error::io("start", &log))?;
        let started = wait(&format!("the first process of {name}"), &node.log("init"), || {
            if matches!(holder.try_wait(), Ok(Some(_))) {
                return Err(Error::Died { what: name.to_owned(), log: tail(&node.log("init")) + &tail(&log) });
            }
            Ok(gate::ask(&node.gate(), "status").is_ok())
        });
        self.holders.push(holder);
        started?;
        if first {
            wait("the API server's port", &log, || Ok(node.api_port().exists()))?;
            let port: u16 = read_number(&node.api_port()).unwrap_or_default();
            let server = format!("https://127.0.0.1:{port}");
            pki::kubeconfig(&self.paths, "admin", &server, &self.paths.kubeconfig())?;
        }
        Ok(())
    }

    fn connect(&self, name: &str, index: u8) -> Result<(), Error> {
        let own = self.inside(name)?;
        if index == 1 {
            return network::first(own);
        }
        let mut others = Vec::new();
        for member in self.manifest.nodes.iter().filter(|member| member.name != name) {
            // A node that is lost has no network to connect.
            if let Ok(other) = self.inside(&member.name) {
                others.push((member.index, other));
            }
        }
        network::join(self.inside("node-1")?, own, index, &others)
    }

    fn import(&self, node: &str, image: &Path) -> Result<(), Error> {
        let socket = self.paths.node(node).containerd_socket();
        let mut command = self.inside(node)?.all(self.programs.path("ctr")?);
        command.arg("--address").arg(socket).args(["--namespace", "k8s.io", "images", "import"]).arg(image);
        inside::output(&mut command).map(|_| ())
    }

    fn pause_image(&self) -> Result<PathBuf, Error> {
        let path = self.paths.root().join("pause.tar");
        let image = Image::of_program(node::PAUSE, &self.programs.path("pause")?, "65535").map_err(Error::part)?;
        image.write(&path).map_err(Error::part)?;
        Ok(path)
    }

    /// Lets the nodes outlive this process.
    fn keep(&mut self) -> Result<(), Error> {
        for mut holder in self.holders.drain(..) {
            if let Some(mut input) = holder.stdin.take() {
                input.write_all(hold::KEEP).map_err(Error::io("talk to", Path::new("the node's holder")))?;
            }
        }
        Ok(())
    }

    fn save(&self) -> Result<(), Error> {
        let file = self.paths.manifest();
        let text =
            serde_json::to_vec_pretty(&self.manifest).map_err(|source| Error::State { path: file.clone(), source })?;
        fs::write(&file, text).map_err(Error::io("write", &file))
    }

    /// Adds to a time-out what the program that did not get ready wrote last: its files go with the cluster.
    fn explain(&self, result: Result<(), Error>, node: &str, component: &str) -> Result<(), Error> {
        result.map_err(|error| match error {
            Error::Timeout { what, after, look } => {
                let log = self.paths.node(node).log(component);
                Error::Timeout { what, after, look: format!("{look}\n{component} says:\n{}", tail(&log)) }
            }
            other => other,
        })
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            holder.stdin.take();
        }
        for holder in &mut self.holders {
            // Waited for, so that the files are gone when the owner goes on; it cannot be told of a failure here.
            let _ = holder.wait();
        }
    }
}

/// The harness's own program, which nodes start: the running one, or the one built beside the running test.
fn program() -> Result<PathBuf, Error> {
    const NAME: &str = "cofferdam-cluster";
    let this = std::env::current_exe().map_err(Error::io("find", Path::new("the running program")))?;
    let near = this.ancestors().take(3).map(|folder| folder.join(NAME));
    std::iter::once(this.clone())
        .chain(near)
        .find(|path| path.is_file() && path.file_name().is_some_and(|name| name == NAME))
        .ok_or_else(|| Error::Usage(format!("{NAME} was not built: run `cargo build -p {NAME}`")))
}

fn node_names(paths: &Paths) -> Vec<String> {
    let entries = fs::read_dir(paths.nodes()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The process id of a node's holder, if it lives and is one: numbers are used again.
fn holder(node: &NodePaths) -> Option<Pid> {
    let pid: i32 = read_number(&node.holder_pid())?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words: Vec<&[u8]> = command.split(|byte| *byte == 0).collect();
    let cluster = node.cgroup();
    let ours = words.contains(&b"hold".as_slice())
        && words.windows(2).any(|pair| pair[0] == b"--node" && cluster.as_bytes().ends_with(pair[1]));
    if ours { Pid::from_raw(pid) } else { None }
}

/// Ends a node's holder and all that hangs on it.
fn stop(node: &NodePaths) -> Result<(), Error> {
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
fn remove(paths: &Paths) -> Result<(), Error> {
    for name in node_names(paths) {
        hold::remove(paths, &paths.node(&name))?;
    }
    match fs::remove_dir_all(paths.root()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", paths.root())(error)),
        _ => Ok(()),
    }
}

fn wait(what: &str, log: &Path, mut done: impl FnMut() -> Result<bool, Error>) -> Result<(), Error> {
    let start = Instant::now();
    while !done()? {
        if start.elapsed() > PATIENCE {
            return Err(Error::Timeout { what: what.to_owned(), after: PATIENCE, look: tail(log) });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The last lines of a log.
fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_else(|error| format!("{}: {error}", log.display()));
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

fn read_number<N: std::str::FromStr>(file: &Path) -> Option<N> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
