//! Builds the programs of this workspace as static executables, which run in an image that holds nothing else.
//!
//! No musl is needed: glibc links statically too (`-C target-feature=+crt-static`), and since 2.34 it resolves names
//! without loading a library. The flag must not reach build scripts and procedural macros, which the compiler loads;
//! hence `--target`, which keeps the two apart even where host and target are the same.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;

mod elf;

/// The packages that are built, each with a program of the same name. Always together: cargo unites the features of
/// what it builds at once, and would build the dependencies anew for every other choice.
const PACKAGES: [&str; 5] =
    ["cofferdam-webhook", "cofferdam-agent", "cofferdam-fetch", "cofferdam-api", "cofferdam-fixture"];

/// Why there are no programs to put into an image. Each message is whole: it names the cause too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Not a machine whose programs run in a container.
    #[error("programs for images are built on Linux only; cargo builds for {0} here")]
    NotLinux(String),
    /// cargo is not there or cannot be talked to.
    #[error("cannot run {}: {cause}; install a Rust toolchain", Path::new(.cargo).display())]
    Cargo {
        /// What was started.
        cargo: OsString,
        /// What the system answered.
        cause: io::Error,
    },
    /// cargo has said on standard error what is wrong.
    #[error("cargo could not build the programs ({0}); its messages are above")]
    Failed(ExitStatus),
    /// cargo built without saying where a program lies.
    #[error("cargo built no program for package {0}: it wants a binary of the same name")]
    Missing(&'static str),
    /// A program that would not start in an image without libraries.
    #[error("{} needs a dynamic loader, so something overrides the target's rustflags: look at cargo's configuration", .0.display())]
    Dynamic(PathBuf),
    /// The file system said no.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The program.
        path: PathBuf,
        /// What the system answered.
        cause: io::Error,
    },
}

/// Where the static programs lie.
#[derive(Debug, Clone)]
pub struct Programs {
    target: PathBuf,
    paths: [PathBuf; PACKAGES.len()],
}

impl Programs {
    /// The program that package `cofferdam-webhook` gives.
    #[must_use]
    pub fn webhook(&self) -> &Path {
        &self.paths[0]
    }

    /// The program that package `cofferdam-agent` gives.
    #[must_use]
    pub fn agent(&self) -> &Path {
        &self.paths[1]
    }

    /// The program that package `cofferdam-fetch` gives.
    #[must_use]
    pub fn fetch(&self) -> &Path {
        &self.paths[2]
    }

    /// The program that package `cofferdam-api` gives.
    #[must_use]
    pub fn api(&self) -> &Path {
        &self.paths[3]
    }

    /// The program that package `cofferdam-fixture` gives.
    #[must_use]
    pub fn fixture(&self) -> &Path {
        &self.paths[4]
    }

    /// cargo's target folder.
    #[must_use]
    pub fn target(&self) -> &Path {
        &self.target
    }
}

/// Has cargo build the programs in the workspace at `workspace`; it does nothing where nothing changed.
///
/// They lie in the workspace's own target folder (`CARGO_TARGET_DIR`, if that is set). cargo's progress goes to standard
/// error. Blocks, for minutes the first time.
pub fn build_programs(workspace: &Path) -> Result<Programs, BuildError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let unable = |cause| BuildError::Cargo { cargo: cargo.clone(), cause };
    let triple = host(&Command::new(&cargo).arg("-vV").output().map_err(unable)?.stdout);
    if !triple.contains("-linux-") {
        return Err(BuildError::NotLinux(triple));
    }
    let mut build = Command::new(&cargo);
    build
        .current_dir(workspace)
        .args(["build", "--release", "--target", &triple, "--message-format", "json-render-diagnostics"])
        .args(PACKAGES.iter().flat_map(|package| ["--package", package]))
        .env(rustflags_variable(&triple), "-C target-feature=+crt-static")
        // Either would take the place of the target's flags.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    // What cargo says of the package that called us: build scripts look at it, and would run anew for every caller.
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"]
            .iter()
            .any(|p| name_text.starts_with(p))
        {
            build.env_remove(&name);
        }
    }
    let mut child = build.spawn().map_err(unable)?;
    let mut executables = Vec::new();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            executables.extend(executable(&line.map_err(unable)?));
        }
    }
    let status = child.wait().map_err(unable)?;
    if !status.success() {
        return Err(BuildError::Failed(status));
    }
    programs(&executables)
}

/// One path for each package, in order; every one checked.
fn programs(executables: &[(String, PathBuf)]) -> Result<Programs, BuildError> {
    let find = |package: &'static str| {
        let found = executables.iter().find(|(name, _)| name == package);
        found.map(|(_, path)| path.clone()).ok_or(BuildError::Missing(package))
    };
    let [webhook, agent, fetch, api, fixture] = PACKAGES;
    let paths = [find(webhook)?, find(agent)?, find(fetch)?, find(api)?, find(fixture)?];
    for path in &paths {
        let interpreter = elf::has_interpreter(path);
        if interpreter.map_err(|cause| BuildError::Read { path: path.clone(), cause })? {
            return Err(BuildError::Dynamic(path.clone()));
        }
    }
    // <target>/<triple>/release/<program>
    let target = paths[0].ancestors().nth(3).unwrap_or(Path::new("/")).to_owned();
    Ok(Programs { target, paths })
}

/// The triple in the output of `cargo -vV`; empty if there is none.
fn host(version: &[u8]) -> String {
    let version = String::from_utf8_lossy(version);
    version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default().to_owned()
}

fn rustflags_variable(triple: &str) -> String {
    format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_ascii_uppercase().replace(['-', '.'], "_"))
}

/// Name and path of the program that one of cargo's messages announces, if it does.
fn executable(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let path = message.get("executable")?.as_str()?;
    Some((message.get("target")?.get("name")?.as_str()?.to_owned(), path.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_from_cargos_own_words() {
        assert_eq!(
            host(b"cargo 1.95.0\nrelease: 1.95.0\nhost: x86_64-unknown-linux-gnu\nos: Debian\n"),
            "x86_64-unknown-linux-gnu"
        );
        assert_eq!(host(b""), "");
    }

    #[test]
    fn the_variable_for_the_flags_is_spelt_as_cargo_spells_it() {
        assert_eq!(rustflags_variable("aarch64-unknown-linux-gnu"), "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS");
    }

    #[test]
    fn only_a_message_about_a_program_gives_a_path() {
        let program = r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":"/t/a"}"#;
        assert_eq!(executable(program), Some(("a".into(), "/t/a".into())));
        let library = r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":null}"#;
        assert_eq!(executable(library), None);
        assert_eq!(executable(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(executable("warning: not JSON"), None);
    }

    #[test]
    fn a_program_that_needs_a_loader_is_refused() {
        // This test itself is linked as the host links.
        let this = std::env::current_exe().unwrap();
        let built = PACKAGES.map(|package| (package.to_owned(), this.clone()));
        assert!(matches!(programs(&built), Err(BuildError::Dynamic(path)) if path == this));
        assert!(matches!(programs(&built[..PACKAGES.len() - 1]), Err(BuildError::Missing("cofferdam-fixture"))));
    }
}
