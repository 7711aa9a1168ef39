//! Stopping and starting what an add-on runs, to see what becomes of others without it.

use crate::cluster::Cluster;
use crate::error::Error;

/// The Deployment that an add-on runs, whose name it may have made up: in which namespace, and with which labels. Its
/// pods have the same.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// The namespace.
    pub namespace: &'static str,
    /// A selector, as in `app=envoy`.
    pub selector: &'static str,
}

/// How long one may take to stop or to start, on a busy machine.
const PATIENCE: &str = "--timeout=300s";

impl Cluster {
    /// Stops a workload of an add-on and returns once its pods are gone. Blocks.
    ///
    /// # Errors
    /// [`Error::Command`] with kubectl's words.
    pub fn stop_workload(&self, workload: &Workload) -> Result<(), Error> {
        self.scale(workload, "--replicas=0")?;
        self.on(workload, &["wait", "--for=delete", "pod", PATIENCE])
    }

    /// Starts a workload of an add-on again and returns once it is available. Blocks.
    ///
    /// # Errors
    /// [`Error::Command`] with kubectl's words.
    pub fn start_workload(&self, workload: &Workload) -> Result<(), Error> {
        self.scale(workload, "--replicas=1")?;
        self.on(workload, &["rollout", "status", "deployment", PATIENCE])
    }

    fn scale(&self, workload: &Workload, replicas: &str) -> Result<(), Error> {
        self.on(workload, &["scale", "deployment", replicas])
    }

    fn on(&self, workload: &Workload, order: &[&str]) -> Result<(), Error> {
        let on = ["--namespace", workload.namespace, "--selector", workload.selector];
        self.kubectl([order, &on].concat()).map(drop)
    }
}
