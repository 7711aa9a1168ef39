//! Pods created one after another, without a pause, while something happens to the webhook.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::namespace::PATIENCE;
use crate::stage::Stage;

/// How soon a client tries again what has failed.
const RETRY: Duration = Duration::from_millis(100);

/// A client that creates pods until it is stopped.
#[derive(Debug)]
pub struct Creations {
    stop: Arc<AtomicBool>,
    work: JoinHandle<Result<Report>>,
}

/// What became of the pods. Every one was created in the end: a creation that fails is tried again.
#[derive(Debug, Default)]
pub struct Report {
    /// How many were created.
    pub created: usize,
    /// How many of those lack the hardening.
    pub unhardened: usize,
    /// When, since the start, and why an attempt failed.
    pub failures: Vec<(Duration, String)>,
}

impl Report {
    /// The time between the first and the last failure.
    #[must_use]
    pub fn outage(&self) -> Duration {
        match (self.failures.first(), self.failures.last()) {
            (Some((first, _)), Some((last, _))) => last.saturating_sub(*first),
            _ => Duration::ZERO,
        }
    }
}

impl Creations {
    /// Starts to create pods in `namespace`. They carry a scheduling gate: admission is all that they are for.
    ///
    /// # Errors
    /// When the cluster cannot be reached.
    pub fn start(stage: &Stage, namespace: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(stage.cluster.client())?;
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let work = std::thread::spawn(move || runtime.block_on(create(&pods, &stopped)));
        Ok(Self { stop, work })
    }

    /// Whether the client still works; it ends early only by an error of its own.
    #[must_use]
    pub fn running(&self) -> bool {
        !self.work.is_finished()
    }

    /// Stops and says what became of the pods.
    ///
    /// # Errors
    /// When a pod was never created, however often it was tried, or could not be deleted again.
    pub fn stop(self) -> Result<Report> {
        self.stop.store(true, Ordering::Relaxed);
        self.work.join().map_err(|_| anyhow!("the creating thread panicked"))?
    }
}

async fn create(pods: &Api<Pod>, stopped: &AtomicBool) -> Result<Report> {
    let start = Instant::now();
    let mut report = Report::default();
    while !stopped.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let created = loop {
            match pods.create(&PostParams::default(), &pod()?).await {
                Ok(pod) => break pod,
                Err(error) if begun.elapsed() > PATIENCE => bail!("a pod was never created: {error}"),
                Err(error) => report.failures.push((start.elapsed(), error.to_string())),
            }
            tokio::time::sleep(RETRY).await;
        };
        report.created += 1;
        if !hardened(&created) {
            report.unhardened += 1;
        }
        let name = created.metadata.name.context("a created pod has a name")?;
        pods.delete(&name, &DeleteParams::default().grace_period(0)).await?;
    }
    Ok(report)
}

fn pod() -> Result<Pod> {
    let pod = json!({
        "metadata": {"generateName": "created-"},
        "spec": {
            "schedulingGates": [{"name": "cofferdam.test/never"}],
            "containers": [{"name": "app", "image": "cofferdam.test/none:1"}],
        },
    });
    serde_json::from_value(pod).context("the test's own pod is malformed")
}

fn hardened(pod: &Pod) -> bool {
    let spec = pod.spec.as_ref();
    let pod_level = spec.and_then(|spec| spec.security_context.as_ref());
    pod_level.is_some_and(|context| context.run_as_non_root == Some(true))
        && spec.is_some_and(|spec| spec.automount_service_account_token == Some(false))
}
