//! Whether every symbolic link of a whole tree stays in it.
//!
//! That cannot be told when a link is made: where `a/b` leads hangs on what `a` is in the end, and an archive may make `a`
//! another link later. So all of them are followed when the tree is complete, as the kernel would, one part at a time.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::{Limits, Tree, told};
use crate::directory::{OPEN_DIRECTORY, names};
use crate::failure::Failure;

/// Links that a kernel follows for one path.
const MOST_LINKS: usize = 40;

/// The most parts of paths that all links together are followed through, for each entry that a body may have, and at
/// least. A few links that lead through each other can ask for thousands.
const STEPS_PER_ENTRY: u64 = 16;
const LEAST_STEPS: u64 = 100_000;

/// Holds every link against the tree's root.
pub(crate) fn check(tree: &Tree, limits: Limits) -> Result<(), Failure> {
    let steps = limits.entries.saturating_mul(STEPS_PER_ENTRY).max(LEAST_STEPS);
    Check { root: tree.root(), steps }.walk(tree.root(), &mut Vec::new())
}

struct Check<'a> {
    root: BorrowedFd<'a>,
    /// How many are left.
    steps: u64,
}

impl Check<'_> {
    fn walk(&mut self, directory: BorrowedFd<'_>, path: &mut Vec<OsString>) -> Result<(), Failure> {
        for name in names(directory).map_err(disk)? {
            let name = OsStr::from_bytes(name.as_bytes());
            let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(disk)?;
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => {
                    let inner = rustix::fs::openat(directory, name, OPEN_DIRECTORY, Mode::empty()).map_err(disk)?;
                    path.push(name.to_owned());
                    self.walk(inner.as_fd(), path)?;
                    path.pop();
                }
                FileType::Symlink if self.leads_out(path, name)? => {
                    let path: PathBuf = path.iter().map(OsString::as_os_str).chain([name]).collect();
                    let path = told(path.as_os_str().as_bytes());
                    return Err(Failure::Unsafe(format!("the archive's symbolic link {path} leads out of the body")));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Follows a link. `reached` is always a path without links, so what is read there is what is meant.
    fn leads_out(&mut self, directory: &[OsString], name: &OsStr) -> Result<bool, Failure> {
        let mut reached = directory.to_vec();
        let mut ahead = VecDeque::from([name.to_owned()]);
        let mut followed = 0;
        while let Some(part) = ahead.pop_front() {
            if part == ".." {
                if reached.pop().is_none() {
                    return Ok(true);
                }
                continue;
            }
            reached.push(part);
            let path: PathBuf = reached.iter().collect();
            let target = match rustix::fs::readlinkat(self.root, &path, Vec::new()) {
                Ok(target) => target,
                // No link; or nothing, which whoever makes it later has to answer for.
                Err(Errno::INVAL | Errno::NOENT | Errno::NOTDIR) => continue,
                // No path can be that long, so nobody can tell where it leads.
                Err(Errno::NAMETOOLONG) => return Ok(true),
                Err(error) => return Err(disk(error)),
            };
            followed += 1;
            if followed > MOST_LINKS {
                // A kernel gives up before: it leads nowhere.
                return Ok(false);
            }
            reached.pop();
            let target = target.as_bytes();
            if target.first() == Some(&b'/') {
                return Ok(true);
            }
            let parts = target.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
            for part in parts.rev() {
                self.step()?;
                ahead.push_front(OsString::from_vec(part.to_vec()));
            }
        }
        Ok(false)
    }

    fn step(&mut self) -> Result<(), Failure> {
        let left = self.steps.checked_sub(1);
        self.steps = left.ok_or_else(|| {
            Failure::Unsafe("the archive's symbolic links lead through too many others to be followed".to_owned())
        })?;
        Ok(())
    }
}

fn disk(error: Errno) -> Failure {
    Failure::disk("look through what was unpacked", error)
}
