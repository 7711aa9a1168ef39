//! Images of ordinary software, made from Debian packages: what people run, to see that it runs when hardened.
//!
//! apt resolves the packages as for an empty machine and downloads them, `dpkg-deb` opens them, and that is all of the
//! machine's package manager that is used: nothing is installed, no maintainer script runs. What such a script would
//! have made is made by the recipe, in the open. Works as root on Debian and what descends from it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cache::{self, CacheError, Key};
use crate::image::{Config, Image, ImageError, Layer, Override, Reference};

mod apt;
mod root;
mod software;
#[cfg(test)]
mod tests;

pub use software::{java_image, nginx_image, node_image, prometheus_image, python_image, shell_image};

use apt::{Apt, Archive};

/// Counts the ways in which images were made from the same packages; goes into the cache's key.
const MADE_BY: &str = "debian image 1";

/// Why an image of ordinary software could not be made. Each message is whole: it names the cause too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DebianError {
    /// Another distribution.
    #[error("{program} is not on this machine: images of Debian packages are made on Debian or Ubuntu only")]
    NotDebian {
        /// The program that is missing.
        program: &'static str,
    },
    /// An unprivileged user cannot unpack files of other owners.
    #[error("images of Debian packages are made by root only: run this as root")]
    NotRoot,
    /// apt or dpkg said no.
    #[error("`{command}` failed ({status}): {output}")]
    Command {
        /// The command and what it was to do.
        command: String,
        /// How it ended.
        status: String,
        /// What it wrote to standard error.
        output: String,
    },
    /// A package that has no archive after the download.
    #[error("apt did not download {0}: use a package source that is read over the network")]
    NotDownloaded(String),
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
    /// The image could not be described or written.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The cache could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
}

impl DebianError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Io { action, path, cause }
    }
}

/// What an image of ordinary software is made of.
#[derive(Debug, Clone, Default)]
pub struct Recipe {
    /// Names of Debian packages; what they depend on comes along, what they recommend does not.
    pub packages: Vec<&'static str>,
    /// Files to write over what the packages brought, with mode 644 and owned by root: path and content.
    pub files: Vec<(&'static str, &'static str)>,
    /// Symbolic links to make where nothing is yet: path and target, as a package's script would have.
    pub links: Vec<(&'static str, &'static str)>,
    /// What a container of it runs.
    pub config: Config,
}

/// Makes an image by a recipe, once for each set of package versions, and returns the path of its tar in the cache.
///
/// `reference` is as in [`Reference`]. Asks the package index that the machine has, and refreshes it only if that one
/// is missing or names archives that are gone. Blocks.
pub fn debian_image(reference: &str, recipe: &Recipe) -> Result<PathBuf, DebianError> {
    let reference: Reference = reference.parse()?;
    if !rustix::process::geteuid().is_root() {
        return Err(DebianError::NotRoot);
    }
    let apt = Apt::new()?;
    with_current_index(|| made_of(&reference, recipe, &apt, &apt.resolve(&recipe.packages)?))
}

/// Unpacks the files of one Debian package, without what it depends on, once for each version, and returns their folder
/// in the cache. Its programs run from there if this machine has their libraries. Blocks.
pub fn package(name: &str) -> Result<PathBuf, DebianError> {
    if !rustix::process::geteuid().is_root() {
        return Err(DebianError::NotRoot);
    }
    let apt = Apt::new()?;
    with_current_index(|| {
        let archives = apt.resolve(&[name])?;
        let own = archives.iter().find(|archive| archive.name().starts_with(&format!("{name}_")));
        let own = own.ok_or_else(|| DebianError::NotDownloaded(name.to_owned()))?;
        cache::entry("packages", &Key::new().text(MADE_BY).text(own.name()).finish(), |folder| {
            apt.download(&[name])?;
            root::unpack(&apt.archive(own)?, folder)
        })
    })
}

/// Does something with apt, and once more with a new index if apt refuses: a package that is unknown or cannot be
/// fetched. The index may be missing, or older than the mirror.
fn with_current_index<T>(attempt: impl Fn() -> Result<T, DebianError>) -> Result<T, DebianError> {
    match attempt() {
        Err(DebianError::Command { .. }) => {
            apt::update()?;
            attempt()
        }
        other => other,
    }
}

fn made_of(reference: &Reference, recipe: &Recipe, apt: &Apt, archives: &[Archive]) -> Result<PathBuf, DebianError> {
    let key = key(reference, recipe, archives);
    let entry = cache::entry("images", &key, |folder| {
        apt.download(&recipe.packages)?;
        let root = folder.join("root");
        root::create(&root)?;
        for archive in archives {
            root::unpack(&apt.archive(archive)?, &root)?;
        }
        for (path, content) in &recipe.files {
            root::write(&root, path, content)?;
        }
        for (path, target) in &recipe.links {
            root::link(&root, path, target)?;
        }
        let mut layer = Layer::new();
        layer.copy_contents(&root, "/", Override::default())?;
        Image { reference: reference.clone(), layers: vec![layer], config: recipe.config.clone() }
            .write(&folder.join("image.tar"))?;
        fs::remove_dir_all(&root).map_err(DebianError::io("remove", &root))
    })?;
    Ok(entry.join("image.tar"))
}

/// Everything that decides what the image holds: an archive's name holds its package, version and architecture.
fn key(reference: &Reference, recipe: &Recipe, archives: &[Archive]) -> String {
    let mut key = Key::new().text(MADE_BY).text(&reference.full()).text(&format!("{:?}", recipe.config));
    for (path, content) in &recipe.files {
        key = key.text(path).text(content);
    }
    key = key.text(&format!("{:?}", recipe.links));
    let mut names: Vec<_> = archives.iter().map(Archive::name).collect();
    names.sort_unstable();
    for name in names {
        key = key.text(name);
    }
    key.finish()
}
