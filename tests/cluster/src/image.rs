//! OCI images without a container engine: a layer, a configuration, a manifest and an index in one tar.
//!
//! What is written is an [OCI image layout](https://github.com/opencontainers/image-spec/blob/main/image-layout.md) as
//! a tar, which `ctr -n k8s.io images import` takes. The same inputs give the same bytes: entries are sorted, owned as
//! told, and dated to the epoch; layers are not compressed, since they never travel further than the next node.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::hexadecimal::hexadecimal;

mod layer;
mod manifest;
mod reference;
#[cfg(test)]
mod tests;

pub use layer::{Layer, Override};
pub use reference::Reference;

/// Why an image could not be described or written. Each message is whole: it names the cause too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// The name of an image that a test may not use.
    #[error("`{reference}` cannot name an image: {reason}")]
    Reference {
        /// What was given.
        reference: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A path that would leave the image's root.
    #[error("`{}` cannot be a path in an image: it must not contain `..`", .0.display())]
    PathInImage(PathBuf),
    /// A path below something that is no directory, or a directory in place of something else.
    #[error("`{}` is a directory for one entry of the image and something else for another", .0.display())]
    NotADirectory(PathBuf),
    /// A socket, pipe or device, which an image of ours has no use for.
    #[error("{} is neither a file, a directory nor a symbolic link: leave it out of the image", .0.display())]
    SpecialFile(PathBuf),
    /// A file that grew or shrank while it was being packed.
    #[error("{} changed while it was being packed: try again when nothing writes to it", .0.display())]
    Changed(PathBuf),
    /// The file system said no.
    #[error("cannot {action} {}: {cause}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system answered.
        cause: io::Error,
    },
    /// A document of the image could not be encoded.
    #[error("cannot encode the image's {what}: {cause}")]
    Encode {
        /// Which document.
        what: &'static str,
        /// What the encoder answered.
        cause: serde_json::Error,
    },
}

impl ImageError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Io { action, path, cause }
    }
}

/// What a container of the image runs and with which defaults.
///
/// The fields and their JSON names are those of the
/// [image configuration](https://github.com/opencontainers/image-spec/blob/main/config.md#properties).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Config {
    /// `user`, `uid`, `user:group` or `uid:gid`; empty means root.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// `port/tcp` or `port/udp`, for information only.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", serialize_with = "manifest::set_as_object")]
    pub exposed_ports: BTreeSet<String>,
    /// `NAME=value`, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The program and its first arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// Further arguments, which a pod's `args` replace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// Where the program starts; empty means `/`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub working_dir: String,
    /// What the image says about itself.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// An image of this machine's architecture, described but not yet written.
#[derive(Debug, Clone)]
pub struct Image {
    /// The name under which it is imported.
    pub reference: Reference,
    /// The layers, lowest first.
    pub layers: Vec<Layer>,
    /// What its containers run.
    pub config: Config,
}

impl Image {
    /// An image that is one static program, run by `user`, with nothing around it.
    pub fn of_program(reference: &str, program: &Path, user: &str) -> Result<Self, ImageError> {
        let name = Path::new("/").join(program.file_name().unwrap_or(program.as_os_str()));
        let mut layer = Layer::new();
        layer.copy(program, &name, Override::root_owned_with_mode(0o755))?;
        let config = Config {
            entrypoint: vec![name.to_string_lossy().into_owned()],
            user: user.to_owned(),
            ..Config::default()
        };
        Ok(Self { reference: reference.parse()?, layers: vec![layer], config })
    }

    /// Writes the image to `path` and returns the manifest's digest (`sha256:…`).
    ///
    /// The file appears whole or not at all. One that already holds these very bytes is left alone, so its time of
    /// change says when the image last changed. Nothing is held in memory but one buffer. Blocks.
    pub fn write(&self, path: &Path) -> Result<String, ImageError> {
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(ImageError::io("create", folder))?;
        let temporary = || NamedTempFile::new_in(folder).map_err(ImageError::io("write to", folder));

        // A tar needs an entry's name, here a digest, before its content: layers are spooled to learn it.
        let mut layers = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let mut spool = Hashing::new(temporary()?);
            layer.write(&mut spool, folder)?;
            layers.push(spool.finish());
        }
        let blobs: Vec<_> = layers.iter().map(|(_, blob)| blob.clone()).collect();
        let documents = manifest::documents(&self.reference, &self.config, &blobs)?;

        let target = temporary()?;
        let mut archive = tar::Builder::new(io::BufWriter::new(target.as_file()));
        let unwritable = || ImageError::io("write", path);
        for (name, bytes) in documents.before_blobs() {
            append(&mut archive, name, bytes.len() as u64, bytes.as_slice()).map_err(unwritable())?;
        }
        for (spool, blob) in &mut layers {
            spool.rewind().map_err(unwritable())?;
            append(&mut archive, &blob.path(), blob.size, spool).map_err(unwritable())?;
        }
        for (blob, bytes) in documents.blobs() {
            append(&mut archive, &blob.path(), blob.size, bytes.as_slice()).map_err(unwritable())?;
        }
        archive.into_inner().and_then(|mut buffer| buffer.flush()).map_err(unwritable())?;

        if !same_bytes(target.path(), path) {
            target.persist(path).map_err(|error| unwritable()(error.error))?;
        }
        Ok(documents.manifest_digest())
    }
}

/// A blob of the image: something that is named by the digest of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Blob {
    sha256: String,
    size: u64,
}

impl Blob {
    fn of(bytes: &[u8]) -> Self {
        Self { sha256: hexadecimal(&Sha256::digest(bytes)), size: bytes.len() as u64 }
    }

    fn digest(&self) -> String {
        format!("sha256:{}", self.sha256)
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.sha256)
    }
}

/// Passes bytes on and learns what they are.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W> Hashing<W> {
    fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new(), size: 0 }
    }

    fn finish(self) -> (W, Blob) {
        (self.inner, Blob { sha256: hexadecimal(&self.hash.finalize()), size: self.size })
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn append(archive: &mut tar::Builder<impl Write>, name: &str, size: u64, bytes: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(size);
    archive.append_data(&mut header, name, bytes)
}

/// Whether both files can be read and hold the same.
fn same_bytes(one: &Path, other: &Path) -> bool {
    let compare = || -> io::Result<bool> {
        let (one, other) = (File::open(one)?, File::open(other)?);
        if one.metadata()?.len() != other.metadata()?.len() {
            return Ok(false);
        }
        let (mut one, mut other) = (io::BufReader::new(one), io::BufReader::new(other));
        loop {
            let (left, right) = (io::BufRead::fill_buf(&mut one)?, io::BufRead::fill_buf(&mut other)?);
            let length = left.len().min(right.len());
            if length == 0 {
                return Ok(left.len() == right.len());
            }
            if left[..length] != right[..length] {
                return Ok(false);
            }
            io::BufRead::consume(&mut one, length);
            io::BufRead::consume(&mut other, length);
        }
    };
    compare().unwrap_or(false)
}
