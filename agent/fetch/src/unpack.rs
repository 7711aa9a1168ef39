//! What an archive may hold, and what is made of it.
//!
//! An archive is a gzip stream, of one member or several, of one tar file. Regular files (sparse ones too), directories,
//! hard links and symbolic links that stay in the tree are made; everything else is refused. The last of several entries
//! for one path wins, as it does for tar, and nothing is ever written through a link. Owners and times are not kept; modes
//! are opened for the group, by which a pod's other users reach the files (`fsGroup`).

use std::cell::Cell;
use std::io::{self, Read, Write as _};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use self::budget::Budget;
use self::name::Name;
use self::tree::Refusal;
use crate::directory::{DIRECTORY_MODE, set_mode};
use crate::failure::Failure;

mod budget;
mod links;
mod name;
mod tree;

pub use budget::Limits;
pub(crate) use name::OURS;
pub use tree::Tree;

/// The most bytes between the contents of two files: headers, long names, extended attributes. tar's reader keeps them
/// in memory.
const MOST_HEADER_BYTES: u64 = 256 << 10;

/// The most of a path that is repeated to people.
const TOLD_CHARACTERS: usize = 120;

/// Set-user-ID and set-group-ID.
const SET_ID: u32 = 0o6000;

/// What of an extended header is heeded.
const DECIDING: [&[u8]; 3] = [b"path", b"linkpath", b"size"];

/// Unpacks an archive into an empty tree. After an error the tree holds a part of it.
///
/// # Errors
/// [`Failure::Unsafe`], [`Failure::TooLarge`] or [`Failure::Disk`]; the first of them too for an archive that cannot be
/// read.
pub fn unpack(archive: impl Read, tree: &mut Tree, limits: Limits) -> Result<(), Failure> {
    let budget = Rc::new(Budget::new(limits));
    let header_bytes = Rc::new(Cell::new(0));
    let stream = Stream {
        inner: MultiGzDecoder::new(archive),
        budget: Rc::clone(&budget),
        header_bytes: Rc::clone(&header_bytes),
    };
    let mut archive = Archive::new(stream);
    let mut unpacking = Unpacking { tree, budget: &budget, has_links: false };
    // What is too much ends the reading, too, and is the better reason.
    let explain = |failure| budget.exceeded().unwrap_or(failure);
    unpacking.all(&mut archive, &header_bytes).map_err(explain)?;
    let has_links = unpacking.has_links;
    no_more(&mut archive.into_inner()).map_err(explain)?;
    if has_links { links::check(tree, limits) } else { Ok(()) }
}

struct Unpacking<'a> {
    tree: &'a mut Tree,
    budget: &'a Budget,
    has_links: bool,
}

impl Unpacking<'_> {
    fn all<R: Read>(&mut self, archive: &mut Archive<R>, header_bytes: &Cell<u64>) -> Result<(), Failure> {
        let mut entries = archive.entries().map_err(|error| unreadable(&error))?;
        loop {
            header_bytes.set(MOST_HEADER_BYTES);
            let entry = entries.next();
            header_bytes.set(u64::MAX);
            match entry {
                None => return Ok(()),
                Some(entry) => self.one(&mut entry.map_err(|error| unreadable(&error))?)?,
            }
        }
    }

    fn one<R: Read>(&mut self, entry: &mut Entry<'_, R>) -> Result<(), Failure> {
        let path = entry.path_bytes().into_owned();
        let at = |what: &str| Failure::Unsafe(format!("the archive's entry {} {what}", told(&path)));
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            return drain(entry);
        }
        let name = Name::parse(&path).map_err(|error| at(&error.to_string()))?;
        self.budget.take_entry(name.last())?;
        check_extensions(entry).map_err(at)?;
        let mode = entry.header().mode().map_err(|_| at("has a mode that is no number"))?;
        // How old archives write a directory.
        let is_directory = kind.is_dir() || (kind.is_file() && path.ends_with(b"/"));
        if name.is_root() && !is_directory {
            return Err(at("takes the place of the whole tree"));
        }
        let outcome = if is_directory {
            self.budget.take_bytes(0)?;
            self.tree.make_directory(&name, directory_mode(mode), self.budget)
        } else {
            match kind {
                EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                    if mode & SET_ID != 0 {
                        return Err(at("has a set-user-ID or set-group-ID bit"));
                    }
                    return self.file(entry, &name, mode).map_err(|error| error.explain(&path));
                }
                EntryType::Link => {
                    let link = entry.link_name_bytes().ok_or_else(|| at("is a hard link to nothing"))?;
                    let target =
                        Name::parse(&link).map_err(|error| at(&format!("is a hard link whose target {error}")))?;
                    self.tree.hard_link(&name, &target, self.budget)
                }
                EntryType::Symlink => {
                    let link = entry.link_name_bytes().ok_or_else(|| at("is a symbolic link to nothing"))?;
                    self.has_links = true;
                    self.budget.take_bytes(link.len() as u64)?;
                    self.tree.symlink(&name, &link, self.budget)
                }
                EntryType::Block | EntryType::Char => return Err(at("is a device")),
                EntryType::Fifo => return Err(at("is a named pipe")),
                _ => return Err(at("is of a kind that no body needs")),
            }
        };
        outcome.map_err(|refusal| refusal.explain(&path))?;
        drain(entry)
    }

    fn file<R: Read>(&mut self, entry: &mut Entry<'_, R>, name: &Name, mode: u32) -> Result<(), Refusal> {
        // All of it before any of it is written; what is sparse takes its room as well.
        self.budget.take_bytes(entry.size())?;
        let mut file = self.tree.create_file(name, self.budget)?;
        let (mut buffer, mut written) = (vec![0; 64 << 10], 0);
        loop {
            match entry.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    file.write_all(&buffer[..length]).map_err(|error| Failure::disk("write a file", error))?;
                    written += length as u64;
                }
                Err(error) => return Err(unreadable(&error).into()),
            }
        }
        if written != entry.size() {
            return Err(Failure::Unsafe("the archive is no whole tar.gz: it ends within a file".to_owned()).into());
        }
        set_mode(&file, file_mode(mode))?;
        Ok(())
    }
}

/// What of an extended header changes what an entry is.
fn check_extensions<R: Read>(entry: &mut Entry<'_, R>) -> Result<(), &'static str> {
    // One that tar's reader did not take for such: it would read all of it.
    if entry.header().entry_type().is_pax_local_extensions() {
        return Ok(());
    }
    let Ok(Some(extensions)) = entry.pax_extensions() else { return Ok(()) };
    let mut seen = Vec::new();
    for extension in extensions {
        let extension = extension.map_err(|_| "has an extended header that cannot be read")?;
        let key = extension.key_bytes();
        // tar's reader takes the first, GNU tar the last: they would unpack two different bodies.
        if DECIDING.contains(&key) {
            if seen.contains(&key) {
                return Err("has an extended header that says the same thing twice; make the archive anew");
            }
            seen.push(key);
        }
        // The file's content would be a map and pieces of it.
        if key.starts_with(b"GNU.sparse.") {
            return Err(
                "is sparse in a form that is not understood; make the archive without --sparse, or with --format=gnu",
            );
        }
    }
    Ok(())
}

/// Reads what an entry that has no contents brings along nevertheless.
fn drain<R: Read>(entry: &mut Entry<'_, R>) -> Result<(), Failure> {
    io::copy(entry, &mut io::sink()).map(drop).map_err(|error| unreadable(&error))
}

/// Holds that nothing but zeros follows: another archive behind the first would silently be left out.
fn no_more(rest: &mut impl Read) -> Result<(), Failure> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match rest.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) if buffer[..length].iter().all(|byte| *byte == 0) => {}
            Ok(_) => return Err(Failure::Unsafe("something follows the end of the archive; make it anew".to_owned())),
            Err(error) => return Err(unreadable(&error)),
        }
    }
}

fn unreadable(error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
        _ => told(error.to_string().as_bytes()),
    };
    Failure::Unsafe(format!("the archive is no whole tar.gz: {why}"))
}

fn told(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut told: String = text.chars().take(TOLD_CHARACTERS).collect();
    if told.len() < text.len() {
        told.push('…');
    }
    format!("\"{}\"", told.escape_debug())
}

/// Read and written by owner and group, run by both if by anyone; what others may is left, but for writing.
fn file_mode(mode: u32) -> u32 {
    let run = if mode & 0o111 == 0 { 0 } else { 0o110 };
    0o660 | run | (mode & 0o005)
}

fn directory_mode(mode: u32) -> u32 {
    (DIRECTORY_MODE & !0o005) | (mode & 0o005)
}

/// The unpacked stream, counted.
struct Stream<R> {
    inner: R,
    budget: Rc<Budget>,
    header_bytes: Rc<Cell<u64>>,
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.budget.take_stream(length as u64).map_err(|failure| io::Error::other(failure.to_string()))?;
        let left = self.header_bytes.get().checked_sub(length as u64);
        let left = left.ok_or_else(|| io::Error::other("it has headers without end"))?;
        self.header_bytes.set(left);
        Ok(length)
    }
}
