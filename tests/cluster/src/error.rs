//! What can go wrong while a cluster is started, used or ended.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// A failure, in one sentence that says what to look at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused a file, socket or process operation.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, as an infinitive with its object.
        action: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A program ended with an error.
    #[error("`{command}` failed ({status}): {stderr}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// The last lines that it wrote.
        stderr: String,
    },
    /// Something did not come about in time.
    #[error("{what} did not come about within {} s; {look}", .after.as_secs())]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        after: Duration,
        /// Where to look, or the last answer that was seen.
        look: String,
    },
    /// A cluster's name, a node's name or a version that cannot be used.
    #[error("{0}")]
    Usage(String),
    /// A process of the cluster ended early.
    #[error("{what} ended early; it says: {log}")]
    Died {
        /// Which process.
        what: String,
        /// The last lines that it wrote.
        log: String,
    },
    /// A certificate could not be made.
    #[error("cannot make the cluster's certificates: {0}")]
    Certificate(#[from] rcgen::Error),
    /// Saved state could not be read back.
    #[error("{} is not what this version writes ({source}); run `cofferdam-cluster down` first", .path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What did not fit.
        source: serde_json::Error,
    },
    /// A part of the cluster (a binary, a package, an image) could not be had.
    #[error("{0}")]
    Part(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Wraps an I/O error with the action and the path it was about.
    pub(crate) fn io(action: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let action = format!("{action} {}", path.display());
        move |source| Self::Io { action, source }
    }

    /// Wraps an error of another room (parts, packages, images).
    pub(crate) fn part(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Part(Box::new(error))
    }
}

/// The last `count` lines of what a program wrote: as much of it as an error repeats.
pub(crate) fn last_lines(text: &str, count: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}
