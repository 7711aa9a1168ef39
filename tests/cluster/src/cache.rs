//! What was made once and is kept: programs built from Go modules, images, rendered charts.
//!
//! ```text
//! $COFFERDAM_CACHE | $XDG_CACHE_HOME/cofferdam | ~/.cache/cofferdam
//! └── <kind>/            parts, images, charts ...
//!     ├── <key>/         finished, never changed again
//!     ├── .<key>.<pid>.partial/  being made by the holder of the lock, or left by one that died
//!     └── .<key>.lock    empty; flock(2), so that it goes with the process that held it
//! ```
//!
//! An entry is named by a [`Key`]: the digest of everything that went into it. Nothing is ever out of date, so nothing
//! is ever refreshed; to free the space, delete the folder.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf, absolute};

use sha2::{Digest, Sha256};

use crate::hexadecimal::hexadecimal;
use crate::turn;

#[cfg(test)]
mod tests;

/// Why an entry could not be looked up or kept. What went wrong while it was being made is the maker's own error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// None of the three variables says where the cache may be.
    #[error("no folder for the cache: set COFFERDAM_CACHE (or HOME)")]
    NoRoot,
    /// A kind or key that would not be a plain file name.
    #[error("{0:?} cannot name a cache entry: use letters, digits, `-`, `_` and `.`, not first")]
    Name(String),
    /// The file system said no.
    #[error("cannot {action} {}; make it possible or set COFFERDAM_CACHE to another folder", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
}

impl CacheError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// The folder that holds every entry. It need not exist yet.
pub fn root() -> Result<PathBuf, CacheError> {
    root_from(|name| std::env::var_os(name))
}

fn root_from(get: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, CacheError> {
    let folder = |name| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG specification wants a relative path ignored; our own variable may well be one.
    let root = folder("COFFERDAM_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").filter(|path| path.is_absolute()).map(|path| path.join("cofferdam")))
        .or_else(|| folder("HOME").map(|path| path.join(".cache/cofferdam")))
        .ok_or(CacheError::NoRoot)?;
    absolute(&root).map_err(CacheError::io("find", &root))
}

/// The digest of what goes into an entry, fed piece by piece. Order counts, and so does where a piece ends.
#[derive(Debug, Clone, Default)]
pub struct Key(Sha256);

impl Key {
    /// A key into which nothing went yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a word: a version, a flag, a name inside an image.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        // The length first: "ab" + "c" must not be "a" + "bc".
        self.0.update(text.len().to_be_bytes());
        self.0.update(text);
        self
    }

    /// Adds a file's contents. Its name does not count: add it by [`Key::text`] where it matters.
    pub fn file(mut self, path: &Path) -> Result<Self, CacheError> {
        let mut file = File::open(path).map_err(CacheError::io("read", path))?;
        let mut contents = Sha256::new();
        io::copy(&mut file, &mut Hasher(&mut contents)).map_err(CacheError::io("read", path))?;
        self.0.update(contents.finalize());
        Ok(self)
    }

    /// The key as 32 hexadecimal digits, fit for a file name.
    #[must_use]
    pub fn finish(self) -> String {
        hexadecimal(&self.0.finalize()[..16])
    }
}

/// Lets [`io::copy`] feed a digest.
struct Hasher<'a>(&'a mut Sha256);

impl io::Write for Hasher<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The folder of an entry, made now if it is not there.
///
/// `make` fills the empty folder that it is given; the entry appears under its name only once `make` has succeeded, so
/// whoever sees it sees all of it. Of several processes (or threads) that want the same entry one makes it and the
/// others wait. Blocks; call it off the async threads.
pub fn entry<E: From<CacheError>>(
    kind: &str,
    key: &str,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    entry_in(&root()?, kind, key, make)
}

/// [`entry`] in a cache of one's own.
pub fn entry_in<E: From<CacheError>>(
    root: &Path,
    kind: &str,
    key: &str,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    check_name(kind)?;
    check_name(key)?;
    let shelf = root.join(kind);
    let entry = shelf.join(key);
    if entry.is_dir() {
        return Ok(entry);
    }
    fs::create_dir_all(&shelf).map_err(CacheError::io("create", &shelf))?;
    let _lock = lock(&shelf, key)?;
    if entry.is_dir() {
        return Ok(entry);
    }
    remove_leftovers(&shelf, key)?;
    let partial = partial_path(&shelf, key);
    fs::create_dir(&partial).map_err(CacheError::io("create", &partial))?;
    if let Err(error) = make(&partial) {
        // Only space is lost if this fails, and the next maker tries again.
        let _ = fs::remove_dir_all(&partial);
        return Err(error);
    }
    fs::rename(&partial, &entry).map_err(CacheError::io("create", &entry))?;
    Ok(entry)
}

/// Whether the entry is there, in a cache of one's own.
#[must_use]
pub(crate) fn has(root: &Path, kind: &str, key: &str) -> bool {
    root.join(kind).join(key).is_dir()
}

fn check_name(name: &str) -> Result<(), CacheError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
        return Err(CacheError::Name(name.to_owned()));
    }
    Ok(())
}

/// Where an entry is made. No two processes have one place: what a maker that was killed has started, a compiler for example,
/// may live on for a while and write where it was told.
fn partial_path(shelf: &Path, key: &str) -> PathBuf {
    shelf.join(format!(".{key}.{}.partial", std::process::id()))
}

/// The key of the entry that is made in a folder of that name.
fn key_of_partial(name: &str) -> Option<&str> {
    name.strip_prefix('.')?.strip_suffix(".partial")?.rsplit_once('.').map(|(key, _)| key)
}

fn lock_path(shelf: &Path, key: &str) -> PathBuf {
    shelf.join(format!(".{key}.lock"))
}

fn lock(shelf: &Path, key: &str) -> Result<File, CacheError> {
    let path = lock_path(shelf, key);
    if let Some(turn) = turn::take(&path)? {
        return Ok(turn);
    }
    tracing::info!(entry = %shelf.join(key).display(), "another process makes it");
    turn::wait(&path)
}

/// Removes what makers that died have left, whichever entry they were making. Whose lock is free has no maker; `held` is
/// the key whose lock we hold ourselves.
fn remove_leftovers(shelf: &Path, held: &str) -> Result<(), CacheError> {
    for file in fs::read_dir(shelf).map_err(CacheError::io("read", shelf))? {
        let file = file.map_err(CacheError::io("read", shelf))?;
        let name = file.file_name();
        let Some(key) = name.to_str().and_then(key_of_partial) else { continue };
        let lock = lock_path(shelf, key);
        let lock = File::create(&lock).map_err(CacheError::io("create", &lock))?;
        if key != held && lock.try_lock().is_err() {
            continue;
        }
        match fs::remove_dir_all(file.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(CacheError::io("remove", &file.path())(error));
            }
            _ => {}
        }
    }
    Ok(())
}
