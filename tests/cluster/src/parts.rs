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
#[cfg(test)]
mod tests;

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

const PART: Part = Part {
    name: "",
    modfile: "go.mod",
    module: "",
    packages: "tool",
    links: &[],
    tags: "",
    ldflags: "",
    needs: &[],
    cold: Duration::from_mins(1),
};

/// The container runtime: `containerd`, `containerd-shim-runc-v2`, `ctr`; and our `pause`, which holds a pod open.
pub const CONTAINERD: Part = Part {
    name: "containerd",
    packages: "tool ./pause",
    module: "github.com/containerd/containerd/v2",
    // Snapshotters that want C libraries; we use overlayfs.
    tags: "no_btrfs,no_devmapper,no_zfs",
    ldflags: "-X github.com/containerd/containerd/v2/version.Version={version}",
    cold: Duration::from_secs(50),
    ..PART
};

/// The network plugins: `ptp`, `host-local`, `loopback`, `portmap`.
pub const CNI: Part = Part {
    name: "cni",
    module: "github.com/containernetworking/plugins",
    ldflags: "-X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=v{version}",
    cold: Duration::from_secs(20),
    ..PART
};

/// What enforces NetworkPolicy on a node: `kube-router`, of which nothing else is used.
pub const KUBE_ROUTER: Part = Part {
    name: "kube-router",
    module: "github.com/cloudnativelabs/kube-router/v2",
    ldflags: "-X github.com/cloudnativelabs/kube-router/v2/pkg/version.Version=v{version}",
    cold: Duration::from_secs(105),
    ..PART
};

/// The minor version of [`KUBERNETES`]: what everything runs that is not told another.
pub const NEWEST: &str = "1.37";

/// Kubernetes and etcd, one program under the names `etcd`, `kube-apiserver`, `kube-controller-manager`,
/// `kube-scheduler`, `kubelet`, `kube-proxy` and `kubectl`. The newest; for another see [`kubernetes`].
pub const KUBERNETES: Part = Part {
    name: "kubernetes",
    module: "k8s.io/kubernetes",
    packages: ".",
    links: &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"],
    // Nodes would report v0.0.0-master otherwise.
    ldflags: "-X k8s.io/component-base/version.gitVersion=v{version} \
              -X k8s.io/component-base/version.gitMajor={major} -X k8s.io/component-base/version.gitMinor={minor}",
    cold: Duration::from_secs(400),
    ..PART
};

/// What starts the containers: `runc`. Distributions ship one that is too old for `hostUsers: false` (1.2 or later).
pub const RUNC: Part = Part {
    name: "runc",
    module: "github.com/opencontainers/runc",
    tags: "seccomp,netgo,osusergo,urfave_cli_no_docs",
    // Static: it starts containers in root file systems that have no libraries, or others.
    ldflags: "-extldflags -static",
    needs: packages::SECCOMP,
    cold: Duration::from_secs(15),
    ..PART
};

/// The cluster's name server: `coredns`.
pub const COREDNS: Part = Part {
    name: "coredns",
    module: "github.com/coredns/coredns",
    packages: ".",
    cold: Duration::from_secs(55),
    ..PART
};

/// Renders charts: `helm`.
pub const HELM: Part = Part {
    name: "helm",
    module: "helm.sh/helm/v3",
    ldflags: "-X helm.sh/helm/v3/internal/version.version=v{version}",
    cold: Duration::from_secs(45),
    ..PART
};

/// cert-manager's controller, injector and webhook in one program, `launcher`, which takes the name as its first
/// argument.
pub const CERT_MANAGER: Part = Part {
    name: "cert-manager",
    module: "github.com/cert-manager/cert-manager",
    packages: ".",
    ldflags: "-X github.com/cert-manager/cert-manager/pkg/util.AppVersion=v{version}",
    cold: Duration::from_secs(90),
    ..PART
};

/// The kinds of the Gateway API, which are manifests: there is no program in it.
pub const GATEWAY_API: Part = Part { name: "gateway-api", module: "sigs.k8s.io/gateway-api", packages: "", ..PART };

/// What programs Envoy by the Gateway API: `envoy-gateway`.
pub const ENVOY_GATEWAY: Part = Part {
    name: "envoy-gateway",
    module: "github.com/envoyproxy/gateway",
    ldflags: "-X github.com/envoyproxy/gateway/internal/cmd/version.envoyGatewayVersion=v{version}",
    cold: Duration::from_secs(150),
    ..PART
};

/// What programs Envoy by Ingress, or by an older Gateway API: `contour`.
pub const CONTOUR: Part = Part {
    name: "contour",
    module: "github.com/projectcontour/contour",
    ldflags: "-X github.com/projectcontour/contour/internal/build.Version=v{version}",
    cold: Duration::from_secs(70),
    ..PART
};

/// The Prometheus operator's kinds, which are manifests: there is no program in it.
pub const PROMETHEUS_OPERATOR: Part = Part {
    name: "prometheus-operator",
    module: "github.com/prometheus-operator/prometheus-operator",
    packages: "",
    ..PART
};

/// Every part, each at its newest version.
pub const ALL: &[Part] = &[
    KUBERNETES,
    CONTAINERD,
    RUNC,
    CNI,
    KUBE_ROUTER,
    COREDNS,
    HELM,
    CERT_MANAGER,
    GATEWAY_API,
    ENVOY_GATEWAY,
    CONTOUR,
    PROMETHEUS_OPERATOR,
];

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
    parts.iter().map(|part| ensure_part(part, progress)).collect()
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
    let key = part.key(&workshop.folder)?;
    cache::entry_in(&workshop.cache, "parts", &format!("{}-{key}", part.name), |out| {
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
