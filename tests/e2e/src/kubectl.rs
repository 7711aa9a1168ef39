//! kubectl, as a person would use it: what it prints is part of what we promise.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cofferdam_cluster::cluster::Cluster;
use serde_json::Value;

/// A kubectl that talks to one cluster.
#[derive(Debug, Clone)]
pub struct Kubectl {
    program: PathBuf,
    environment: Vec<(&'static str, PathBuf)>,
}

/// What one call printed.
#[derive(Debug)]
pub struct Answer {
    /// Whether it succeeded.
    pub success: bool,
    /// Its output.
    pub stdout: String,
    /// Its errors and warnings.
    pub stderr: String,
}

impl Answer {
    /// The API server's warnings, without their prefix.
    #[must_use]
    pub fn warnings(&self) -> Vec<&str> {
        self.stderr.lines().filter_map(|line| line.strip_prefix("Warning: ")).collect()
    }
}

impl Kubectl {
    /// The administrator of a cluster that the harness started.
    ///
    /// # Errors
    /// When the cluster's programs are incomplete.
    pub fn of(cluster: &Cluster) -> Result<Self> {
        Ok(Self { program: cluster.programs().path("kubectl")?, environment: cluster.kubectl_environment().into() })
    }

    /// `program` with whatever cluster it is configured for.
    #[must_use]
    pub fn current(program: PathBuf) -> Self {
        Self { program, environment: Vec::new() }
    }

    /// kubectl, ready for its arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.environment.iter().cloned());
        command
    }

    /// Runs kubectl and returns all that it printed, whether it succeeded or not.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn ask<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, input: &str) -> Result<Answer> {
        let mut command = self.command();
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.program.display()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // kubectl that ended before it read all has its own words for why.
            let _ = stdin.write_all(input.as_bytes());
        }
        let output = child.wait_with_output().context("kubectl ended strangely")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Answer { success: output.status.success(), stdout: text(&output.stdout), stderr: text(&output.stderr) })
    }

    /// Runs kubectl and returns its output.
    ///
    /// # Errors
    /// With kubectl's own words when it fails.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<String> {
        self.run_with(arguments, "")
    }

    /// Runs kubectl on `input` and returns its output.
    ///
    /// # Errors
    /// With kubectl's own words when it fails.
    pub fn run_with<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, input: &str) -> Result<String> {
        let arguments: Vec<S> = arguments.into_iter().collect();
        let answer = self.ask(&arguments, input)?;
        if !answer.success {
            let words: Vec<_> = arguments.iter().map(|word| word.as_ref().to_string_lossy()).collect();
            bail!("kubectl {}: {}", words.join(" "), answer.stderr.trim());
        }
        Ok(answer.stdout)
    }

    /// Runs kubectl with `--output=json` and reads what it printed.
    ///
    /// # Errors
    /// With kubectl's own words when it fails.
    pub fn json<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<Value> {
        let mut words: Vec<std::ffi::OsString> = arguments.into_iter().map(|word| word.as_ref().to_owned()).collect();
        words.push("--output=json".into());
        serde_json::from_str(&self.run(words)?).context("kubectl printed no JSON")
    }
}
