//! The list of targets.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{annotations, archive, harden, inspector, policy, quantity, review, session};

/// Something that takes bytes from others.
#[derive(Debug)]
pub struct Target {
    /// Its name: of its corpus, and with `fuzz-` before it of its program.
    pub name: &'static str,
    /// Panics where a promise is broken for these bytes.
    pub check: fn(&[u8]),
    /// The longest input that is tried, in bytes.
    pub max_len: usize,
    /// Executions that take some 30 s of a processor: what every change is tried with.
    pub runs: u64,
    /// The corpora whose JSON its inputs are made from; empty where an input is plain text.
    pub vocabulary: &'static [&'static str],
    /// Inputs to begin with that have their place elsewhere in the repository.
    pub shipped: &'static [&'static str],
}

/// [`harden::check`].
pub const HARDEN: Target = Target {
    name: "harden",
    check: harden::check,
    max_len: 8 * 1024,
    runs: 60_000,
    vocabulary: &["harden"],
    shipped: &[],
};

/// [`review::check`].
pub const REVIEW: Target = Target {
    name: "review",
    check: review::check,
    max_len: 12 * 1024,
    runs: 50_000,
    vocabulary: &["review", "harden"],
    shipped: &[],
};

/// [`policy::check`].
pub const POLICY: Target = Target {
    name: "policy",
    check: policy::check,
    max_len: 16 * 1024,
    runs: 40_000,
    vocabulary: &["policy"],
    shipped: &["manifests/base/policy.yaml"],
};

/// [`quantity::check`].
pub const QUANTITY: Target =
    Target { name: "quantity", check: quantity::check, max_len: 256, runs: 1_500_000, vocabulary: &[], shipped: &[] };

/// [`annotations::check`].
pub const ANNOTATIONS: Target = Target {
    name: "annotations",
    check: annotations::check,
    max_len: 4 * 1024,
    runs: 500_000,
    vocabulary: &[],
    shipped: &[],
};

/// [`session::check`].
pub const SESSION: Target = Target {
    name: "session",
    check: session::check,
    max_len: 8 * 1024,
    runs: 300_000,
    vocabulary: &["session"],
    shipped: &[],
};

/// [`inspector::check`].
pub const INSPECTOR: Target = Target {
    name: "inspector",
    check: inspector::check,
    max_len: 4 * 1024,
    runs: 500_000,
    vocabulary: &[],
    shipped: &[],
};

/// [`archive::check`].
pub const ARCHIVE: Target =
    Target { name: "archive", check: archive::check, max_len: 8 * 1024, runs: 10_000, vocabulary: &[], shipped: &[] };

/// All of them.
pub const ALL: [&Target; 8] = [&REVIEW, &QUANTITY, &POLICY, &HARDEN, &ANNOTATIONS, &SESSION, &INSPECTOR, &ARCHIVE];

/// The folder of the workspace.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The folder of a target's committed inputs.
#[must_use]
pub fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

impl Target {
    /// The files that fuzzing begins with, in order.
    ///
    /// # Errors
    /// The corpus cannot be listed.
    pub fn seeds(&self) -> io::Result<Vec<PathBuf>> {
        let mut seeds: Vec<PathBuf> = self.shipped.iter().map(|path| workspace().join(path)).collect();
        for entry in fs::read_dir(corpus(self.name))? {
            seeds.push(entry?.path());
        }
        seeds.sort();
        Ok(seeds)
    }
}
