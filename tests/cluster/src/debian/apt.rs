//! apt, asked as if nothing were installed.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::DebianError;

/// An archive of a package, by its file name, as in `libc6_2.36-9_amd64.deb`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Archive(String);

impl Archive {
    /// The file name.
    pub(super) fn name(&self) -> &str {
        &self.0
    }
}

/// apt with a state of its own: the machine's package index, an empty list of installed packages, a folder for archives.
/// It takes none of the machine's package locks, and its folder goes with it.
#[derive(Debug)]
pub(super) struct Apt {
    folder: TempDir,
}

impl Apt {
    pub(super) fn new() -> Result<Self, DebianError> {
        let temporary = std::env::temp_dir();
        let folder = TempDir::with_prefix("cofferdam-apt-").map_err(DebianError::io("write to", &temporary))?;
        let apt = Self { folder };
        let partial = apt.archives().join("partial");
        fs::create_dir_all(&partial).map_err(DebianError::io("create", &partial))?;
        let status = apt.status();
        fs::write(&status, "").map_err(DebianError::io("write", &status))?;
        Ok(apt)
    }

    /// What would have to be unpacked for these packages, dependencies first as far as apt orders them.
    pub(super) fn resolve(&self, packages: &[&str]) -> Result<Vec<Archive>, DebianError> {
        self.install("--print-uris", packages).map(|output| archives(&output))
    }

    /// Downloads these packages and what they depend on; apt checks every archive against the signed index.
    pub(super) fn download(&self, packages: &[&str]) -> Result<(), DebianError> {
        self.install("--download-only", packages).map(drop)
    }

    /// Where a downloaded archive lies.
    pub(super) fn archive(&self, archive: &Archive) -> Result<PathBuf, DebianError> {
        let path = self.archives().join(archive.name());
        if path.is_file() { Ok(path) } else { Err(DebianError::NotDownloaded(archive.name().to_owned())) }
    }

    fn install(&self, action: &str, packages: &[&str]) -> Result<String, DebianError> {
        let mut command = Command::new("apt-get");
        command.args(["install", "--yes", "--quiet", "--quiet", "--no-install-recommends", action]);
        let option = |name: &str, value: &str| format!("{name}={value}");
        let path = |path: PathBuf| path.to_string_lossy().into_owned();
        for option in [
            option("Dir::State::Status", &path(self.status())),
            option("Dir::State::extended_states", &path(self.folder.path().join("extended_states"))),
            option("Dir::Cache::Archives", &path(self.archives())),
            // Or apt would rewrite the machine's own for a machine without packages.
            option("Dir::Cache::pkgcache", ""),
            option("Dir::Cache::srcpkgcache", ""),
            // The user that it would download as may not write to our folder.
            option("APT::Sandbox::User", "root"),
        ] {
            command.arg("--option").arg(option);
        }
        command.arg("--").args(packages);
        output("apt-get", command)
    }

    fn archives(&self) -> PathBuf {
        self.folder.path().join("archives")
    }

    fn status(&self) -> PathBuf {
        self.folder.path().join("status")
    }
}

/// Refreshes the machine's package index.
pub(super) fn update() -> Result<(), DebianError> {
    tracing::info!("refreshing the package index");
    let mut command = Command::new("apt-get");
    command.args(["update", "--quiet", "--quiet"]);
    output("apt-get", command).map(drop)
}

/// Runs `program` to its end and returns what it wrote.
fn output(program: &'static str, mut command: Command) -> Result<String, DebianError> {
    command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
    let output = command.output().map_err(|cause| unstartable(program, cause))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let action = command.get_args().next().unwrap_or_default().to_string_lossy();
    Err(DebianError::Command {
        command: format!("{program} {action}"),
        status: output.status.to_string(),
        output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// What it means that a program could not be started.
pub(super) fn unstartable(program: &'static str, cause: io::Error) -> DebianError {
    if cause.kind() == io::ErrorKind::NotFound {
        DebianError::NotDebian { program }
    } else {
        DebianError::Io { action: "run", path: program.into(), cause }
    }
}

/// The archives in the output of `--print-uris`, whose lines are `'URI' NAME SIZE HASH`.
pub(super) fn archives(output: &str) -> Vec<Archive> {
    output
        .lines()
        .filter(|line| line.starts_with('\''))
        .filter_map(|line| line.split_whitespace().nth(1))
        .map(|name| Archive(name.to_owned()))
        .collect()
}
