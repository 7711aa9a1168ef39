//! A bundle's files, checked: whatever can be wrong with them is told before a session is promised (fault D17).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::path::{PathProblem, directories, normalize};
use crate::wire::{Bundle, Encoding};

/// Characters of a path that a message repeats.
const SHOWN: usize = 100;

/// Bytes of a block of the pod's volume: a file fills whole ones, and a directory has one.
const BLOCK: u64 = 4096;

/// Bytes of an entry in its directory, beside its name.
const PER_NAME: u64 = 8;

/// What may be unpacked into a pod: the policy's, counted as `cofferdam-fetch` counts it, so that nothing is sent which
/// the pod would throw away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of all files and directories, in blocks of 4 KiB, and of their names.
    pub max_bytes: u64,
    /// The most files and directories.
    pub max_entries: u64,
}

/// Files of which every one can be unpacked, and the one that is run.
pub struct Files {
    /// By their normal paths: the order of the archive, whatever that of the bundle was.
    pub(super) files: BTreeMap<String, File>,
    entry: String,
}

pub(super) struct File {
    /// Where it was in the bundle, from 0.
    at: usize,
    pub(super) contents: Vec<u8>,
}

/// A member of the request that holds a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The path of a file.
    File(usize),
    /// The path of the bundle's entry.
    Entry,
    /// The path of an app's entry.
    App(usize),
}

/// What is wrong with a bundle. The messages name places, and repeat at most 100 characters of a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// A path that no file can have.
    #[error("{place} `{shown}` {problem}")]
    Path {
        /// Where it is.
        place: Place,
        /// How it begins.
        shown: String,
        /// Why not.
        problem: PathProblem,
    },
    /// Two files at one place.
    #[error("{} `{shown}` names the same file as {}; leave one out", Place::File(*.at), Place::File(*.other))]
    Duplicate {
        /// The later one.
        at: usize,
        /// The earlier one.
        other: usize,
        /// How the path begins.
        shown: String,
    },
    /// A file lies in what is a file itself.
    #[error("{} `{shown}` lies in {}, which is a file; rename one", Place::File(*.at), Place::File(*.other))]
    InFile {
        /// The one that lies in the other.
        at: usize,
        /// The other.
        other: usize,
        /// How the path begins.
        shown: String,
    },
    /// Contents that cannot be decoded.
    #[error("bundle.files[{at}].contents is not base64, with padding and without line breaks, as its encoding says")]
    NotBase64 {
        /// Which file.
        at: usize,
    },
    /// What is run is not there.
    #[error("{place} `{shown}` is none of the bundle's files; add it, or name another")]
    NoEntry {
        /// Which entry.
        place: Place,
        /// How the path begins.
        shown: String,
    },
    /// More than a pod would unpack.
    #[error("the bundle has more than {max} files and directories; leave some out")]
    TooManyEntries {
        /// The bound.
        max: u64,
    },
    /// More than a pod would unpack.
    #[error("the bundle is larger than {max} bytes when it is unpacked, in blocks of 4 KiB; leave something out")]
    TooLarge {
        /// The bound.
        max: u64,
    },
}

impl Files {
    /// Reads a bundle.
    pub fn of(bundle: Bundle, limits: Limits) -> Result<Self, BundleError> {
        let mut files: BTreeMap<String, File> = BTreeMap::new();
        for (at, file) in bundle.files.into_iter().enumerate() {
            let path = path(Place::File(at), &file.relative_path)?;
            let contents = match file.encoding {
                Encoding::Utf8 => file.contents.into_bytes(),
                Encoding::Base64 => STANDARD.decode(file.contents).map_err(|_| BundleError::NotBase64 { at })?,
            };
            if let Some(other) = files.get(&path) {
                return Err(BundleError::Duplicate { at, other: other.at, shown: shown(&path) });
            }
            files.insert(path, File { at, contents });
        }
        check_sizes(&files, limits)?;
        for (path, file) in &files {
            if let Some(other) = directories(path).find_map(|directory| files.get(directory)) {
                return Err(BundleError::InFile { at: file.at, other: other.at, shown: shown(path) });
            }
        }
        let mut checked = Self { files, entry: String::new() };
        checked.entry = checked.find(Place::Entry, &bundle.entry_relative_path)?;
        Ok(checked)
    }

    /// The normal path of the bundle's entry, which is one of the files.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// The normal path of a file, such as an app's entry.
    pub fn find(&self, place: Place, written: &str) -> Result<String, BundleError> {
        let path = path(place, written)?;
        if self.files.contains_key(&path) {
            return Ok(path);
        }
        Err(BundleError::NoEntry { place, shown: shown(&path) })
    }
}

fn path(place: Place, written: &str) -> Result<String, BundleError> {
    normalize(written).map_err(|problem| BundleError::Path { place, shown: shown(written), problem })
}

fn check_sizes(files: &BTreeMap<String, File>, limits: Limits) -> Result<(), BundleError> {
    let inside: BTreeSet<&str> = files.keys().flat_map(|path| directories(path)).collect();
    if files.len() + inside.len() > usize::try_from(limits.max_entries).unwrap_or(usize::MAX) {
        return Err(BundleError::TooManyEntries { max: limits.max_entries });
    }
    let sizes = files.values().map(|file| file.contents.len()).chain(inside.iter().map(|_| 0));
    let names = files.keys().map(String::as_str).chain(inside.iter().copied()).map(name);
    if sizes.map(blocks).chain(names).sum::<u64>() > limits.max_bytes {
        return Err(BundleError::TooLarge { max: limits.max_bytes });
    }
    Ok(())
}

/// What the last part of a path takes in its directory.
fn name(path: &str) -> u64 {
    let name = path.rsplit('/').next().unwrap_or(path);
    u64::try_from(name.len()).map_or(u64::MAX, |bytes| bytes.saturating_add(PER_NAME))
}

fn blocks(bytes: usize) -> u64 {
    u64::try_from(bytes.max(1)).map_or(u64::MAX, |bytes| bytes.div_ceil(BLOCK) * BLOCK)
}

/// How a path begins, in characters that end no line.
fn shown(path: &str) -> String {
    let mut shown: String = path.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if path.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(at) => write!(f, "bundle.files[{at}].relativePath"),
            Self::Entry => f.write_str("bundle.entryRelativePath"),
            Self::App(at) => write!(f, "apps[{at}].entryRelativePath"),
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("count", &self.files.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GENEROUS, base64, bundle, utf8};
    use super::*;
    use crate::wire::BundleFile;

    fn refused(files: Vec<BundleFile>) -> String {
        Files::of(bundle("a", files), GENEROUS).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_unpacked_is_told_by_its_place() {
        let a = || utf8("a", "");
        for (files, expected) in [
            (
                vec![a(), utf8("b/../../c", "")],
                "bundle.files[1].relativePath `b/../../c` leads out of the bundle; leave out the `..`",
            ),
            (vec![a(), utf8("b/", "")], "bundle.files[1].relativePath `b/` names a directory; name the file in it"),
            (vec![utf8("/", ""), a()], "bundle.files[0].relativePath `/` names no file"),
            (
                vec![a(), utf8("b", ""), utf8("./x/../b", "")],
                "bundle.files[2].relativePath `b` names the same file as bundle.files[1].relativePath; leave one out",
            ),
            (
                vec![utf8("d/e/f", ""), a(), utf8("d/e", "")],
                "bundle.files[0].relativePath `d/e/f` lies in bundle.files[2].relativePath, which is a file; rename one",
            ),
            (
                vec![utf8("b", "")],
                "bundle.entryRelativePath `a` is none of the bundle's files; add it, or name another",
            ),
            (vec![], "bundle.entryRelativePath `a` is none of the bundle's files; add it, or name another"),
            (vec![utf8("a\n\u{1b}\0", "")], "bundle.files[0].relativePath `a\\n\\u{1b}\\0` contains a NUL character"),
        ] {
            assert_eq!(refused(files), expected);
        }
    }

    #[test]
    fn no_message_repeats_more_than_a_hundred_characters() {
        let told = refused(vec![utf8(&format!("../{}", "é".repeat(500)), "")]);
        assert!(told.contains(&format!("`../{}…`", "é".repeat(97))), "{told}");
    }

    #[test]
    fn d17_contents_in_base64_are_decoded_or_refused() {
        let files = Files::of(bundle("a", vec![base64("a", "AP+A")]), GENEROUS).unwrap();
        assert_eq!(files.files["a"].contents, [0x00, 0xff, 0x80]);
        for broken in ["AP+", "AP+A\n", "AP-A", "A", "AP+A="] {
            let told = refused(vec![utf8("b", ""), base64("a", broken)]);
            assert!(told.starts_with("bundle.files[1].contents is not base64"), "{told}");
            assert!(!told.contains(broken) || broken == "A", "{told}");
        }
    }

    #[test]
    fn d17_an_entry_is_found_however_it_is_written() {
        let files = Files::of(bundle("/src/./a.ts", vec![utf8("src/a.ts", "")]), GENEROUS).unwrap();
        assert_eq!(files.entry(), "src/a.ts");
        assert_eq!(files.find(Place::App(0), "x/../src/a.ts").as_deref(), Ok("src/a.ts"));
        let missing = files.find(Place::App(1), "src/b.ts").unwrap_err().to_string();
        assert!(missing.starts_with("apps[1].entryRelativePath `src/b.ts` is none"), "{missing}");
    }

    #[test]
    fn what_a_pod_would_not_unpack_is_not_sent() {
        let files = || vec![utf8("a", "x"), utf8("d/b", "")];
        // Two files and one directory, a block each, and three names of one letter.
        let most = 3 * 4096 + 3 * 9;
        let fits = Limits { max_bytes: most, max_entries: 3 };
        assert!(Files::of(bundle("a", files()), fits).is_ok());
        let larger = vec![utf8("a", &"x".repeat(4097)), utf8("d/b", "")];
        assert_eq!(Files::of(bundle("a", larger), fits).unwrap_err(), BundleError::TooLarge { max: most });
        let error = |limits| Files::of(bundle("a", files()), limits).unwrap_err();
        assert_eq!(error(Limits { max_entries: 2, ..fits }), BundleError::TooManyEntries { max: 2 });
        assert_eq!(error(Limits { max_bytes: most - 1, ..fits }), BundleError::TooLarge { max: most - 1 });
    }

    #[test]
    fn nothing_shows_what_is_in_files() {
        let files = Files::of(bundle("a", vec![utf8("a", "secret")]), GENEROUS).unwrap();
        assert_eq!(format!("{files:?}"), "Files { count: 1, .. }");
    }
}
