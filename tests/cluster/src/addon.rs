//! What can be installed on a running cluster: one file for each add-on, below `addon/`.
//!
//! An add-on is data: images to load, manifests to apply, conditions to wait for. Its file says how these are made from
//! [`parts`] and charts; [`Cluster::install`] does the same with each.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::cache::{self, CacheError, Key};
use crate::cluster::Cluster;
use crate::debian::DebianError;
use crate::error::Error;
use crate::image::{Config, Image, ImageError, Layer, Override};
use crate::packages::PackagesError;
use crate::parts::{self, Part, PartsError};
use crate::progress::{Progress, Task};
use crate::wheels::WheelsError;

mod cert_manager;
mod chart;
pub mod contour;
mod coredns;
mod envoy;
pub mod envoy_gateway;
pub mod gateway;
mod gateway_api;
mod manifests;
pub mod prometheus;
mod prometheus_operator;
mod workload;

pub use cert_manager::CERT_MANAGER;
pub use contour::{CONTOUR, CONTOUR_GATEWAY};
pub use coredns::COREDNS;
pub use envoy_gateway::ENVOY_GATEWAY;
pub use gateway_api::GATEWAY_API;
pub use prometheus::PROMETHEUS;
pub use prometheus_operator::PROMETHEUS_OPERATOR_CRDS;
pub use workload::Workload;

/// Every add-on.
pub const ALL: &[Addon] = &[
    COREDNS,
    CERT_MANAGER,
    GATEWAY_API,
    ENVOY_GATEWAY,
    CONTOUR,
    CONTOUR_GATEWAY,
    PROMETHEUS,
    PROMETHEUS_OPERATOR_CRDS,
];

/// How long an add-on may take until it is ready, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);

/// Something that can be installed on a cluster.
#[derive(Debug, Clone, Copy)]
pub struct Addon {
    /// Its name, as people call it.
    pub name: &'static str,
    /// Makes what is to be installed, or takes it from the cache.
    prepare: fn(&Workbench) -> Result<Installation, AddonError>,
}

/// What there is for making an installation.
#[derive(Debug)]
struct Workbench<'a> {
    /// The version of Kubernetes that it is for, as in `1.37`.
    kubernetes: &'a str,
    progress: &'a Progress,
}

/// What is done to a cluster, in this order.
#[derive(Debug)]
struct Installation {
    /// Tar files of OCI images to load.
    images: Vec<PathBuf>,
    /// Manifests to apply, one after the other: what the next one relies on is in one before.
    manifests: Vec<String>,
    /// What makes it ready.
    ready: Vec<Ready>,
}

/// Something to wait for.
#[derive(Debug, PartialEq, Eq)]
enum Ready {
    /// An object has a condition.
    Condition {
        namespace: &'static str,
        /// As in `deployment/name`.
        object: &'static str,
        condition: &'static str,
    },
    /// The API server, with all its webhooks, would take a manifest. Nothing is stored.
    Accepted { what: &'static str, manifest: &'static str },
}

/// Why an add-on could not be made ready to install.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddonError {
    /// A program.
    #[error(transparent)]
    Parts(#[from] PartsError),
    /// What must be on the machine.
    #[error(transparent)]
    Packages(#[from] PackagesError),
    /// An image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// An image of Debian packages.
    #[error(transparent)]
    Debian(#[from] DebianError),
    /// The cache.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A chart.
    #[error("helm cannot render the chart of {chart}: {output}")]
    Chart {
        /// Whose chart.
        chart: &'static str,
        /// What helm said.
        output: String,
    },
    /// Somebody's manifests, which read otherwise than they did.
    #[error("nothing in the manifests reads {words:?}: change the edit to what stands there now")]
    Edit {
        /// What was looked for.
        words: String,
    },
    /// A Python wheel.
    #[error(transparent)]
    Wheel(#[from] WheelsError),
    /// The libraries of a program.
    #[error("ldd cannot name the libraries of {}: {output}", program.display())]
    Libraries {
        /// The program.
        program: PathBuf,
        /// What ldd said.
        output: String,
    },
    /// A certificate.
    #[error(transparent)]
    Certificate(#[from] Error),
}

impl Cluster {
    /// Installs an add-on and returns once it does its work. Once more changes nothing. Blocks.
    ///
    /// # Errors
    /// [`Error::Part`] when something of it cannot be built; otherwise what kubectl said.
    pub fn install(&mut self, addon: &Addon, progress: &Progress) -> Result<(), Error> {
        let kubernetes = self.kubernetes().to_owned();
        let workbench = Workbench { kubernetes: &kubernetes, progress };
        let installation = (addon.prepare)(&workbench).map_err(Error::part)?;
        let task = progress.task(addon.name);
        for image in &installation.images {
            task.doing("loading images");
            self.load(image)?;
        }
        for manifest in &installation.manifests {
            task.doing("applying manifests");
            self.apply(manifest)?;
            if manifest.contains("\nkind: CustomResourceDefinition\n") {
                self.kubectl(["wait", "crd", "--all", "--for=condition=Established", "--timeout=60s"])?;
            }
        }
        for ready in &installation.ready {
            self.wait_for(ready, &task)?;
        }
        task.done("installed");
        Ok(())
    }

    fn wait_for(&self, ready: &Ready, task: &Task) -> Result<(), Error> {
        match ready {
            Ready::Condition { namespace, object, condition } => {
                task.doing(&format!("waiting for {object}"));
                let condition = format!("--for=condition={condition}");
                let timeout = format!("--timeout={}s", PATIENCE.as_secs());
                self.kubectl(["wait", "--namespace", namespace, object, &condition, &timeout]).map(drop)
            }
            Ready::Accepted { what, manifest } => {
                task.doing(&format!("waiting until {what}"));
                let start = Instant::now();
                loop {
                    match self.would_accept(manifest) {
                        Ok(()) => return Ok(()),
                        Err(error) if start.elapsed() > PATIENCE => {
                            let what = format!("that {what}");
                            return Err(Error::Timeout { what, after: PATIENCE, look: error.to_string() });
                        }
                        // Nothing tells when a webhook can be reached; asking again does.
                        Err(_) => thread::sleep(Duration::from_millis(200)),
                    }
                }
            }
        }
    }

    fn would_accept(&self, manifest: &str) -> Result<(), Error> {
        self.kubectl_with(["create", "--dry-run=server", "--output=name", "--filename=-"], manifest).map(drop)
    }
}

impl Workbench<'_> {
    /// An image of one program of a part, started with `arguments` before those of the pod, by a numeric user that is
    /// not root (which is what `runAsNonRoot` takes).
    fn image(&self, reference: &str, part: &Part, program: &str, arguments: &[&str]) -> Result<PathBuf, AddonError> {
        let folder = self.part(part)?;
        // The folder is named by what the program was built from, which is cheaper to digest than the program.
        // On the PATH that a container has by default: a pod may name it as its command.
        let path = Path::new("/bin").join(program);
        let path = path.to_string_lossy();
        let key = Key::new().text(&folder.to_string_lossy()).text(&path).text(reference).text(&arguments.join(" "));
        let entry = cache::entry("images", &key.finish(), |out| -> Result<(), AddonError> {
            let mut layer = Layer::new();
            layer.copy(&folder.join(program), &*path, Override::root_owned_with_mode(0o755))?;
            let mut entrypoint = vec![path.clone().into_owned()];
            entrypoint.extend(arguments.iter().map(ToString::to_string));
            let config = Config { entrypoint, user: "1000:1000".to_owned(), ..Config::default() };
            Image { reference: reference.parse()?, layers: vec![layer], config }.write(&out.join("image.tar"))?;
            Ok(())
        })?;
        Ok(entry.join("image.tar"))
    }

    /// The folder of a part's programs.
    fn part(&self, part: &Part) -> Result<PathBuf, AddonError> {
        Ok(parts::ensure_part(part, self.progress)?)
    }
}
