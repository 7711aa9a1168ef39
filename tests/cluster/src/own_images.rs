//! The images of this workspace's own programs.
//!
//! Their tars lie in `target/images/`, one for each name, and are written anew only when cargo has built something else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::build_programs::{BuildError, Programs, build_programs};
use crate::containerfile::{Containerfile, ContainerfileError};
use crate::image::{Config, Image, ImageError, Layer, Override, Reference};

/// Why one of our own images could not be made. Each message is whole: it names the cause too.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OwnImageError {
    /// There is no program to put into it.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The Containerfile gives no image.
    #[error(transparent)]
    Containerfile(#[from] ContainerfileError),
    /// The image could not be described or written.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The context of the Containerfile could not be filled.
    #[error("cannot put {} into the build context: {cause}", path.display())]
    Context {
        /// The file in the context.
        path: PathBuf,
        /// What the system answered.
        cause: io::Error,
    },
}

/// Makes the image of Cofferdam from the Containerfile at the workspace's root, and returns the path of its tar.
///
/// `reference` is as in [`Reference`]. Builds the programs first where need be. Blocks.
pub fn cofferdam_image(reference: &str) -> Result<PathBuf, OwnImageError> {
    let reference: Reference = reference.parse()?;
    let programs = build_programs(workspace())?;
    let context = fill_context(&programs)?;
    let image = Containerfile::read(&workspace().join("Containerfile"))?.image(reference, &context)?;
    write(&image, &programs)
}

/// Builds the programs and puts them where the Containerfile's `COPY` lines look for them; returns that folder.
///
/// For builders other than ours: `buildah build -f Containerfile target/rootfs`.
pub fn build_context() -> Result<PathBuf, OwnImageError> {
    fill_context(&build_programs(workspace())?)
}

/// Makes the image of the test program (`/fixture`), whose user is root: what keeps a pod from being that is hardening.
pub fn fixture_image(reference: &str) -> Result<PathBuf, OwnImageError> {
    fixture(reference, Config { entrypoint: vec!["/fixture".to_owned()], ..Config::default() })
}

/// As [`fixture_image`], with the user given by its name, `app`, which is 1234 in the image's `/etc/passwd`.
///
/// A kubelet cannot know that this is not root, and refuses to start it under `runAsNonRoot` alone.
pub fn named_user_image(reference: &str) -> Result<PathBuf, OwnImageError> {
    fixture(reference, Config { entrypoint: vec!["/fixture".to_owned()], user: "app".to_owned(), ..Config::default() })
}

fn fixture(reference: &str, config: Config) -> Result<PathBuf, OwnImageError> {
    let reference = reference.parse()?;
    let programs = build_programs(workspace())?;
    let mut layer = Layer::new();
    layer
        .copy(programs.fixture(), "/fixture", Override::root_owned_with_mode(0o755))?
        .text("/etc/passwd", 0o644, "root:x:0:0:root:/root:/fixture\napp:x:1234:1234:app:/home/app:/fixture\n")?
        .text("/etc/group", 0o644, "root:x:0:\napp:x:1234:\n")?
        .directory("/tmp", 0o1777)?;
    write(&Image { reference, layers: vec![layer], config }, &programs)
}

fn write(image: &Image, programs: &Programs) -> Result<PathBuf, OwnImageError> {
    let path = programs.target().join("images").join(image.reference.file_name());
    image.write(&path)?;
    Ok(path)
}

fn fill_context(programs: &Programs) -> Result<PathBuf, OwnImageError> {
    let context = programs.target().join("rootfs");
    place(programs.webhook(), &context.join("usr/bin/cofferdam-webhook"))?;
    place(programs.agent(), &context.join("usr/bin/cofferdam-agent"))?;
    place(programs.fetch(), &context.join("usr/bin/cofferdam-fetch"))?;
    place(programs.api(), &context.join("usr/bin/cofferdam-api"))?;
    Ok(context)
}

/// Copies a program so that it appears whole, whoever else does the same.
fn place(program: &Path, path: &Path) -> Result<(), OwnImageError> {
    let folder = path.parent().unwrap_or(path);
    let copy = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let temporary = NamedTempFile::new_in(folder)?;
        // With the program's mode, which is what a temporary file has not.
        fs::copy(program, temporary.path())?;
        temporary.persist(path)?;
        Ok(())
    };
    copy().map_err(|cause| OwnImageError::Context { path: path.to_owned(), cause })
}

/// The workspace that this crate was built in, whose programs are meant.
fn workspace() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).unwrap_or(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_containerfile_at_the_root_is_one_that_this_builder_understands() {
        let context = tempfile::tempdir().unwrap();
        for program in ["cofferdam-webhook", "cofferdam-agent", "cofferdam-fetch", "cofferdam-api"] {
            place(&std::env::current_exe().unwrap(), &context.path().join("usr/bin").join(program)).unwrap();
        }
        let image = Containerfile::read(&workspace().join("Containerfile"))
            .unwrap()
            .image("cofferdam:1".parse().unwrap(), context.path())
            .unwrap();
        assert_eq!(image.config.user, "65532:65532");
        assert_eq!(image.config.entrypoint, ["/usr/bin/cofferdam-webhook"]);
        assert_eq!(image.config.labels["org.opencontainers.image.licenses"], "Apache-2.0");
    }

    #[test]
    fn a_program_is_placed_with_its_mode_and_over_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let (program, placed) = (folder.path().join("program"), folder.path().join("a/b/placed"));
        fs::write(&program, "one").unwrap();
        place(&program, &placed).unwrap();
        fs::write(&program, "two").unwrap();
        place(&program, &placed).unwrap();
        assert_eq!(fs::read_to_string(&placed).unwrap(), "two");
        assert_eq!(fs::metadata(&placed).unwrap().permissions(), fs::metadata(&program).unwrap().permissions());
        assert_eq!(fs::read_dir(placed.parent().unwrap()).unwrap().count(), 1, "a temporary file stayed");
    }
}
