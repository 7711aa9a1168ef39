//! Paths in an archive, as the parts that they are made of.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;

/// What the names of our own files in the directory begin with: the marker would say that a body is complete.
pub(crate) const OURS: &str = ".cofferdam-";

/// The longest name of a file that Linux has, in bytes.
const LONGEST_PART: usize = 255;

/// The longest path that a program can name, in bytes: Linux counts the NUL behind it as well.
const LONGEST: usize = 4095;

/// Directories within each other. Each is open while the tree is walked.
const DEEPEST: usize = 128;

/// Why a path is refused: said of the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NameError {
    #[error("has an absolute path")]
    Absolute,
    #[error("has a path through \"..\"")]
    Parent,
    #[error("has a path with a NUL byte")]
    Nul,
    #[error("has a path that is too long for Linux")]
    TooLong,
    #[error("lies deeper than 128 directories")]
    TooDeep,
    #[error("has a name that begins with .cofferdam-, which is ours")]
    Ours,
}

/// A path within the tree: no part of it is empty, `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(Vec<OsString>);

impl Name {
    pub(crate) fn parse(path: &[u8]) -> Result<Self, NameError> {
        if path.first() == Some(&b'/') {
            return Err(NameError::Absolute);
        }
        if path.contains(&0) {
            return Err(NameError::Nul);
        }
        if path.len() > LONGEST {
            return Err(NameError::TooLong);
        }
        let mut parts = Vec::new();
        for part in path.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => return Err(NameError::Parent),
                _ if part.len() > LONGEST_PART => return Err(NameError::TooLong),
                _ => parts.push(OsString::from_vec(part.to_vec())),
            }
        }
        if parts.len() > DEEPEST {
            return Err(NameError::TooDeep);
        }
        if parts.first().is_some_and(|first| first.as_encoded_bytes().starts_with(OURS.as_bytes())) {
            return Err(NameError::Ours);
        }
        Ok(Self(parts))
    }

    /// Whether it is the tree itself.
    pub(crate) fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The directory that it is in, part by part, and its name there; none for the tree itself.
    pub(crate) fn split(&self) -> Option<(&[OsString], &OsStr)> {
        self.0.split_last().map(|(last, parents)| (parents, last.as_os_str()))
    }

    /// Its name in that directory; an empty one for the tree itself.
    pub(crate) fn last(&self) -> &OsStr {
        self.0.last().map_or(OsStr::new(""), OsString::as_os_str)
    }

    /// All parts as one path.
    #[cfg(test)]
    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.0.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_path_is_the_parts_that_mean_something() {
        for (path, expected) in
            [("a/b", "a/b"), ("./a//b/.", "a/b"), ("a/", "a"), (".", ""), ("", ""), ("..a/...", "..a/...")]
        {
            assert_eq!(Name::parse(path.as_bytes()).unwrap().path(), PathBuf::from(expected), "{path}");
        }
        assert_eq!(Name::parse(b"a/.cofferdam-complete").unwrap().path(), PathBuf::from("a/.cofferdam-complete"));
    }

    #[test]
    fn what_leads_out_or_cannot_be_is_refused() {
        let long = "a".repeat(256);
        let longer = format!("{}{}", "b/".repeat(128), "/".repeat(4096 - 2 * 128));
        assert!(Name::parse(&longer.as_bytes()[..4095]).is_ok());
        let deep = "a/".repeat(129);
        for (path, error) in [
            ("/a", NameError::Absolute),
            ("//", NameError::Absolute),
            ("..", NameError::Parent),
            ("a/../b", NameError::Parent),
            ("a\0b", NameError::Nul),
            (&long, NameError::TooLong),
            (&longer, NameError::TooLong),
            (&deep, NameError::TooDeep),
            (".cofferdam-complete", NameError::Ours),
            ("./.cofferdam-incoming/a", NameError::Ours),
        ] {
            assert_eq!(Name::parse(path.as_bytes()), Err(error), "{path}");
        }
    }
}
