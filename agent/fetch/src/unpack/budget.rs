//! How much a body may be, counted as it comes.

use std::cell::Cell;
use std::ffi::OsStr;

use crate::failure::Failure;

/// What a file, and a directory, takes at least. A kubelet counts blocks of the file system, and this is how large they
/// are on nearly all.
pub(crate) const BLOCK: u64 = 4096;

/// What a name takes in its directory, besides itself. Directories grow with their names, and a kubelet counts them too.
const PER_NAME: u64 = 8;

/// What an entry takes in a tar file besides the file's contents: headers, a long name, padding.
const PER_ENTRY: u64 = 4096;

/// What may follow the last entry: tar fills records, and some tools fill larger ones.
const TRAILER: u64 = 1 << 20;

/// The most that may come out of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes on the volume: whole blocks of 4 KiB, and what names take.
    pub bytes: u64,
    /// Files, directories and links; also directories that are only named in other entries' paths.
    pub entries: u64,
}

impl Limits {
    /// The most bytes of a tar file with a body that fits.
    #[must_use]
    pub fn stream(&self) -> u64 {
        self.entries.saturating_mul(PER_ENTRY).saturating_add(self.bytes).saturating_add(TRAILER)
    }
}

/// What is left of the limits.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    bytes: Cell<u64>,
    entries: Cell<u64>,
    stream: Cell<u64>,
    exceeded: Cell<Option<Limit>>,
}

#[derive(Debug, Clone, Copy)]
enum Limit {
    Bytes,
    Entries,
    Stream,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            bytes: Cell::new(limits.bytes),
            entries: Cell::new(limits.entries),
            stream: Cell::new(limits.stream()),
            exceeded: Cell::new(None),
        }
    }

    /// Something of `bytes` bytes is about to be made, in as many blocks as it needs and at least one.
    pub(crate) fn take_bytes(&self, bytes: u64) -> Result<(), Failure> {
        let blocks = bytes.max(1).div_ceil(BLOCK).saturating_mul(BLOCK);
        self.take(&self.bytes, blocks, Limit::Bytes)
    }

    /// One more file, directory or link of this name.
    pub(crate) fn take_entry(&self, name: &OsStr) -> Result<(), Failure> {
        self.take(&self.entries, 1, Limit::Entries)?;
        self.take(&self.bytes, PER_NAME + name.len() as u64, Limit::Bytes)
    }

    /// So many more bytes of the tar file.
    pub(crate) fn take_stream(&self, bytes: u64) -> Result<(), Failure> {
        self.take(&self.stream, bytes, Limit::Stream)
    }

    /// What was too much, if anything was.
    pub(crate) fn exceeded(&self) -> Option<Failure> {
        self.exceeded.get().map(|limit| self.explain(limit))
    }

    fn take(&self, left: &Cell<u64>, amount: u64, limit: Limit) -> Result<(), Failure> {
        let Some(rest) = left.get().checked_sub(amount) else {
            self.exceeded.set(Some(limit));
            return Err(self.explain(limit));
        };
        left.set(rest);
        Ok(())
    }

    fn explain(&self, limit: Limit) -> Failure {
        let Limits { bytes, entries } = self.limits;
        Failure::TooLarge(match limit {
            Limit::Bytes => format!(
                "the body unpacks to more than {bytes} bytes, in blocks of 4 KiB and with its names; make it smaller, or raise \
                 bodies.size in the policy"
            ),
            Limit::Entries => format!(
                "the body unpacks to more than {entries} files, directories and links; make it fewer, or raise \
                 bodies.maxEntries in the policy"
            ),
            Limit::Stream => format!(
                "the archive unpacks to more than {} bytes, headers and padding included; make the body smaller, or raise \
                 bodies.size in the policy",
                self.limits.stream()
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_in_blocks_and_nothing_wraps_around() {
        let budget = Budget::new(Limits { bytes: 3 * BLOCK, entries: 2 });
        budget.take_bytes(0).unwrap();
        budget.take_bytes(BLOCK + 1).unwrap();
        assert!(matches!(budget.take_bytes(1), Err(Failure::TooLarge(_))));
        let budget = Budget::new(Limits { bytes: u64::MAX, entries: u64::MAX });
        budget.take_bytes(u64::MAX - BLOCK).unwrap();
        assert!(budget.take_bytes(u64::MAX).is_err());
    }

    #[test]
    fn what_was_too_much_is_remembered() {
        let budget = Budget::new(Limits { bytes: PER_NAME, entries: 1 });
        assert_eq!(budget.exceeded(), None);
        budget.take_entry(OsStr::new("")).unwrap();
        let failure = budget.take_entry(OsStr::new("")).unwrap_err();
        assert_eq!(budget.exceeded(), Some(failure));
    }
}
