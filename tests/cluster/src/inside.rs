//! Running something inside a node.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::error::{Error, last_lines};

/// The way into a node's namespaces: the process id of its first process, as the machine counts.
#[derive(Debug, Clone, Copy)]
pub struct Inside {
    pid: u32,
}

impl Inside {
    pub(crate) fn new(pid: u32) -> Self {
        Self { pid }
    }

    pub(crate) fn pid(self) -> u32 {
        self.pid
    }

    /// A command that will see the node's network, and the machine's files and processes.
    ///
    /// Not `ip netns exec`: that mounts a fresh /sys, which hides the cgroups.
    #[must_use]
    pub fn network(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.enter(&["--net"], program)
    }

    /// A command that will see the node's network, mounts and processes.
    #[must_use]
    pub fn all(self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        self.enter(&["--net", "--mount", "--pid"], program)
    }

    fn enter(self, namespaces: &[&str], program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.pid.to_string()).args(namespaces).arg("--").arg(program);
        command
    }

    /// Runs a shell script in the node's network; it ends at the first failure.
    pub(crate) fn script(self, script: &str) -> Result<(), Error> {
        output(self.network("sh").args(["-ec", script])).map(|_| ())
    }
}

/// Runs `command` to its end and returns what it wrote.
///
/// # Errors
/// [`Error::Io`] when it cannot be started, [`Error::Command`] when it fails.
pub(crate) fn output(command: &mut Command) -> Result<Output, Error> {
    let output = command.stdin(Stdio::null()).output().map_err(Error::io("start", Path::new(command.get_program())))?;
    check(command, output)
}

/// Turns an unsuccessful end into an error that shows the command's last words.
pub(crate) fn check(command: &Command, output: Output) -> Result<Output, Error> {
    if output.status.success() {
        return Ok(output);
    }
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    let errors = if errors.trim().is_empty() { String::from_utf8_lossy(&output.stdout) } else { errors };
    Err(Error::Command {
        command: words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
        status: output.status.to_string(),
        stderr: last_lines(errors.trim(), 12).join("\n"),
    })
}
