//! The command line of `harden`.

use std::path::{Path, PathBuf};

use clap::Args;
use cofferdam_policy_file::{Installation, PolicySource};

use super::{Format, Mode, Options, Source};
use crate::admit::Entry;

/// Flags of `harden`.
#[derive(Args, Debug)]
pub(crate) struct HardenArgs {
    /// The policy file. Without it the built-in policy holds.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,

    /// The image that is put into pods that name a body. Without it the one that the manifests name.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,

    /// The namespace of objects that name none.
    #[arg(long, short, value_name = "NAME", default_value = "default")]
    namespace: String,

    /// The profile of pods that name none; it is written into them.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// What to write.
    #[arg(long, short, value_enum, value_name = "FORMAT", default_value = "yaml")]
    output: Format,

    /// Write nothing; exit with 0 if there is nothing to do, 3 if something would change, 1 if something would be refused.
    #[arg(long, conflicts_with = "output")]
    check: bool,

    /// Read an AdmissionReview (JSON) and write the answer, byte for byte as the server would.
    #[arg(long, conflicts_with_all = ["output", "check", "profile", "namespace"])]
    review: bool,

    /// The path that the review is posted to, for --review.
    #[arg(long, value_name = "PATH", default_value = "/mutate/enforced", requires = "review", value_parser = entry)]
    entry: Entry,

    /// The file with the objects; - is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl HardenArgs {
    /// What the flags mean.
    #[must_use]
    pub(crate) fn into_options(self) -> Options {
        let Self { policy, image, namespace, profile, output, check, review, entry, file } = self;
        let mode = match (check, review) {
            (true, _) => Mode::Check,
            (_, true) => Mode::Review(entry),
            _ => Mode::Harden(output),
        };
        let policy = policy.map_or(PolicySource::BuiltIn, PolicySource::File);
        let installation = Installation { image, ..Installation::default() };
        Options { source: Source::from(Path::new(&file)), policy, installation, namespace, profile, mode }
    }
}

fn entry(path: &str) -> Result<Entry, String> {
    Entry::of_path(path).ok_or_else(|| {
        let paths: Vec<&str> = Entry::ALL.iter().map(|(path, _)| *path).collect();
        format!("there is no such path; there are {}", paths.join(", "))
    })
}
