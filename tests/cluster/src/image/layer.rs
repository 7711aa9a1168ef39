//! One layer of an image: which file lies where, with which mode and owner.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use super::ImageError;

/// A layer, described: file contents are read when it is written.
#[derive(Debug, Clone, Default)]
pub struct Layer {
    // Without the leading slash. A path sorts by its parts, so every directory precedes what lies in it.
    entries: BTreeMap<PathBuf, Entry>,
}

/// What takes the place of a copied file's own mode and owner.
#[derive(Debug, Clone, Copy, Default)]
pub struct Override {
    /// Permission bits, as in `0o755`, for all but symbolic links.
    pub mode: Option<u32>,
    /// User and group id.
    pub owner: Option<(u32, u32)>,
}

impl Override {
    /// Everything belongs to root; modes stay.
    #[must_use]
    pub fn root_owned() -> Self {
        Self { mode: None, owner: Some((0, 0)) }
    }

    /// Everything belongs to root and has this mode.
    #[must_use]
    pub fn root_owned_with_mode(mode: u32) -> Self {
        Self { mode: Some(mode), owner: Some((0, 0)) }
    }
}

#[derive(Debug, Clone)]
struct Entry {
    mode: u32,
    owner: (u32, u32),
    content: Content,
}

#[derive(Debug, Clone)]
enum Content {
    Directory,
    Text(Vec<u8>),
    File(PathBuf),
    Link(PathBuf),
}

impl Layer {
    /// A layer in which nothing lies yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory of root's. Every other method makes missing parents by itself, with mode 755.
    pub fn directory(&mut self, path: impl AsRef<Path>, mode: u32) -> Result<&mut Self, ImageError> {
        self.insert(path.as_ref(), Entry { mode, owner: (0, 0), content: Content::Directory })
    }

    /// Adds a file of root's with this content.
    pub fn text(
        &mut self,
        path: impl AsRef<Path>,
        mode: u32,
        content: impl Into<Vec<u8>>,
    ) -> Result<&mut Self, ImageError> {
        self.insert(path.as_ref(), Entry { mode, owner: (0, 0), content: Content::Text(content.into()) })
    }

    /// Adds a symbolic link, whose target need not exist.
    pub fn link(&mut self, path: impl AsRef<Path>, target: impl Into<PathBuf>) -> Result<&mut Self, ImageError> {
        self.insert(path.as_ref(), Entry { mode: 0o777, owner: (0, 0), content: Content::Link(target.into()) })
    }

    /// Copies `source` (a file, a symbolic link as such, or a directory with all that is in it) to `path`.
    ///
    /// Directories merge, files replace one another. Hard links become files of their own.
    pub fn copy(&mut self, source: &Path, path: impl AsRef<Path>, replace: Override) -> Result<&mut Self, ImageError> {
        let path = path.as_ref();
        let unreadable = || ImageError::io("read", source);
        let metadata = fs::symlink_metadata(source).map_err(unreadable())?;
        let mut mode = replace.mode.unwrap_or(metadata.mode() & 0o7777);
        let content = if metadata.is_dir() {
            Content::Directory
        } else if metadata.is_symlink() {
            mode = 0o777;
            Content::Link(fs::read_link(source).map_err(unreadable())?)
        } else if metadata.is_file() {
            Content::File(source.to_owned())
        } else {
            return Err(ImageError::SpecialFile(source.to_owned()));
        };
        self.insert(path, Entry { mode, owner: replace.owner.unwrap_or((metadata.uid(), metadata.gid())), content })?;
        if metadata.is_dir() {
            self.copy_contents(source, path, replace)?;
        }
        Ok(self)
    }

    /// Copies what lies in the directory `source`, but not the directory itself, into the directory `path`.
    pub fn copy_contents(
        &mut self,
        source: &Path,
        path: impl AsRef<Path>,
        replace: Override,
    ) -> Result<&mut Self, ImageError> {
        for file in fs::read_dir(source).map_err(ImageError::io("read", source))? {
            let file = file.map_err(ImageError::io("read", source))?;
            self.copy(&file.path(), path.as_ref().join(file.file_name()), replace)?;
        }
        Ok(self)
    }

    /// Whether there is a directory at `path`.
    #[must_use]
    pub fn has_directory(&self, path: impl AsRef<Path>) -> bool {
        inside(path.as_ref()).is_ok_and(|path| {
            path.as_os_str().is_empty()
                || self.entries.get(&path).is_some_and(|entry| matches!(entry.content, Content::Directory))
        })
    }

    fn insert(&mut self, path: &Path, entry: Entry) -> Result<&mut Self, ImageError> {
        let path = inside(path)?;
        if path.as_os_str().is_empty() {
            // The root itself, whose mode is the runtime's.
            return if matches!(entry.content, Content::Directory) {
                Ok(self)
            } else {
                Err(ImageError::NotADirectory(PathBuf::from("/")))
            };
        }
        for parent in path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            let parent = self.entries.entry(parent.to_owned()).or_insert(Entry {
                mode: 0o755,
                owner: (0, 0),
                content: Content::Directory,
            });
            if !matches!(parent.content, Content::Directory) {
                return Err(ImageError::NotADirectory(path));
            }
        }
        let is_directory = |entry: &Entry| matches!(entry.content, Content::Directory);
        if self.entries.get(&path).is_some_and(|existing| is_directory(existing) != is_directory(&entry)) {
            return Err(ImageError::NotADirectory(path));
        }
        self.entries.insert(path, entry);
        Ok(self)
    }

    /// Writes the layer as a tar. `target` is what an error about writing names.
    pub(super) fn write(&self, out: impl Write, target: &Path) -> Result<(), ImageError> {
        let unwritable = || ImageError::io("write to", target);
        let mut archive = tar::Builder::new(io::BufWriter::new(out));
        for (path, entry) in &self.entries {
            let mut header = tar::Header::new_gnu();
            header.set_mode(entry.mode);
            header.set_uid(entry.owner.0.into());
            header.set_gid(entry.owner.1.into());
            header.set_mtime(0);
            header.set_size(0);
            match &entry.content {
                Content::Directory => {
                    header.set_entry_type(tar::EntryType::Directory);
                    archive.append_data(&mut header, path.join(""), io::empty()).map_err(unwritable())?;
                }
                Content::Text(text) => {
                    header.set_entry_type(tar::EntryType::Regular);
                    header.set_size(text.len() as u64);
                    archive.append_data(&mut header, path, text.as_slice()).map_err(unwritable())?;
                }
                Content::Link(to) => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    archive.append_link(&mut header, path, to).map_err(unwritable())?;
                }
                Content::File(source) => {
                    let file = File::open(source).map_err(ImageError::io("read", source))?;
                    let size = file.metadata().map_err(ImageError::io("read", source))?.len();
                    header.set_entry_type(tar::EntryType::Regular);
                    header.set_size(size);
                    let mut content = file.take(size);
                    archive.append_data(&mut header, path, &mut content).map_err(unwritable())?;
                    if content.limit() != 0 {
                        return Err(ImageError::Changed(source.clone()));
                    }
                }
            }
        }
        archive.into_inner().and_then(|mut buffer| buffer.flush()).map_err(unwritable())
    }
}

/// The path without its leading slash and `.` parts.
fn inside(path: &Path) -> Result<PathBuf, ImageError> {
    let mut inside = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => inside.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => return Err(ImageError::PathInImage(path.to_owned())),
        }
    }
    Ok(inside)
}
