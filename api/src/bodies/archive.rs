//! Files become a tar.gz (BUN-03): the same files give the same bytes, and so the same digest.

use std::fmt;
use std::io::{self, Write};
use std::num::NonZero;
use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};
use tar::{EntryType, Header};
use tokio::sync::Semaphore;

use super::files::{BundleError, Files, Limits};
use super::path::directories;
use crate::token::hex;
use crate::wire::Bundle;

/// Bytes of a piece of an archive.
const PIECE: usize = 256 * 1024;

const FILE_MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// A tar.gz in memory, in pieces that are never copied again.
#[derive(Clone)]
pub struct Archive {
    pub(super) pieces: Vec<Bytes>,
    bytes: u64,
    sha256: String,
}

/// Why there is no archive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveError {
    /// Something is wrong with the bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A fault of ours; nothing of the bundle is in it.
    #[error("the bundle cannot be packed: an internal error")]
    Failed,
}

/// Checks and packs bundles, a few at once, beside the threads that serve. Clones share the bound.
#[derive(Clone, Debug)]
pub struct Archiver {
    turns: Arc<Semaphore>,
}

impl Archiver {
    /// One that works on `at_once` bundles at the same time; the others wait for their turn.
    #[must_use]
    pub fn new(at_once: NonZero<usize>) -> Self {
        Self { turns: Arc::new(Semaphore::new(at_once.get())) }
    }

    /// Checks a bundle.
    pub async fn check(&self, bundle: Bundle, limits: Limits) -> Result<Files, ArchiveError> {
        self.work(move || Ok(Files::of(bundle, limits)?)).await
    }

    /// Packs what was checked.
    pub async fn pack(&self, files: Files) -> Result<Archive, ArchiveError> {
        self.work(move || {
            pack(files).map_err(|error| {
                // It comes of the library that writes headers, and memory is all that is written to.
                tracing::error!(kind = ?error.kind(), "an archive was not packed");
                ArchiveError::Failed
            })
        })
        .await
    }

    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ArchiveError> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| ArchiveError::Failed)?;
        // The work goes on when its caller leaves, so the turn goes with it.
        let done = tokio::task::spawn_blocking(move || (work(), turn)).await;
        done.map_or(Err(ArchiveError::Failed), |(outcome, _)| outcome)
    }
}

impl Archive {
    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Its SHA-256, as 64 hexadecimal digits in lower case.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}

/// Packs files, in the order of their paths, each after the directories that it is the first to lie in.
pub(super) fn pack(files: Files) -> io::Result<Archive> {
    // A session waits for this, and most bodies are small: speed counts for more than the last tenth of the size.
    let gzip = GzBuilder::new().mtime(0).write(Pieces::new(), Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let mut before = String::new();
    for (path, file) in files.files {
        for directory in directories(&path) {
            let is_there = before.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'));
            if !is_there {
                let mut header = header(EntryType::Directory, DIRECTORY_MODE, 0);
                tar.append_data(&mut header, format!("{directory}/"), io::empty())?;
            }
        }
        let size = u64::try_from(file.contents.len()).map_err(io::Error::other)?;
        let mut header = header(EntryType::Regular, FILE_MODE, size);
        tar.append_data(&mut header, &path, file.contents.as_slice())?;
        before = path;
    }
    Ok(tar.into_inner()?.finish()?.finish())
}

/// Nobody's, and of no time. Names that are too long for it get an entry of their own before it, as GNU tar does.
fn header(entry: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(entry);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header
}

/// What is written, counted and digested as it comes.
struct Pieces {
    full: Vec<Bytes>,
    filling: BytesMut,
    bytes: u64,
    digest: Sha256,
}

impl Pieces {
    fn new() -> Self {
        Self { full: Vec::new(), filling: BytesMut::new(), bytes: 0, digest: Sha256::new() }
    }

    fn finish(mut self) -> Archive {
        self.close_piece();
        Archive { pieces: self.full, bytes: self.bytes, sha256: hex(&self.digest.finalize()) }
    }

    fn close_piece(&mut self) {
        if !self.filling.is_empty() {
            self.full.push(self.filling.split().freeze());
        }
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.filling.len() == PIECE {
            self.close_piece();
        }
        // Grows as needed, so that a small archive takes little, and never past a piece.
        let fits = bytes.len().min(PIECE - self.filling.len());
        let (now, _) = bytes.split_at(fits);
        self.filling.put_slice(now);
        self.digest.update(now);
        self.bytes += u64::try_from(fits).map_err(io::Error::other)?;
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("bytes", &self.bytes).field("sha256", &self.sha256).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
