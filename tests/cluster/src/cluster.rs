//! A cluster: what can be done to one that runs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::api;
use crate::error::Error;
use crate::gate::{self, ComponentStatus};
use crate::inside::{self, Inside};
use crate::parts;
use crate::paths::{Paths, write_whole};
use crate::programs::Programs;

pub use rustix::process::Signal;

mod faults;
mod memory;
mod start;
mod stop;

pub use memory::Memory;

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
    /// How long a node may be silent before it is called not ready; Kubernetes' own time (50 s or so) if not given.
    ///
    /// At least 2 s. Below 8 s a busy machine may lose a node that is only slow.
    pub not_ready_after: Option<Duration>,
}

impl Default for Options {
    /// One node of the newest Kubernetes, called `dev`, which ends with this process.
    fn default() -> Self {
        Self {
            name: "dev".to_owned(),
            kubernetes: parts::NEWEST.to_owned(),
            nodes: 1,
            keep: false,
            not_ready_after: None,
        }
    }
}

/// What later commands have to know about a running cluster.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    kubernetes: String,
    /// Of nodes that are added later too.
    not_ready_after: Option<Duration>,
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
    /// The running cluster called `name`, for one more command.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is none.
    pub fn attach(name: &str) -> Result<Self, Error> {
        let paths = Paths::new(name)?;
        if !Self::runs(&paths) {
            return Err(Error::Usage(if start::turn(name)?.is_none() {
                format!("a cluster called `{name}` is being started: wait for it")
            } else {
                format!("no cluster called `{name}` runs: `cofferdam-cluster up --name {name}` starts one")
            }));
        }
        let file = paths.manifest();
        let text = fs::read(&file).map_err(Error::io("read", &file))?;
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|source| Error::State { path: file, source })?;
        let programs = Programs::new(manifest.folders.clone());
        Ok(Self { paths, manifest, programs, holders: Vec::new() })
    }

    /// Whether the holder of any node lives.
    fn runs(paths: &Paths) -> bool {
        stop::node_names(paths).iter().any(|node| stop::holder(&paths.node(node)).is_some())
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

    /// The cluster's files.
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
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
        command.envs(self.kubectl_environment());
        Ok(command)
    }

    /// What makes kubectl talk to this cluster, and keep what it remembers of it where the cluster's end takes it away.
    #[must_use]
    pub fn kubectl_environment(&self) -> [(&'static str, PathBuf); 2] {
        [("KUBECONFIG", self.paths.kubeconfig()), ("KUBECACHEDIR", self.paths.root().join("kubectl-cache"))]
    }

    /// Runs `kubectl` and returns what it printed.
    ///
    /// # Errors
    /// [`Error::Command`] with its last lines when it fails.
    pub fn kubectl<S: AsRef<std::ffi::OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<String, Error> {
        self.kubectl_with(arguments, "")
    }

    /// Runs `kubectl` on `input` and returns what it printed.
    ///
    /// # Errors
    /// [`Error::Command`] with its last lines when it fails.
    pub fn kubectl_with<S: AsRef<std::ffi::OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
        input: &str,
    ) -> Result<String, Error> {
        let mut command = self.kubectl_command()?;
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let fail = || Error::io("run", Path::new("kubectl"));
        let mut child = command.spawn().map_err(fail())?;
        if let Some(mut stdin) = child.stdin.take() {
            // When kubectl has ended already, its own words are the better error.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = inside::check(&command, child.wait_with_output().map_err(fail())?)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Applies manifests server-side, as the field manager `cofferdam-cluster`.
    ///
    /// # Errors
    /// [`Error::Command`] with kubectl's words.
    pub fn apply(&self, manifests: &str) -> Result<String, Error> {
        let how = ["--server-side", "--field-manager=cofferdam-cluster", "--force-conflicts"];
        self.kubectl_with(["apply", "--filename=-"].iter().chain(&how), manifests)
    }

    /// The way into a node.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such node.
    pub fn inside(&self, node: &str) -> Result<Inside, Error> {
        let paths = self.paths.node(node);
        let spec = paths.spec();
        let words = [b"init".as_slice(), spec.as_os_str().as_encoded_bytes()];
        let pid = read_number(&paths.init_pid()).filter(|pid| stop::runs_with(*pid, &words));
        pid.map(Inside::new).ok_or_else(|| Error::Usage(format!("{node} does not run in this cluster")))
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

    /// The administrator's kubeconfig, for clients inside the cluster's network.
    #[must_use]
    pub fn inner_kubeconfig(&self) -> PathBuf {
        self.paths.inner_kubeconfig("admin")
    }

    /// The file that a component of a node logs to.
    ///
    /// # Errors
    /// [`Error::Usage`], with the components that have one, when this has none.
    pub fn log(&self, node: &str, component: &str) -> Result<PathBuf, Error> {
        let log = self.paths.node(node).log(component);
        if log.exists() {
            return Ok(log);
        }
        let folder = log.parent().map(fs::read_dir).and_then(Result::ok).into_iter().flatten().flatten();
        let mut known: Vec<String> =
            folder.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".log").map(str::to_owned)).collect();
        known.sort();
        let known = if known.is_empty() { "no node of that name".to_owned() } else { known.join(", ") };
        Err(Error::Usage(format!("{component} has no log on {node}; there is {known}")))
    }

    /// `ctr` for what containerd runs for a node's kubelet, to which arguments can be added.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such node.
    pub fn ctr(&self, node: &str) -> Result<Command, Error> {
        let mut command = self.inside(node)?.all(self.programs.path("ctr")?);
        command.arg("--address").arg(self.paths.node(node).containerd_socket()).args(["--namespace", "k8s.io"]);
        Ok(command)
    }

    fn import(&self, node: &str, image: &Path) -> Result<(), Error> {
        inside::output(self.ctr(node)?.args(["images", "import"]).arg(image)).map(|_| ())
    }

    fn save(&self) -> Result<(), Error> {
        let file = self.paths.manifest();
        let text = serde_json::to_string_pretty(&self.manifest);
        write_whole(&file, &text.map_err(|source| Error::State { path: file.clone(), source })?)
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

fn read_number<N: std::str::FromStr>(file: &Path) -> Option<N> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}
