//! The same rules over files: what the webhook would make of the pods in them, without a cluster.
//!
//! ```text
//! FILE ─ documents ─▶ objects ─ templates ─▶ model::harden ─▶ objects ─ output ─▶ yaml | json | patch | diff
//! ```
//!
//! Pods, the workloads that make them and lists of both are hardened; everything else stays as it is, to the byte where
//! a whole document does. Documents that change keep the order of their members and lose their comments.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cofferdam_model::policy::Policy;
use cofferdam_policy_file::{Installation, PolicyFileError, PolicySource};

use crate::plain;

pub(crate) mod args;
mod check;
mod documents;
mod ordered;
mod output;
mod review;
mod templates;

pub(crate) use output::Format;

/// Where to read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Standard input.
    Stdin,
    /// A file.
    File(PathBuf),
}

/// What is asked of a file.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// What to read.
    pub source: Source,
    /// Where the policy comes from.
    pub policy: PolicySource,
    /// What the policy's file does not say.
    pub installation: Installation,
    /// The namespace of objects that name none.
    pub namespace: String,
    /// The profile of pods that name none, written into them.
    pub profile: Option<String>,
    /// What to do.
    pub mode: Mode,
}

/// What to do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write it hardened.
    Harden(Format),
    /// Say whether hardening would change it.
    Check,
    /// Read it as an `AdmissionReview` and write the answer, as the server would through this entry.
    Review(crate::admit::Entry),
}

/// How it ended, as an exit code says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// 0: done; for a check, nothing to do.
    Done,
    /// 1: refused, or it would be.
    Refused,
    /// 3: something would change.
    WouldChange,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OfflineError {
    /// The input cannot be read.
    #[error("cannot read {source_name}")]
    Unreadable {
        /// Its name.
        source_name: String,
        /// Why.
        source: io::Error,
    },
    /// The input is no YAML or JSON.
    #[error("{source_name}:{line}: {problem}")]
    NotYaml {
        /// Its name.
        source_name: String,
        /// Where, from 1.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// No review that could be answered.
    #[error("{source_name}: {problem}")]
    NotAReview {
        /// Its name.
        source_name: String,
        /// What is wrong.
        problem: String,
    },
    /// The policy cannot be read or is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// Nothing can be written.
    #[error("cannot write the result")]
    Write(#[from] io::Error),
}

/// Does it: the result goes to `out`, warnings and refusals to `notes`.
pub(crate) fn run(options: &Options, out: &mut impl Write, notes: &mut impl Write) -> Result<Outcome, OfflineError> {
    let policy = options.installation.complete(options.policy.load()?);
    let text = options.source.read()?;
    match options.mode {
        Mode::Harden(format) => harden(options, format, &policy, &text, out, notes),
        Mode::Check => check::check(options, &policy, &text, notes),
        Mode::Review(entry) => review::answer(options, entry, &policy, &text, out),
    }
}

fn harden(
    options: &Options,
    format: Format,
    policy: &Policy,
    text: &str,
    out: &mut impl Write,
    notes: &mut impl Write,
) -> Result<Outcome, OfflineError> {
    let mut documents = documents::read(&options.source, text)?;
    let mut refused = false;
    for document in &mut documents {
        for pod in templates::harden(&mut document.object, options, policy) {
            for line in pod.lines() {
                writeln!(notes, "{line}")?;
            }
            refused |= pod.is_refused();
            document.patch.extend(pod.patch);
        }
    }
    if refused {
        // What is left would be taken for the whole.
        writeln!(notes, "nothing was written: what is refused cannot be hardened")?;
        return Ok(Outcome::Refused);
    }
    output::write(format, &options.source, text, &documents, out)?;
    Ok(Outcome::Done)
}

impl Source {
    /// Reads all of it.
    fn read(&self) -> Result<String, OfflineError> {
        let read = match self {
            Self::Stdin => {
                let mut text = String::new();
                io::stdin().read_to_string(&mut text).map(|_| text)
            }
            Self::File(path) => std::fs::read_to_string(path),
        };
        read.map_err(|source| OfflineError::Unreadable { source_name: self.to_string(), source })
    }
}

impl From<&Path> for Source {
    /// `-` is standard input.
    fn from(path: &Path) -> Self {
        if path.as_os_str() == "-" { Self::Stdin } else { Self::File(path.to_owned()) }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::File(path) => f.write_str(&plain(&path.to_string_lossy())),
        }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Refused => Self::from(1),
            Outcome::WouldChange => Self::from(3),
        }
    }
}
