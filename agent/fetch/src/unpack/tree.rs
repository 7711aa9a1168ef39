//! The tree that a body is unpacked into, written from one open directory downwards.
//!
//! Every directory on the way to an entry is opened by itself, in its parent, and never if it is a link; so whatever an
//! archive has made before, nothing is written outside. That is what `openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)`
//! does in one call, which sandboxed kernels do not have; one way that works on all of them is one to test.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::budget::Budget;
use super::name::Name;
use super::told;
use crate::directory::{DIRECTORY_MODE, OPEN_DIRECTORY, remove, set_mode};
use crate::failure::Failure;

/// The longest target of a link, in bytes.
const LONGEST_TARGET: usize = 4095;

/// Why an entry was not made.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Said of the entry.
    Entry(&'static str),
    Failure(Failure),
}

impl Refusal {
    /// The failure, for the entry at `path`.
    pub(crate) fn explain(self, path: &[u8]) -> Failure {
        match self {
            Self::Entry(what) => Failure::Unsafe(format!("the archive's entry {} {what}", told(path))),
            Self::Failure(failure) => failure,
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// A directory that an archive is unpacked into.
#[derive(Debug)]
pub struct Tree {
    root: Rc<OwnedFd>,
    /// The directory that was opened last, since entries of one follow each other.
    last: Option<(Vec<OsString>, Rc<OwnedFd>)>,
}

impl Tree {
    /// The tree in the directory at `path`, which ought to be empty.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::new(rustix::fs::open(path, OPEN_DIRECTORY, Mode::empty())?))
    }

    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root: Rc::new(root), last: None }
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(crate) fn make_directory(&mut self, name: &Name, mode: u32, budget: &Budget) -> Result<(), Refusal> {
        let Some((parents, last)) = name.split() else { return Ok(()) };
        let parent = self.directory(parents, budget)?;
        let directory = match open_directory(&parent, last) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => make_directory(&parent, last)?,
            // A file or a link: the last one wins.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                self.clear(&parent, last)?;
                make_directory(&parent, last)?
            }
            Err(error) => return Err(disk("open a directory", error)),
        };
        set_mode(&directory, mode)?;
        Ok(())
    }

    /// A new file, which nobody else can open until its mode is set.
    pub(crate) fn create_file(&mut self, name: &Name, budget: &Budget) -> Result<File, Refusal> {
        let (parent, last) = self.parent(name, budget)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || rustix::fs::openat(&parent, last, flags, Mode::from_raw_mode(0o600));
        let file = self.replacing(&parent, last, create).map_err(|error| disk("create a file", error))?;
        Ok(File::from(file))
    }

    pub(crate) fn symlink(&mut self, name: &Name, target: &[u8], budget: &Budget) -> Result<(), Refusal> {
        match target {
            [] => return Err(Refusal::Entry("is a symbolic link to nothing")),
            [b'/', ..] => return Err(Refusal::Entry("is a symbolic link with an absolute target")),
            _ if target.contains(&0) => return Err(Refusal::Entry("is a symbolic link with a NUL byte in its target")),
            _ if target.len() > LONGEST_TARGET => return Err(Refusal::Entry("is a symbolic link that is too long")),
            _ => {}
        }
        let (parent, last) = self.parent(name, budget)?;
        let link = || rustix::fs::symlinkat(target, &parent, last);
        self.replacing(&parent, last, link).map_err(|error| disk("make a link", error))
    }

    pub(crate) fn hard_link(&mut self, name: &Name, target: &Name, budget: &Budget) -> Result<(), Refusal> {
        if name == target {
            return Err(Refusal::Entry("is a hard link to itself"));
        }
        // What this replaces may be what is meant.
        let (parent, last) = self.parent(name, budget)?;
        let missing = Refusal::Entry("is a hard link to a file that does not come before it");
        let Some((target_parents, target_last)) = target.split() else { return Err(missing) };
        let Some(from) = self.existing(target_parents)? else { return Err(missing) };
        let found = match rustix::fs::statat(&from, target_last, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Err(missing),
            Err(error) => return Err(disk("look at a file", error)),
        };
        // A link to a link would lead elsewhere from here than from there.
        if !FileType::from_raw_mode(found.st_mode).is_file() {
            return Err(Refusal::Entry("is a hard link to what is no file"));
        }
        let link = || rustix::fs::linkat(&from, target_last, &parent, last, AtFlags::empty());
        match self.replacing(&parent, last, link) {
            // Clearing the place took the target away: it was in a directory of this name.
            Err(Errno::NOENT) => Err(missing),
            made => made.map_err(|error| disk("make a link", error)),
        }
    }

    fn parent<'a>(&mut self, name: &'a Name, budget: &Budget) -> Result<(Rc<OwnedFd>, &'a OsStr), Refusal> {
        let (parents, last) = name.split().ok_or(Refusal::Entry("takes the place of the whole tree"))?;
        Ok((self.directory(parents, budget)?, last))
    }

    /// Makes something, once more after clearing its place if that is taken.
    fn replacing<T>(
        &mut self,
        parent: &OwnedFd,
        name: &OsStr,
        make: impl Fn() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match make() {
            Err(Errno::EXIST) => {
                self.last = None;
                remove(parent.as_fd(), name)?;
                make()
            }
            done => done,
        }
    }

    fn clear(&mut self, parent: &OwnedFd, name: &OsStr) -> Result<(), Refusal> {
        // What is remembered may have been in there.
        self.last = None;
        remove(parent.as_fd(), name).map_err(|error| disk("replace an entry", error))
    }

    /// Opens a directory, and makes what of it is missing.
    fn directory(&mut self, parts: &[OsString], budget: &Budget) -> Result<Rc<OwnedFd>, Refusal> {
        if let Some((path, directory)) = &self.last
            && path == parts
        {
            return Ok(Rc::clone(directory));
        }
        let mut directory = Rc::clone(&self.root);
        for part in parts {
            let next = match open_directory(&directory, part) {
                Ok(next) => next,
                Err(Errno::NOENT) => missing_directory(&directory, part, budget)?,
                Err(Errno::NOTDIR | Errno::LOOP) => {
                    if is_link(&directory, part)? {
                        return Err(Refusal::Entry("has a path through a symbolic link"));
                    }
                    self.clear(&directory, part)?;
                    missing_directory(&directory, part, budget)?
                }
                Err(error) => return Err(disk("open a directory", error)),
            };
            directory = Rc::new(next);
        }
        self.last = Some((parts.to_vec(), Rc::clone(&directory)));
        Ok(directory)
    }

    /// Opens a directory if it is there, and no part of it a link.
    fn existing(&self, parts: &[OsString]) -> Result<Option<Rc<OwnedFd>>, Refusal> {
        let mut directory = Rc::clone(&self.root);
        for part in parts {
            directory = match open_directory(&directory, part) {
                Ok(next) => Rc::new(next),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(error) => return Err(disk("open a directory", error)),
            };
        }
        Ok(Some(directory))
    }
}

/// A directory that no entry has named yet counts as one.
fn missing_directory(parent: &OwnedFd, name: &OsStr, budget: &Budget) -> Result<OwnedFd, Refusal> {
    budget.take_entry(name)?;
    budget.take_bytes(0)?;
    let directory = make_directory(parent, name)?;
    set_mode(&directory, DIRECTORY_MODE)?;
    Ok(directory)
}

fn make_directory(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Refusal> {
    let made = rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700));
    made.and_then(|()| open_directory(parent, name)).map_err(|error| disk("make a directory", error))
}

fn open_directory(parent: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(parent, name, OPEN_DIRECTORY, Mode::empty())
}

fn is_link(parent: &OwnedFd, name: &OsStr) -> Result<bool, Refusal> {
    let found = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    let found = found.map_err(|error| disk("look at an entry", error))?;
    Ok(FileType::from_raw_mode(found.st_mode).is_symlink())
}

fn disk(what: &str, error: Errno) -> Refusal {
    Failure::disk(what, error).into()
}
