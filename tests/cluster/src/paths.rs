//! Where a cluster keeps its files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The folder of one cluster. Everything that a cluster writes lies under it, so that removing it removes all.
#[derive(Debug, Clone)]
pub struct Paths {
    name: String,
    root: PathBuf,
}

impl Paths {
    /// The folder of the cluster called `name`.
    ///
    /// The name becomes part of Unix socket paths (108 bytes at most) and of cgroup names, hence its limits.
    ///
    /// # Errors
    /// [`Error::Usage`] when the name is not 1 to 24 lower-case letters, digits or hyphens.
    pub fn new(name: &str) -> Result<Self, Error> {
        let fits = (1..=24).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !name.starts_with('-')
            && !name.ends_with('-');
        if !fits {
            return Err(Error::Usage(format!(
                "`{name}` cannot name a cluster: use 1 to 24 lower-case letters, digits and inner hyphens"
            )));
        }
        // Not /tmp: it may be a tmpfs, and containerd keeps overlay layers here. Not /var/lib: nodes cover it.
        Ok(Self { name: name.to_owned(), root: PathBuf::from(format!("/var/tmp/cofferdam-cluster-{name}")) })
    }

    /// The cluster's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cluster's own folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Certificates and keys.
    #[must_use]
    pub fn pki(&self) -> PathBuf {
        self.root.join("pki")
    }

    /// What the cluster is made of, for the commands that come later.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.root.join("cluster.json")
    }

    /// The administrator's kubeconfig for use on the machine itself.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.root.join("kubeconfig")
    }

    /// There once the API server has been ready, roles and all: what asks it earlier is refused, and gives up.
    #[must_use]
    pub fn api_ready(&self) -> PathBuf {
        self.root.join("api.ready")
    }

    /// A component's kubeconfig, for use inside the cluster's network.
    #[must_use]
    pub fn inner_kubeconfig(&self, user: &str) -> PathBuf {
        self.pki().join(format!("{user}.kubeconfig"))
    }

    /// The folder that holds one folder per node.
    #[must_use]
    pub fn nodes(&self) -> PathBuf {
        self.root.join("nodes")
    }

    /// One node's folder.
    #[must_use]
    pub fn node(&self, node: &str) -> NodePaths {
        NodePaths {
            root: self.nodes().join(node),
            cluster: self.name.clone(),
            name: node.to_owned(),
            // A character that no name has, or node b of cluster a-b could be node b-b of cluster a.
            cgroup: format!("cofferdam-{}_{node}", self.name),
        }
    }
}

/// The files of one node.
#[derive(Debug, Clone)]
pub struct NodePaths {
    root: PathBuf,
    cluster: String,
    name: String,
    cgroup: String,
}

impl NodePaths {
    /// The node's own folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The name of the node's cluster.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The node's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the node's cgroup in every hierarchy.
    #[must_use]
    pub fn cgroup(&self) -> &str {
        &self.cgroup
    }

    /// What the node runs, read by its first process.
    #[must_use]
    pub fn spec(&self) -> PathBuf {
        self.root.join("node.json")
    }

    /// The socket through which the outside asks the node's first process.
    #[must_use]
    pub fn gate(&self) -> PathBuf {
        self.root.join("gate.sock")
    }

    /// The process id, on the machine, of the holder: ending it ends the node.
    #[must_use]
    pub fn holder_pid(&self) -> PathBuf {
        self.root.join("holder.pid")
    }

    /// The process id, on the machine, of the node's first process: what `nsenter` needs.
    #[must_use]
    pub fn init_pid(&self) -> PathBuf {
        self.root.join("init.pid")
    }

    /// The port on the machine's loopback that leads to the API server, where this node runs one.
    #[must_use]
    pub fn api_port(&self) -> PathBuf {
        self.root.join("api.port")
    }

    /// The socket through which relays into the node are ordered, see [`crate::relay`].
    #[must_use]
    pub fn relays(&self) -> PathBuf {
        self.root.join("relays.sock")
    }

    /// There once the holder has begun to end the node.
    #[must_use]
    pub fn ending(&self) -> PathBuf {
        self.root.join("ending")
    }

    /// There once the node has been Ready: what looks for its Node object earlier gives up.
    #[must_use]
    pub fn ready(&self) -> PathBuf {
        self.root.join("ready")
    }

    /// Where a component writes its log.
    #[must_use]
    pub fn log(&self, component: &str) -> PathBuf {
        self.root.join("log").join(format!("{component}.log"))
    }

    /// containerd's socket.
    #[must_use]
    pub fn containerd_socket(&self) -> PathBuf {
        self.root.join("containerd.sock")
    }
}

/// Writes a file whole or not at all: others wait for it to appear and read it at once.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Error> {
    let partial = path.with_extension("partial");
    fs::write(&partial, text).map_err(Error::io("write", &partial))?;
    fs::rename(&partial, path).map_err(Error::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_leave_the_folder_is_refused() {
        for name in ["", "..", "a/b", "A", "a b", "-x", "x-", "abcdefghijklmnopqrstuvwxy"] {
            assert!(Paths::new(name).is_err(), "{name:?} was taken");
        }
        assert!(Paths::new("demo-2").is_ok());
    }

    #[test]
    fn the_longest_socket_path_fits_a_unix_address() {
        let paths = Paths::new(&"x".repeat(24)).unwrap();
        assert!(paths.node("node-99").containerd_socket().as_os_str().len() < 100);
    }
}
