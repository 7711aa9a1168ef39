//! Starting a cluster, node by node.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Cluster, Manifest, Member, Options, read_number, stop};
use crate::error::{Error, last_lines};
use crate::gate;
use crate::image::Image;
use crate::node_spec::NodeSpec;
use crate::paths::{NodePaths, Paths};
use crate::programs::Programs;
use crate::progress::Progress;
use crate::{addon, api, control_plane, hold, network, node, pki, turn};

/// How many watches of files root may have: a node has some twenty, and a kubelet that gets none never registers. Most machines
/// allow 128.
const WATCHES: (&str, u64) = ("/proc/sys/fs/inotify/max_user_instances", 1024);

/// How long a start may take before it is called a failure. Longer than a kubelet that could not write its `CSINode`, since its
/// node was not registered yet, waits before it tries for the last time: 140 s. Machines that run tests are busy.
const PATIENCE: Duration = Duration::from_mins(5);

/// Raises a limit of the machine's, where it is lower.
fn raise(limit: &Path, least: u64) -> Result<(), Error> {
    let text = fs::read_to_string(limit).map_err(Error::io("read", limit))?;
    if text.trim().parse().is_ok_and(|is: u64| is < least) {
        fs::write(limit, least.to_string()).map_err(Error::io("write", limit))?;
    }
    Ok(())
}

/// The turn of who starts a cluster of that name; none while another process has it.
pub(super) fn turn(name: &str) -> Result<Option<File>, Error> {
    turn::take(&turn::called(&format!("start-{name}")).map_err(Error::part)?).map_err(Error::part)
}

impl Cluster {
    /// Starts a cluster and returns when its nodes are Ready and names resolve; what an earlier one of that name left is
    /// removed.
    ///
    /// # Errors
    /// [`Error::Usage`] when one of that name runs; otherwise what could not be started and where its log is.
    pub async fn up(options: &Options, progress: &Progress) -> Result<Self, Error> {
        let paths = Paths::new(&options.name)?;
        if !rustix::process::geteuid().is_root() {
            return Err(Error::Usage("namespaces, mounts and cgroups need root: start it with sudo".to_owned()));
        }
        let Some(_turn) = turn(&options.name)? else {
            return Err(Error::Usage(format!(
                "another process is starting a cluster called `{}`: wait for it",
                options.name
            )));
        };
        stop::ended(&paths)?;
        if Self::runs(&paths) {
            return Err(Error::Usage(format!(
                "a cluster called `{0}` runs already: `cofferdam-cluster down --name {0}` ends it",
                options.name
            )));
        }
        let programs = Programs::ensure(&options.kubernetes, progress)?;
        stop::remove(&paths)?;
        raise(Path::new(WATCHES.0), WATCHES.1)?;
        pki::create(&paths, &network::address(1), network::KUBERNETES_SERVICE)?;
        let manifest = Manifest {
            kubernetes: options.kubernetes.clone(),
            not_ready_after: options.not_ready_after,
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
        cluster.explain(cluster.while_it_lives(api::ready(&client, PATIENCE)).await, "node-1", "kube-apiserver")?;
        let ready = cluster.paths.api_ready();
        fs::write(&ready, "").map_err(Error::io("write", &ready))?;
        for member in &cluster.manifest.nodes {
            cluster.node_ready(&client, &member.name).await?;
        }
        let ready = cluster.while_it_lives(api::namespace_ready(&client, "default", PATIENCE)).await;
        cluster.explain(ready, "node-1", "kube-controller-manager")?;
        cluster.install(&addon::COREDNS, progress)?;
        if options.keep {
            cluster.keep()?;
        }
        Ok(cluster)
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
        stop::node(&self.paths.node(name))?;
        hold::remove(&self.paths, &self.paths.node(name))?;
        self.start_node(name, index)?;
        let client = self.client().await?;
        self.node_ready(&client, name).await?;
        if keep { self.keep() } else { Ok(()) }
    }

    fn start_node(&mut self, name: &str, index: u8) -> Result<(), Error> {
        let node = self.paths.node(name);
        let logs = node.root().join("log");
        fs::create_dir_all(&logs).map_err(Error::io("make", &logs))?;
        let patience = self.manifest.not_ready_after;
        let mut components = node::components(&self.paths, name, index, patience, &self.programs)?;
        if index == 1 {
            let program = program()?;
            components.extend(control_plane::components(&self.paths, &node, patience, &self.programs, &program)?);
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
            // The holder may be slower to write down which process that is than the process is to answer.
            Ok(gate::ask(&node.gate(), "status").is_ok() && self.inside(name).is_ok())
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

    /// Waits until a node is Ready, and lets the programs go on that look for it.
    async fn node_ready(&self, client: &kube::Client, name: &str) -> Result<(), Error> {
        self.explain(self.while_it_lives(api::node_ready(client, name, PATIENCE)).await, name, "kubelet")?;
        let ready = self.paths.node(name).ready();
        fs::write(&ready, "").map_err(Error::io("write", &ready))
    }

    /// Waits for `work`, but not for a cluster that somebody ends in the meantime.
    async fn while_it_lives(&self, work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        let ended = async {
            while self.manifest.nodes.iter().all(|member| stop::holder(&self.paths.node(&member.name)).is_some()) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            result = work => result,
            () = ended => Err(Error::Usage("the cluster was ended while it started".to_owned())),
        }
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
    last_lines(&text, 15).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_and_never_lowered() {
        let folder = tempfile::tempdir().unwrap();
        let limit = folder.path().join("limit");
        for (before, after) in [("128\n", "1024"), ("1024\n", "1024\n"), ("65536\n", "65536\n")] {
            fs::write(&limit, before).unwrap();
            raise(&limit, 1024).unwrap();
            assert_eq!(fs::read_to_string(&limit).unwrap(), after);
        }
    }
}
