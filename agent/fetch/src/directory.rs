//! Open directories: what is in them, how it goes away and who may do what with it, never through a link.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::failure::Failure;

/// `rwxrwsr-x`: owner and group do what they like, and what is made in it is the group's again.
pub(crate) const DIRECTORY_MODE: u32 = 0o2775;

/// How a directory is opened: itself, never what a link of its name leads to.
pub(crate) const OPEN_DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes what `name` is in `parent`, with all that is in it. Nothing there is no error.
pub(crate) fn remove(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // POSIX has the second for a directory.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let directory = rustix::fs::openat(parent, name, OPEN_DIRECTORY, Mode::empty())?;
    for name in names(directory.as_fd())? {
        remove(directory.as_fd(), OsStr::from_bytes(name.as_bytes()))?;
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
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
