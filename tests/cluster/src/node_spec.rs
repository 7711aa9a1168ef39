//! What a node runs: written by whoever starts it, read by the node's first process.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that the first process of a node has to know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NodeSpec {
    /// The socket it listens on for orders, see [`crate::gate`].
    pub(crate) gate: PathBuf,
    /// Where logs go.
    pub(crate) logs: PathBuf,
    /// Folders of the machine that programs write to by habit; the node sees a private copy of each.
    pub(crate) covered: Vec<PathBuf>,
    /// Where those private copies keep what was written.
    pub(crate) covers: PathBuf,
    /// The programs, each started as soon as what it waits for is there.
    pub(crate) components: Vec<Component>,
}

/// One program of a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Component {
    /// Its name in logs and orders.
    pub(crate) name: String,
    /// Program and arguments.
    pub(crate) argv: Vec<String>,
    /// Environment on top of the inherited one.
    pub(crate) env: Vec<(String, String)>,
    /// What has to answer before it is started.
    pub(crate) after: Vec<Dependency>,
}

/// Something that a component needs to find running.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Dependency {
    /// A Unix socket that accepts.
    Socket(PathBuf),
    /// A TCP address that accepts.
    Tcp(SocketAddr),
    /// A file that is there.
    File(PathBuf),
}

impl Component {
    /// A component that waits for nothing.
    pub(crate) fn new(name: &str, argv: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            name: name.to_owned(),
            argv: argv.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            after: Vec::new(),
        }
    }

    /// The same, started once `dependency` answers.
    pub(crate) fn after(mut self, dependency: Dependency) -> Self {
        self.after.push(dependency);
        self
    }

    /// The same, with one more environment variable.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }
}
