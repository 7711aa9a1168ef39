//! Where the cluster's programs lie.

use std::path::PathBuf;

use crate::error::Error;
use crate::packages;
use crate::parts::{self, CNI, CONTAINERD, KUBE_ROUTER, Part, RUNC};
use crate::progress::Progress;

/// What every node runs, beside Kubernetes.
const NODE: [Part; 4] = [CONTAINERD, RUNC, CNI, KUBE_ROUTER];

/// The `PATH` of a Linux system, which other builders give to images too.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The folders that hold the programs of one Kubernetes version, first match first.
#[derive(Debug, Clone)]
pub struct Programs {
    folders: Vec<PathBuf>,
}

impl Programs {
    /// Programs that lie in `folders`.
    #[must_use]
    pub fn new(folders: Vec<PathBuf>) -> Self {
        Self { folders }
    }

    /// The programs of a node with Kubernetes `minor`, as in `1.37`, built if they are not in the cache yet.
    ///
    /// # Errors
    /// [`Error::Part`] when something is missing on the machine or cannot be built.
    pub fn ensure(minor: &str, progress: &Progress) -> Result<Self, Error> {
        packages::ensure(packages::RUNTIME, progress).map_err(Error::part)?;
        let mut wanted = vec![parts::kubernetes(minor).map_err(Error::part)?];
        wanted.extend(NODE);
        Ok(Self { folders: parts::ensure(&wanted, progress).map_err(Error::part)? })
    }

    /// The folders.
    #[must_use]
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The program called `name`.
    ///
    /// # Errors
    /// [`Error::Usage`] when no folder has it.
    pub fn path(&self, name: &str) -> Result<PathBuf, Error> {
        let found = self.folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        found.ok_or_else(|| Error::Usage(format!("the program `{name}` was not built")))
    }

    /// A `PATH` that has these programs before the machine's own.
    #[must_use]
    pub fn search_path(&self) -> String {
        let mut folders: Vec<String> = self.folders.iter().map(|folder| folder.display().to_string()).collect();
        folders.push(SYSTEM_PATH.to_owned());
        folders.join(":")
    }
}
