//! Breaking a running cluster as a data centre would, and mending it again.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::json;

use super::Cluster;
use crate::error::Error;
use crate::gate::{self, ComponentStatus};
use crate::inside;

/// How long a fault may take to show, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often is looked whether it has.
const POLL: Duration = Duration::from_millis(50);
/// The node that has the control plane.
const FIRST: &str = "node-1";
const API_SERVER: &str = "kube-apiserver";
const ETCD: &str = "http://127.0.0.1:2379";

/// Nodes.
impl Cluster {
    /// Kills every process of a node at once, as a power cut would. [`Cluster::add_node`] under the same name brings it
    /// back, with an empty disk: its kubelet starts anew what the API server still has for it.
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

    /// Pulls a node's plug: it and its pods run on, and nothing gets there or away. Not for the first node.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such node, or it is the first.
    pub fn unplug_node(&self, name: &str) -> Result<(), Error> {
        self.wire(name, "down")
    }

    /// Puts the plug back.
    ///
    /// # Errors
    /// As [`Cluster::unplug_node`].
    pub fn plug_node(&self, name: &str) -> Result<(), Error> {
        self.wire(name, "up")
    }

    fn wire(&self, name: &str, state: &str) -> Result<(), Error> {
        let index = self.manifest.nodes.iter().find(|member| member.name == name && member.index > 1);
        let index = index.ok_or_else(|| Error::Usage(format!("{name} is no node that hangs on the first")))?.index;
        self.inside(FIRST)?.script(&format!("ip link set to-{index} {state}"))
    }

    /// Sends a signal to one program of a node; one that ends by it is started again half a second later.
    ///
    /// # Errors
    /// [`Error::Usage`] when it does not run there.
    pub fn signal(&self, node: &str, component: &str, signal: Signal) -> Result<(), Error> {
        self.inside(node)?;
        let answer = gate::ask(&self.paths.node(node).gate(), &format!("signal {component} {}", signal.as_raw()))?;
        if answer == "ok" { Ok(()) } else { Err(Error::Usage(answer)) }
    }
}

/// Control plane.
impl Cluster {
    /// Kills the API server and returns when its successor, on the same port and the same etcd, is ready. Blocks.
    ///
    /// Nothing is told to its clients: they see their connections reset, and for a second or more refused.
    ///
    /// # Errors
    /// [`Error::Timeout`] when it does not come back.
    pub fn restart_api_server(&self) -> Result<(), Error> {
        let before = self.component(FIRST, API_SERVER)?.starts;
        self.signal(FIRST, API_SERVER, Signal::KILL)?;
        let started = || Ok(self.component(FIRST, API_SERVER)?.starts > before);
        until("the API server's next start", || started().map_err(|error: Error| error.to_string()))?;
        until("the API server", || self.kubectl(["get", "--raw=/readyz"]).map(|_| true).map_err(|e| e.to_string()))
    }

    /// Stops the API server where it stands: connections stay, and nothing is answered.
    ///
    /// # Errors
    /// [`Error::Usage`] when it does not run.
    pub fn pause_api_server(&self) -> Result<(), Error> {
        self.signal(FIRST, API_SERVER, Signal::STOP)
    }

    /// Lets a paused API server go on.
    ///
    /// # Errors
    /// As [`Cluster::pause_api_server`].
    pub fn resume_api_server(&self) -> Result<(), Error> {
        self.signal(FIRST, API_SERVER, Signal::CONT)
    }

    /// Makes etcd forget every revision but the newest. Blocks.
    ///
    /// The API server goes on answering from memory; with [`Cluster::restart_api_server`] after it, a watch from an
    /// earlier resourceVersion is told 410 Gone.
    ///
    /// # Errors
    /// [`Error::Command`] with etcd's words.
    pub fn compact_etcd(&self) -> Result<(), Error> {
        #[derive(Deserialize)]
        struct Answer {
            header: Header,
        }
        #[derive(Deserialize)]
        struct Header {
            revision: String,
        }
        // Any question is answered with the revision; this one is for the key that is one zero byte.
        let answer = self.ask_etcd("/v3/kv/range", &json!({"key": "AA=="}))?;
        let path = || self.paths.node(FIRST).log("etcd");
        let answer: Answer = serde_json::from_str(&answer).map_err(|source| Error::State { path: path(), source })?;
        self.ask_etcd("/v3/kv/compaction", &json!({"revision": answer.header.revision, "physical": true})).map(drop)
    }

    /// Asks etcd's JSON gateway. kubectl is the HTTP client that is there.
    fn ask_etcd(&self, path: &str, body: &serde_json::Value) -> Result<String, Error> {
        let mut command = self.inside(FIRST)?.network(self.programs.path("kubectl")?);
        command.args(["--kubeconfig=/dev/null", "--server", ETCD, "create", "--raw", path, "--filename=-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let fail = || Error::io("run", Path::new("kubectl"));
        let mut child = command.spawn().map_err(fail())?;
        if let Some(mut stdin) = child.stdin.take() {
            // When kubectl has ended already, its own words are the better error.
            let _ = stdin.write_all(body.to_string().as_bytes());
        }
        let output = inside::check(&command, child.wait_with_output().map_err(fail())?)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Resets every established connection that the API server has, from its side; it runs on and takes new ones. Blocks.
    ///
    /// One that is being closed already is nobody's any more, and some kernels leave it its time.
    ///
    /// # Errors
    /// [`Error::Timeout`] when this kernel cannot do that.
    pub fn reset_api_connections(&self) -> Result<(), Error> {
        let ss = |flags: &str| {
            let mut command = self.inside(FIRST)?.network("ss");
            command.args([flags, "state", "established", "sport = :6443"]);
            let output = inside::output(&mut command)?;
            Ok::<_, Error>(peers(&String::from_utf8_lossy(&output.stdout)))
        };
        let before = ss("-Htn")?;
        until("the end of the API server's connections", || {
            let after = ss("-KHtn").and_then(|_| ss("-Htn")).map_err(|error| error.to_string())?;
            match before.iter().find(|peer| after.contains(peer)) {
                Some(peer) => Err(format!("{peer} is connected: this takes a kernel with CONFIG_INET_DIAG_DESTROY")),
                None => Ok(true),
            }
        })
    }

    fn component(&self, node: &str, name: &str) -> Result<ComponentStatus, Error> {
        let gate = self.paths.node(node).gate();
        let answer = gate::ask(&gate, "status")?;
        let all: Vec<ComponentStatus> =
            serde_json::from_str(&answer).map_err(|source| Error::State { path: gate, source })?;
        all.into_iter()
            .find(|component| component.name == name)
            .ok_or_else(|| Error::Usage(format!("{node} has no {name}")))
    }
}

/// Pods.
impl Cluster {
    /// Stops every process of a pod's containers where it stands: the pod stays Running and Ready, as far as no probe
    /// says otherwise, and does nothing.
    ///
    /// # Errors
    /// As [`Cluster::signal_pod`].
    pub fn pause_pod(&self, namespace: &str, pod: &str) -> Result<(), Error> {
        self.signal_pod(namespace, pod, None, Signal::STOP)
    }

    /// Lets the processes of a paused pod go on.
    ///
    /// # Errors
    /// As [`Cluster::signal_pod`].
    pub fn resume_pod(&self, namespace: &str, pod: &str) -> Result<(), Error> {
        self.signal_pod(namespace, pod, None, Signal::CONT)
    }

    /// Kills every process of a pod's containers, as the kernel does for want of memory; the kubelet goes on from there.
    ///
    /// # Errors
    /// As [`Cluster::signal_pod`].
    pub fn kill_pod(&self, namespace: &str, pod: &str) -> Result<(), Error> {
        self.signal_pod(namespace, pod, None, Signal::KILL)
    }

    /// Sends a signal to every process of a pod's containers, or of the one that is named.
    ///
    /// # Errors
    /// [`Error::Command`] when there is no such pod, [`Error::Usage`] when no process of it runs.
    pub fn signal_pod(&self, namespace: &str, pod: &str, container: Option<&str>, signal: Signal) -> Result<(), Error> {
        let mut signalled = 0;
        for pid in self.processes(namespace, pod, container)? {
            match kill_process(pid, signal) {
                Ok(()) => signalled += 1,
                Err(rustix::io::Errno::SRCH) => {} // it has ended by itself
                Err(errno) => {
                    return Err(Error::Io { action: format!("signal a process of {pod}"), source: errno.into() });
                }
            }
        }
        if signalled == 0 { Err(Error::Usage(format!("no process of {namespace}/{pod} runs"))) } else { Ok(()) }
    }

    /// The processes of a pod's containers, or of the one that is named.
    pub(super) fn processes(&self, namespace: &str, pod: &str, container: Option<&str>) -> Result<Vec<Pid>, Error> {
        let format = r#"--output=jsonpath={range .status.containerStatuses[*]}{.name} {.containerID}{"\n"}{end}"#;
        let statuses = self.kubectl(["get", "pod", "--namespace", namespace, pod, format])?;
        Ok(container_ids(&statuses, container).into_iter().flat_map(processes_of).collect())
    }
}

/// The ids of the containers in lines like `NAME containerd://ID`, or of the one called `name`.
fn container_ids<'a>(statuses: &'a str, name: Option<&str>) -> Vec<&'a str> {
    let fields = statuses.lines().filter_map(|line| line.split_once(' '));
    let wanted = fields.filter(|(container, _)| name.is_none_or(|name| name == *container));
    wanted.filter_map(|(_, id)| id.rsplit_once("://").map(|(_, id)| id)).collect()
}

/// The processes of a container, which its cgroups are named after, with either version of cgroups.
fn processes_of(container: &str) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_it = processes.filter(|process| {
        fs::read_to_string(process.path().join("cgroup")).is_ok_and(|groups| groups.contains(container))
    });
    of_it.filter_map(|process| process.file_name().to_str()?.parse().ok().and_then(Pid::from_raw)).collect()
}

/// The last column of what `ss` prints without its header: who is connected.
fn peers(connections: &str) -> Vec<SocketAddr> {
    connections.lines().filter_map(|line| line.split_whitespace().last()?.parse().ok()).collect()
}

/// Looks until something holds; why it does not is what the error says.
fn until(what: &str, holds: impl Fn() -> Result<bool, String>) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        let look = match holds() {
            Ok(true) => return Ok(()),
            Ok(false) => "not yet".to_owned(),
            Err(error) => error,
        };
        if start.elapsed() > PATIENCE {
            return Err(Error::Timeout { what: what.to_owned(), after: PATIENCE, look });
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_containers_of_a_pod_are_told_apart_by_name_and_one_that_never_ran_has_no_id() {
        let statuses = "main containerd://aa\nside containerd://bb\nwaiting \n";
        assert_eq!(container_ids(statuses, None), ["aa", "bb"]);
        assert_eq!(container_ids(statuses, Some("side")), ["bb"]);
        assert!(container_ids(statuses, Some("waiting")).is_empty());
    }

    #[test]
    fn the_processes_of_no_container_are_none() {
        assert!(processes_of(&"f".repeat(64)).is_empty());
    }

    #[test]
    fn a_connection_is_known_by_its_peer_in_either_family() {
        let lines = "ESTAB 0 0 10.88.0.1:6443 10.88.0.2:40000\n\
                     0 0 [::ffff:10.88.0.1]:6443 [::ffff:10.244.1.2]:40001\n";
        let peers: Vec<String> = peers(lines).iter().map(ToString::to_string).collect();
        assert_eq!(peers, ["10.88.0.2:40000", "[::ffff:10.244.1.2]:40001"]);
    }
}
