//! What the tests of this room share.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use super::archive::{Archive, pack};
use super::files::{Files, Limits};
use super::location::Location;
use super::store::BodyStore;
use crate::wire::{Bundle, BundleFile, Encoding};

pub(crate) const GENEROUS: Limits = Limits { max_bytes: 1 << 30, max_entries: 20_000 };

pub(crate) fn utf8(path: &str, contents: &str) -> BundleFile {
    let (relative_path, contents) = (path.to_owned(), contents.to_owned());
    BundleFile { relative_path, contents, encoding: Encoding::Utf8 }
}

pub(crate) fn base64(path: &str, contents: &str) -> BundleFile {
    BundleFile { encoding: Encoding::Base64, ..utf8(path, contents) }
}

pub(crate) fn bundle(entry: &str, files: Vec<BundleFile>) -> Bundle {
    Bundle { entry_relative_path: entry.to_owned(), files }
}

/// The archive of these files, the first of which is the entry.
pub(crate) fn archive_of(files: Vec<BundleFile>) -> Archive {
    let entry = files[0].relative_path.clone();
    pack(Files::of(bundle(&entry, files), GENEROUS).unwrap()).unwrap()
}

/// A store of its own over a directory, as another process would open it.
pub(crate) fn file_store(directory: &Path) -> BodyStore {
    BodyStore::open(Location::Directory(directory.to_owned()), 1 << 30).unwrap()
}

/// Makes what a session has in such a store so much older.
pub(crate) fn age(directory: &Path, id: &str, name: &str, by: Duration) {
    let file = File::open(directory.join(id).join(name)).unwrap();
    file.set_modified(file.metadata().unwrap().modified().unwrap() - by).unwrap();
}
