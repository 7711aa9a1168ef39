//! The directory that bodies appear in, and what tells how far one has come.
//!
//! | name | what it is |
//! | --- | --- |
//! | `.cofferdam-incoming` | what is being unpacked, and may be anything |
//! | `.cofferdam-verified-<digest>` | the same, whole and with the right digest; its entries are being moved out |
//! | `.cofferdam-complete` | written last, with the digest: everything is in place |
//!
//! A run that is interrupted leaves one of the first two. Of the next run, which is the same pod's with the same flags, the
//! first is thrown away; the second is finished without asking anybody, so that a token that is used up does no harm.
//!
//! Nothing is flushed to the disk on the way. A node that loses its power within half a minute may come back with the
//! marker and without the files; but its pods' programs have ended with it, and are not started again.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::directory::{DIRECTORY_MODE, OPEN_DIRECTORY, names, remove, set_mode};
use crate::failure::Failure;
use crate::remote::deadline::Deadline;
use crate::say;
use crate::unpack::{OURS, Tree};

const INCOMING: &str = ".cofferdam-incoming";
const VERIFIED: &str = ".cofferdam-verified-";
const COMPLETING: &str = ".cofferdam-completing";
const COMPLETE: &str = ".cofferdam-complete";

/// The marker's, as every file's.
const MARKER_MODE: u32 = 0o664;

/// How often it is looked whether another run has ended.
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// The directory that one body appears in.
#[derive(Debug)]
pub(crate) struct Place {
    root: OwnedFd,
    digest: String,
    verified: String,
}

impl Place {
    /// Opens the directory, and makes it if it is missing. It is this run's alone until the value is dropped: of two that
    /// unpack into the same names, one would publish what the other has not checked.
    pub(crate) fn open(path: &Path, digest: &str, deadline: &Deadline) -> Result<Self, Failure> {
        let opened = || -> Result<OwnedFd, std::io::Error> {
            fs::create_dir_all(path)?;
            Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
        };
        let root = opened().map_err(|error| Failure::disk("open the directory of --into", error))?;
        lock(&root, deadline)?;
        Ok(Self { root, digest: digest.to_owned(), verified: format!("{VERIFIED}{digest}") })
    }

    /// Whether the body is there already.
    pub(crate) fn is_complete(&self) -> bool {
        let complete = self.has_marker();
        if complete {
            // All that may be left of the way is an empty directory, and it harms nobody.
            let _ = self.remove_verified();
        }
        complete
    }

    fn has_marker(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let Ok(marker) = rustix::fs::openat(&self.root, COMPLETE, flags, Mode::empty()) else { return false };
        let mut text = String::new();
        // Whatever else it is, it is longer or different.
        let read = File::from(marker).take(self.digest.len() as u64 + 2).read_to_string(&mut text);
        read.is_ok() && text.trim_end() == self.digest
    }

    /// Whether an earlier run had the whole body, and was interrupted while it moved it into place.
    pub(crate) fn is_verified(&self) -> bool {
        rustix::fs::openat(&self.root, &self.verified, OPEN_DIRECTORY, Mode::empty()).is_ok()
    }

    /// Removes what an earlier run left, but for a body that is whole.
    pub(crate) fn clean(&self) -> Result<(), Failure> {
        // Anything else of its name would stand in the way of every run.
        let is_verified = self.is_verified();
        for name in
            names(self.root.as_fd()).map_err(|error| Failure::disk("look into the directory of --into", error))?
        {
            let name = OsString::from_vec(name.into_bytes());
            if name.as_encoded_bytes().starts_with(OURS.as_bytes()) && !(is_verified && name == *self.verified) {
                remove(self.root.as_fd(), &name)
                    .map_err(|error| Failure::disk("remove what an earlier run left", error))?;
            }
        }
        Ok(())
    }

    /// A new tree to unpack into, which nobody sees yet.
    pub(crate) fn incoming(&self) -> Result<Tree, Failure> {
        let made = || {
            remove(self.root.as_fd(), OsStr::new(INCOMING))?;
            rustix::fs::mkdirat(&self.root, INCOMING, Mode::from_raw_mode(0o700))?;
            rustix::fs::openat(&self.root, INCOMING, OPEN_DIRECTORY, Mode::empty())
        };
        let root = made().map_err(|error: Errno| Failure::disk("make a directory", error))?;
        // Its group, which it has of the volume, is what everything in it gets.
        set_mode(&root, DIRECTORY_MODE)?;
        Ok(Tree::new(root))
    }

    /// What was unpacked is the body.
    pub(crate) fn verify(&self) -> Result<(), Failure> {
        rustix::fs::renameat(&self.root, INCOMING, &self.root, &self.verified)
            .map_err(|error| Failure::disk("rename a directory", error))
    }

    /// Moves the body into place, and says that it is there.
    pub(crate) fn complete(&self) -> Result<(), Failure> {
        self.move_all().map_err(|error| Failure::disk("move the body into place", error))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let marker = rustix::fs::openat(&self.root, COMPLETING, flags, Mode::from_raw_mode(0o600));
        let mut marker = File::from(marker.map_err(|error| Failure::disk("write the marker", error))?);
        writeln!(marker, "{}", self.digest).map_err(|error| Failure::disk("write the marker", error))?;
        set_mode(&marker, MARKER_MODE)?;
        rustix::fs::renameat(&self.root, COMPLETING, &self.root, COMPLETE)
            .map_err(|error| Failure::disk("write the marker", error))?;
        // Only now: without it and without the marker, all of it would be fetched again, and lie there twice.
        self.remove_verified().map_err(|error| Failure::disk("remove a directory", error))
    }

    fn remove_verified(&self) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.root, &self.verified, AtFlags::REMOVEDIR)
    }

    fn move_all(&self) -> Result<(), Errno> {
        let verified = rustix::fs::openat(&self.root, &self.verified, OPEN_DIRECTORY, Mode::empty())?;
        for name in names(verified.as_fd())? {
            match rustix::fs::renameat(&verified, &name, &self.root, &name) {
                // What takes its place is older.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ISDIR | Errno::NOTDIR) => {
                    remove(self.root.as_fd(), &OsString::from_vec(name.as_bytes().to_vec()))?;
                    rustix::fs::renameat(&verified, &name, &self.root, &name)?;
                }
                moved => moved?,
            }
        }
        Ok(())
    }
}

/// Waits until no other run has the directory; the kernel ends a lock with its process.
fn lock(root: &OwnedFd, deadline: &Deadline) -> Result<(), Failure> {
    let mut has_told = false;
    loop {
        match rustix::fs::flock(root, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if !deadline.left().is_zero() => {
                if !has_told {
                    has_told = true;
                    say("waiting: another run works in the directory of --into");
                }
                thread::sleep(LOCK_PAUSE.min(deadline.left()));
            }
            Err(Errno::WOULDBLOCK) => {
                let why = format!("another run works in the directory of --into, for all of {:?}", deadline.whole());
                return Err(Failure::NotReached(why));
            }
            Err(error) => return Err(Failure::disk("lock the directory of --into", error)),
        }
    }
}
