//! Programs that come as Python wheels, fetched by pip, each held against its hash.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, CacheError, Key};
use crate::error::last_lines;
use crate::packages::{self, PackagesError};
use crate::progress::Progress;

/// Why a wheel is not there. Each message is whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WheelsError {
    /// pip said no.
    #[error("pip3 cannot fetch the wheels: {output}")]
    Pip {
        /// The end of what it wrote.
        output: String,
    },
    /// pip cannot be had.
    #[error(transparent)]
    Packages(#[from] PackagesError),
    /// There is no place for them.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

/// The folder where what `requirements` pins is unpacked, of which Python knows by `PYTHONPATH`. Blocks.
///
/// # Errors
/// When pip is not there, or a wheel is not what its hash says.
pub fn folder(name: &str, requirements: &str, progress: &Progress) -> Result<PathBuf, WheelsError> {
    let key = Key::new().text(requirements).text(std::env::consts::ARCH).finish();
    cache::entry("parts", &format!("{name}-{key}"), |out| {
        let task = progress.task(name);
        task.doing("fetching the wheels");
        install(requirements, out, progress)?;
        task.done("fetched");
        Ok(())
    })
}

/// Unpacks what `requirements` pins into `folder`.
///
/// # Errors
/// As [`folder`].
pub(crate) fn install(requirements: &str, folder: &Path, progress: &Progress) -> Result<(), WheelsError> {
    packages::ensure(packages::PIP, progress)?;
    let file = folder.join("requirements.txt");
    fs::write(&file, requirements).map_err(CacheError::io("write", &file))?;
    let failed = |output: String| WheelsError::Pip { output };
    let output = Command::new("pip3")
        .args(["install", "--quiet", "--no-input", "--disable-pip-version-check", "--root-user-action=ignore"])
        // What is pinned and nothing that is built here or that it would like to have beside it.
        .args(["--only-binary=:all:", "--no-deps", "--require-hashes", "--no-compile"])
        .arg("--target")
        .arg(folder)
        .arg("--requirement")
        .arg(&file)
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(failed(last_lines(String::from_utf8_lossy(&output.stderr).trim(), 5).join("; ")))
}
