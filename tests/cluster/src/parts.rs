//! The programs that a cluster consists of, built from Go modules.
//!
//! Each part is a small Go module of ours in `tests/cluster/parts/<name>`: its `go.mod` pins the version, its `go.sum`
//! what that version consists of. A part is built once into the [`cache`], in a folder named by everything
//! that went in: `go.mod` (which names the Go version too), `go.sum`, our sources, the flags. What is there needs no Go:
//! the second run starts at once.
//!
//! ```text
//! parts/kubernetes/  go.mod  go.sum  main.go     the newest Kubernetes
//!                    v1.34.mod  v1.34.sum        an older one, same main.go; one more is two more files
//! parts/containerd/  go.mod  go.sum              `tool` lines name the programs
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs, io};

use crate::cache::{self, CacheError, Key};
use crate::packages::{self, Package, PackagesError};
use crate::progress::{self, Progress};

mod build;
mod known;
#[cfg(test)]
mod tests;

pub use known::*;

/// A few programs that are built together, from one Go module.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    /// Its name, and its folder's under `parts/`.
    name: &'static str,
    /// The file that pins its versions; another one's `go.sum` has the same stem.
    modfile: &'static str,
    /// The Go module whose version is the part's.
    module: &'static str,
    /// What to build: Go packages, or `tool` for all that `go.mod` names as such.
    packages: &'static str,
    /// Further names for its (then only) program, which looks at the name by which it was called.
    links: &'static [&'static str],
    /// Build tags, separated by commas.
    tags: &'static str,
    /// Linker flags beside `-s -w`; `{version}`, `{major}` and `{minor}` stand for those of the part.
    ldflags: &'static str,
    /// What must be on the machine to build it. A part with none is built without C.
    needs: &'static [Package],
    /// What building it takes with nothing cached, on two cores.
    cold: Duration,
}

/// What parts are called in the cache.
const KIND: &str = "parts";

/// The files that pin an older Kubernetes. One more is its name here and it and its `.sum` beside `go.mod`.
const OLDER_KUBERNETES: &[&str] = &["v1.34.mod"];

/// [`KUBERNETES`] at a version of [`kubernetes_versions`], as in `1.34`.
pub fn kubernetes(minor: &str) -> Result<Part, PartsError> {
    if minor_of(&KUBERNETES.version()?) == minor {
        return Ok(KUBERNETES);
    }
    match OLDER_KUBERNETES.iter().find(|modfile| **modfile == format!("v{minor}.mod")) {
        Some(modfile) => Ok(Part { modfile, ..KUBERNETES }),
        None => Err(PartsError::Kubernetes { asked: minor.to_owned(), known: kubernetes_versions()?.join(", ") }),
    }
}

/// The minor versions of Kubernetes that can be built, oldest first: `1.34`, `1.37`.
pub fn kubernetes_versions() -> Result<Vec<String>, PartsError> {
    let older = OLDER_KUBERNETES.iter().map(|modfile| Part { modfile, ..KUBERNETES });
    older.chain([KUBERNETES]).map(|part| Ok(minor_of(&part.version()?).to_owned())).collect()
}

/// `1.37` of `1.37.2`.
fn minor_of(version: &str) -> &str {
    version.match_indices('.').nth(1).map_or(version, |(dot, _)| &version[..dot])
}

/// Why a part could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartsError {
    /// A Kubernetes that no file pins.
    #[error("no Kubernetes {asked} here; there is {known}")]
    Kubernetes {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// A file of the part's folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// `go.mod` pins no version of the module that the part is named after.
    #[error("{} requires no {module}", path.display())]
    NoVersion {
        /// The `go.mod`.
        path: PathBuf,
        /// The module that it should require.
        module: &'static str,
    },
    /// There is no Go on the machine.
    #[error("building {part} takes Go, and there is none on PATH; install Go {} or later", build::OLDEST_GO)]
    NoGo {
        /// What was to be built.
        part: String,
    },
    /// A Go from before Go could fetch a newer one by itself.
    #[error("{found} is too old; install Go {} or later, it fetches the one that go.mod asks for", build::OLDEST_GO)]
    OldGo {
        /// What it calls itself.
        found: String,
    },
    /// Go failed.
    #[error("building {part} failed; all of it is in {}, the end is:\n{tail}", log.display())]
    Go {
        /// What was to be built.
        part: String,
        /// Where everything is that Go said.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// The cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// What must be on the machine.
    #[error(transparent)]
    Packages(#[from] PackagesError),
}

impl PartsError {
    fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }
}

impl Part {
    /// The part's name, which is its folder's under `parts/`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The version that its `go.mod` pins, as in `1.37.2`.
    pub fn version(&self) -> Result<String, PartsError> {
        self.version_in(&self.folder())
    }

    fn version_in(&self, folder: &Path) -> Result<String, PartsError> {
        let path = folder.join(self.modfile);
        let text = fs::read_to_string(&path).map_err(PartsError::read(&path))?;
        required_version(&text, self.module).ok_or(PartsError::NoVersion { path, module: self.module })
    }

    fn label(&self, folder: &Path) -> Result<String, PartsError> {
        Ok(format!("{} {}", self.name, self.version_in(folder)?))
    }

    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("parts").join(self.name)
    }

    fn sumfile(&self) -> String {
        self.modfile.replace(".mod", ".sum")
    }

    /// The name of its entry in the cache when it is built in `folder`.
    fn entry(&self, folder: &Path) -> Result<String, PartsError> {
        Ok(format!("{}-{}", self.name, self.key(folder)?))
    }

    /// The digest of all that goes into the part when it is built in `folder`.
    fn key(&self, folder: &Path) -> Result<String, PartsError> {
        let mut key = Key::new();
        for flag in [self.packages, self.tags, self.ldflags, &self.links.join(" "), env::consts::ARCH] {
            key = key.text(flag);
        }
        for flag in build::FLAGS.into_iter().chain([build::LDFLAGS]) {
            key = key.text(flag);
        }
        key = key.text(if self.needs.is_empty() { "without C" } else { "with C" });
        key = key.file(&folder.join(self.modfile))?.file(&folder.join(self.sumfile()))?;
        for source in sources(folder)? {
            let name = source.strip_prefix(folder).unwrap_or(&source).to_string_lossy().into_owned();
            key = key.text(&name).file(&source)?;
        }
        Ok(key.finish())
    }
}

/// Our own Go files below a folder, in an order of their own.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, PartsError> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder).map_err(PartsError::read(folder))? {
        let path = file.map_err(PartsError::read(folder))?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "go") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The version, without its `v`, at which the text of a `go.mod` requires `module`.
fn required_version(text: &str, module: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next() == Some(module)).then(|| words.next()).flatten()?.strip_prefix('v').map(str::to_owned)
    })
}

/// Sees to it that every one of `parts` is built, and gives the folder of each, in their order. A folder holds the
/// part's programs and nothing else, so it can be put on a `PATH`.
///
/// What is in the cache is taken from there. The rest is built now, which takes minutes the first time: [`Progress`]
/// shows how far it is. Blocks; call it off the async threads.
pub fn ensure(parts: &[Part], progress: &Progress) -> Result<Vec<PathBuf>, PartsError> {
    let workshops = parts.iter().map(Workshop::of).collect::<Result<Vec<_>, _>>()?;
    let wanted: Vec<_> = parts.iter().zip(&workshops).collect();
    if let Some(plan) = plan(&wanted)? {
        progress.say(&plan);
    }
    wanted.into_iter().map(|(part, workshop)| ensure_in(part, workshop, progress)).collect()
}

/// What will be built and how long all of it takes, where that is more than one part.
fn plan(wanted: &[(&Part, &Workshop)]) -> Result<Option<String>, PartsError> {
    let (mut labels, mut cold) = (Vec::new(), Duration::ZERO);
    for (part, workshop) in wanted {
        if !cache::has(&workshop.cache, KIND, &part.entry(&workshop.folder)?) {
            labels.push(part.label(&workshop.folder)?);
            cold += part.cold;
        }
    }
    let about = progress::about(cold);
    Ok((labels.len() > 1).then(|| format!("To be built first: {}; about {about} in all.", labels.join(", "))))
}

/// [`ensure`] for one part.
pub fn ensure_part(part: &Part, progress: &Progress) -> Result<PathBuf, PartsError> {
    ensure_in(part, &Workshop::of(part)?, progress)
}

/// The folder of the Go module that a part is named after: what else it holds, beside programs. Read-only. Fetched now
/// if it is not on the machine; takes Go, so callers keep what they make of it. Blocks.
pub fn module_folder(part: &Part, progress: &Progress) -> Result<PathBuf, PartsError> {
    let workshop = Workshop::of(part)?;
    build::module_folder(part, &part.label(&workshop.folder)?, &workshop, progress)
}

/// Where a part is built.
#[derive(Debug)]
struct Workshop {
    /// The part's own files.
    folder: PathBuf,
    /// What becomes of them.
    cache: PathBuf,
    /// The `go` program, where there is one.
    go: Option<PathBuf>,
}

impl Workshop {
    fn of(part: &Part) -> Result<Self, PartsError> {
        Ok(Self { folder: part.folder(), cache: cache::root()?, go: packages::find("go") })
    }
}

fn ensure_in(part: &Part, workshop: &Workshop, progress: &Progress) -> Result<PathBuf, PartsError> {
    cache::entry_in(&workshop.cache, KIND, &part.entry(&workshop.folder)?, |out| {
        packages::ensure(part.needs, progress)?;
        let label = part.label(&workshop.folder)?;
        progress.say(&format!(
            "Building {label} from its Go module: about {} on two cores, once; kept in {}.",
            progress::about(part.cold),
            workshop.cache.display()
        ));
        build::build(part, &label, workshop, out, progress)
    })
}
