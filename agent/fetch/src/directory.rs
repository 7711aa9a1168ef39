//! Open directories: what is in them, how it goes away and who may do what with it, never through a link.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::failure::Failure;

/// `rwxrwsr-x`: owner and group do what they like, and what is made in it is the group's again.
pub(crate) const DIRECTORY_MODE: u32 = 0o2775;

/// How a directory is opened: itself, never what a link of its name leads to.
pub(crate) const OPEN_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes what `name` is in `parent`, with all that is in it. Nothing there is no error. Two directories are open at most,
/// however deep it is: what lies in an inner one comes up first.
pub(crate) fn remove(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    if unlink(parent, name)? {
        return Ok(());
    }
    let directory = rustix::fs::openat(parent, name, OPEN_DIRECTORY, Mode::empty())?;
    let mut left = names(directory.as_fd())?;
    let mut moved = 0_u64;
    while let Some(outer) = left.pop() {
        if unlink(directory.as_fd(), &outer)? {
            continue;
        }
        let inner = rustix::fs::openat(&directory, &outer, OPEN_DIRECTORY, Mode::empty())?;
        for name in names(inner.as_fd())? {
            if !unlink(inner.as_fd(), &name)? {
                left.push(move_up(inner.as_fd(), &name, directory.as_fd(), &mut moved)?);
            }
        }
        rustix::fs::unlinkat(&directory, &outer, AtFlags::REMOVEDIR)?;
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Removes what is no directory; returns whether nothing is there any more.
fn unlink(parent: BorrowedFd<'_>, name: impl Arg) -> Result<bool, Errno> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        // POSIX has the second for a directory.
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives a directory a name in another one that nothing has there, and returns it.
fn move_up(from: BorrowedFd<'_>, name: &CStr, to: BorrowedFd<'_>, moved: &mut u64) -> Result<CString, Errno> {
    loop {
        *moved += 1;
        // Digits hold no NUL.
        let free = CString::new(moved.to_string()).map_err(|_| Errno::INVAL)?;
        match rustix::fs::renameat(from, name, to, &free) {
            Ok(()) => return Ok(free),
            // An empty directory of the name would be replaced, which does as well.
            Err(Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sets a mode whatever the umask is.
pub(crate) fn set_mode(file: &impl AsFd, mode: u32) -> Result<(), Failure> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode)).map_err(|error| Failure::disk("set a mode", error))
}

/// The names in a directory.
pub(crate) fn names(directory: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.as_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}
