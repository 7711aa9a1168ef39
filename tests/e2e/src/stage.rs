//! A cluster with everything on it that an end-to-end test needs.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use cofferdam_cluster::addon::{Addon, CERT_MANAGER};
use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::parts;
use cofferdam_cluster::progress::Progress;
use k8s_openapi::jiff::Timestamp;
use serde_json::json;

use crate::kubectl::Kubectl;
use crate::namespace::{Sessions, TestNamespace};
use crate::{images, install};

/// The Kubernetes version under test: `COFFERDAM_KUBERNETES`, or the newest.
#[must_use]
pub fn kubernetes() -> String {
    std::env::var("COFFERDAM_KUBERNETES").unwrap_or_else(|_| parts::NEWEST.to_owned())
}

/// A running cluster with cert-manager and Cofferdam. It ends with the test program.
#[derive(Debug)]
pub struct Stage {
    /// The cluster.
    pub cluster: Cluster,
    /// Its administrator.
    pub kubectl: Kubectl,
    /// What was applied to install Cofferdam.
    pub manifests: String,
}

/// What a stage is to have.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// The cluster's name.
    pub name: &'a str,
    /// How many nodes.
    pub nodes: u8,
    /// Installed before Cofferdam, beside cert-manager.
    pub addons: &'a [Addon],
    /// The policy, as YAML.
    pub policy: &'a str,
    /// How long a node may be silent before it is called not ready, if not as long as usual.
    pub not_ready_after: Option<Duration>,
}

impl Stage {
    /// The stage that all tests of one program share. The first test to ask starts it, the others wait.
    ///
    /// # Panics
    /// When it cannot be started: no test can go on then.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Stage> = OnceLock::new();
        #[expect(clippy::expect_used, reason = "without a cluster there is no test to run")]
        SHARED.get_or_init(|| {
            let mut stage = Self::start("e2e", 2).expect("the shared cluster starts");
            images::load_debian(&mut stage.cluster).expect("the images of ordinary software are made");
            stage
        })
    }

    /// Starts a stage of its own, for tests that disturb.
    ///
    /// # Errors
    /// What could not be started.
    pub fn start(name: &str, nodes: u8) -> Result<Self> {
        let mut stage = Self::bare(name, nodes)?;
        stage.manifests = install::render(&stage.kubectl, install::IMAGE)?;
        install::install(&stage.kubectl, &stage.manifests)?;
        Ok(stage)
    }

    /// Starts a stage as it is asked for.
    ///
    /// # Errors
    /// What could not be started.
    pub fn set_up(setup: &Setup<'_>) -> Result<Self> {
        let mut stage = Self::with_cert_manager(setup.name, setup.nodes, setup.not_ready_after)?;
        for addon in setup.addons {
            stage.cluster.install(addon, &Progress::new())?;
        }
        stage.manifests = install::render_with_policy(&stage.kubectl, "cert-manager", install::IMAGE, setup.policy)?;
        install::install(&stage.kubectl, &stage.manifests)?;
        Ok(stage)
    }

    /// Starts a cluster with cert-manager and our images, without Cofferdam.
    ///
    /// # Errors
    /// What could not be started.
    pub fn bare(name: &str, nodes: u8) -> Result<Self> {
        Self::with_cert_manager(name, nodes, None)
    }

    fn with_cert_manager(name: &str, nodes: u8, not_ready_after: Option<Duration>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let progress = Progress::new();
        let name = name.to_owned();
        let options = Options { name, kubernetes: kubernetes(), nodes, not_ready_after, keep: false };
        let mut cluster = runtime.block_on(Cluster::up(&options, &progress)).context("the cluster does not start")?;
        images::load(&mut cluster)?;
        cluster.install(&CERT_MANAGER, &progress)?;
        let kubectl = Kubectl::of(&cluster)?;
        Ok(Self { cluster, kubectl, manifests: String::new() })
    }

    /// Runs kubectl where Cofferdam itself runs.
    ///
    /// # Errors
    /// In kubectl's words.
    pub fn system(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl.run([&["--namespace", install::SYSTEM], arguments].concat())
    }

    /// What the admin port of one of our pods answers at `path`.
    ///
    /// # Errors
    /// In kubectl's words.
    pub fn answer(&self, pod: &str, path: &str) -> Result<String> {
        let url = format!("/api/v1/namespaces/{}/pods/{pod}:8080/proxy{path}", install::SYSTEM);
        self.kubectl.run(["get", "--raw", &url])
    }

    /// Writes another policy into the `ConfigMap`, and has the kubelets of the pods that `selector` names look at it now:
    /// of a change of a pod they take note at once, of one in what it mounts within a minute or two.
    ///
    /// # Errors
    /// In kubectl's words.
    pub fn change_policy(&self, text: &str, selector: &str) -> Result<()> {
        let patch = json!({"data": {"policy.yaml": text}}).to_string();
        self.system(&["patch", "configmap/cofferdam-policy", "--type=merge", "--patch", &patch])?;
        self.look_at_the_policy(selector)
    }

    /// Has the kubelets of those pods look at the policy now.
    ///
    /// # Errors
    /// In kubectl's words.
    pub fn look_at_the_policy(&self, selector: &str) -> Result<()> {
        let now = format!("example.test/looked={}", Timestamp::now().as_millisecond());
        self.system(&["annotate", "pods", selector, "--overwrite", &now]).map(drop)
    }

    /// What the admin port of every replica of the webhook answers at `path`.
    ///
    /// # Errors
    /// In kubectl's words, also if a replica is missing.
    pub fn replicas(&self, path: &str) -> Result<Vec<String>> {
        let names = self.system(&["get", "pods", install::REPLICAS, "--output=jsonpath={.items[*].metadata.name}"])?;
        let answers: Vec<String> = names.split_whitespace().map(|pod| self.answer(pod, path)).collect::<Result<_>>()?;
        ensure!(answers.len() == 2, "{} replicas are there", answers.len());
        Ok(answers)
    }

    /// The value of a metric at every replica of the webhook; `sample` has its labels with it.
    ///
    /// # Errors
    /// In kubectl's words, also if a replica is missing or has no such metric.
    pub fn metrics(&self, sample: &str) -> Result<Vec<String>> {
        self.replicas("/metrics")?.iter().map(|text| value(text, sample).map(str::to_owned)).collect()
    }

    /// A namespace for one test.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn namespace(&self, name: &str, sessions: Sessions) -> TestNamespace {
        #[expect(clippy::expect_used, reason = "a test without its namespace has failed")]
        TestNamespace::create(&self.kubectl, name, sessions).expect("a namespace for the test")
    }
}

/// The value of a metric in what somebody answered at `/metrics`; `sample` has its labels with it.
///
/// # Errors
/// When there is no such metric.
pub fn value<'a>(metrics: &'a str, sample: &str) -> Result<&'a str> {
    let value = metrics.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    value.with_context(|| format!("no metric {sample}"))
}
