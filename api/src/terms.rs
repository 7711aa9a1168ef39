//! Usage terms: what a client has to accept before it gets a session.

use std::path::{Path, PathBuf};
use std::{fmt::Write as _, fs, io};

use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Hex digits of the text's digest that are its version: any edit asks everybody again.
const VERSION_LENGTH: usize = 12;

/// The flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct TermsArgs {
    /// A file with the terms that clients have to accept. It is read once, at the start.
    #[arg(long, value_name = "FILE", env = "COFFERDAM_API_TERMS_FILE")]
    pub terms_file: Option<PathBuf>,

    /// The terms themselves, where no file is given. Blank for none.
    #[arg(long, value_name = "TEXT", env = "COFFERDAM_API_TERMS_BODY")]
    pub terms_body: Option<String>,

    /// What the terms are called.
    #[arg(long, value_name = "TEXT", env = "COFFERDAM_API_TERMS_TITLE", default_value = "Usage agreement")]
    pub terms_title: String,

    /// The version that clients accept. By default it is made of the text, so that they accept anew whatever changes.
    #[arg(long, value_name = "TEXT", env = "COFFERDAM_API_TERMS_VERSION")]
    pub terms_version: Option<String>,
}

/// Terms, as clients see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Terms {
    /// What a client sends back to accept them.
    pub version: String,
    /// What they are called.
    pub title: String,
    /// The text.
    pub body: String,
}

/// Why there are no terms where there ought to be.
#[derive(Debug, thiserror::Error)]
pub enum TermsError {
    /// The file cannot be read.
    #[error("cannot read the terms in {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// The file says nothing, and everybody would be let in.
    #[error("the terms in {} are empty; write some, or leave the flag out", .0.display())]
    Empty(PathBuf),
}

impl Terms {
    /// The terms that the flags ask for, if they ask for any. A file counts before a text.
    pub fn load(args: &TermsArgs) -> Result<Option<Self>, TermsError> {
        let body = match &args.terms_file {
            Some(path) => Some(read(path)?),
            None => args.terms_body.clone().filter(|text| !is_blank(text)),
        };
        Ok(body.map(|body| {
            let version = args.terms_version.clone().filter(|text| !is_blank(text));
            Self { version: version.unwrap_or_else(|| version_of(&body)), title: args.terms_title.clone(), body }
        }))
    }

    /// Whether a client that says it has accepted this version has accepted these terms.
    #[must_use]
    pub fn accepted_by(&self, version: Option<&str>) -> bool {
        version == Some(self.version.as_str())
    }
}

fn read(path: &Path) -> Result<String, TermsError> {
    let text = fs::read_to_string(path).map_err(|source| TermsError::Unreadable { path: path.to_owned(), source })?;
    if is_blank(&text) { Err(TermsError::Empty(path.to_owned())) } else { Ok(text) }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn version_of(body: &str) -> String {
    let mut version = String::new();
    for byte in Sha256::digest(body.as_bytes()).iter().take(VERSION_LENGTH / 2) {
        // Writing to a string cannot fail.
        let _ = write!(version, "{byte:02x}");
    }
    version
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        terms: TermsArgs,
    }

    fn flags(arguments: &[&str]) -> TermsArgs {
        Line::try_parse_from(std::iter::once("test").chain(arguments.iter().copied())).unwrap().terms
    }

    fn load(arguments: &[&str]) -> Result<Option<Terms>, TermsError> {
        Terms::load(&flags(arguments))
    }

    #[test]
    fn there_are_none_unless_somebody_wrote_some() {
        assert_eq!(load(&[]).unwrap(), None);
        assert_eq!(load(&["--terms-body", " \n"]).unwrap(), None);
        assert_eq!(load(&["--terms-version", "7"]).unwrap(), None);
    }

    #[test]
    fn any_edit_is_another_version_unless_the_operator_gives_one() {
        let terms = load(&["--terms-body", "Be kind."]).unwrap().unwrap();
        assert_eq!((terms.title.as_str(), terms.body.as_str()), ("Usage agreement", "Be kind."));
        // The digest as `printf 'Be kind.' | sha256sum` prints it.
        assert_eq!(terms.version, "5499befb38db");
        assert_ne!(load(&["--terms-body", "Be kind!"]).unwrap().unwrap().version, terms.version);
        let given = load(&["--terms-body", "Be kind.", "--terms-version", "2024-01", "--terms-title", "Rules"]);
        assert_eq!(
            given.unwrap().unwrap(),
            Terms { version: "2024-01".into(), title: "Rules".into(), ..terms.clone() }
        );
        let blank = load(&["--terms-body", "Be kind.", "--terms-version", ""]);
        assert_eq!(blank.unwrap().unwrap(), terms);
    }

    #[test]
    fn only_the_very_version_is_accepted() {
        let terms = load(&["--terms-body", "x", "--terms-version", "2"]).unwrap().unwrap();
        assert!(terms.accepted_by(Some("2")));
        for other in [None, Some(""), Some("1"), Some("2 "), Some("22")] {
            assert!(!terms.accepted_by(other), "{other:?}");
        }
    }

    #[test]
    fn a_file_counts_before_a_text_and_one_that_says_nothing_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("terms.md");
        let path = file.to_str().unwrap();
        let of_file = || load(&["--terms-file", path, "--terms-body", "Other."]);
        assert!(matches!(of_file(), Err(TermsError::Unreadable { .. })));
        fs::write(&file, " \n\n").unwrap();
        assert!(matches!(of_file(), Err(TermsError::Empty(_))));
        fs::write(&file, [0xff]).unwrap();
        assert!(matches!(of_file(), Err(TermsError::Unreadable { .. })));
        fs::write(&file, "Be kind.\n").unwrap();
        assert_eq!(of_file().unwrap().unwrap().body, "Be kind.\n");
    }
}
