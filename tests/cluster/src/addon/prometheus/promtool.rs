//! `promtool`, which judges metrics and rules without a Prometheus that runs.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::debian;
use crate::error::Error;
use crate::inside;

/// Runs `promtool` on `input`, as in `check metrics`, `check rules FILE` or `test rules FILE`, and returns what it
/// printed. It lies in the cache and is not installed. Blocks.
///
/// # Errors
/// [`Error::Part`] when it cannot be had, [`Error::Command`] with its words when it is not content.
pub fn promtool<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>, input: &str) -> Result<String, Error> {
    let mut command = Command::new(program()?);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let fail = || Error::io("run", Path::new("promtool"));
    let mut child = command.spawn().map_err(fail())?;
    let written = child.stdin.take().map(|mut stdin| {
        let input = input.to_owned();
        // Beside the reading: what it prints may fill its pipe before it has read all. It may also read nothing.
        std::thread::spawn(move || stdin.write_all(input.as_bytes()))
    });
    let output = child.wait_with_output().map_err(fail())?;
    let _ = written.map(std::thread::JoinHandle::join);
    let output = inside::check(&command, output)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The program. apt is asked once: it takes seconds to say that the cache has the version that it would fetch.
fn program() -> Result<&'static Path, Error> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    if let Some(program) = PROGRAM.get() {
        return Ok(program);
    }
    let package = debian::package("prometheus").map_err(Error::part)?;
    Ok(PROGRAM.get_or_init(|| package.join("usr/bin/promtool")))
}
