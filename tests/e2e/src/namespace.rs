//! A namespace per test: tests that disturb nobody run side by side on one cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::install::{AGENTS, REPLICAS, SYSTEM};
use crate::kubectl::{Answer, Kubectl};
use crate::wait::until;

/// How long something that a kubelet does may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// How a namespace takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sessions {
    /// Every pod in it is a session.
    Enforced,
    /// What would happen to its pods is told, and nothing is done.
    Warn,
    /// An ordinary namespace.
    None,
}

/// A namespace that is there as long as its test runs. If the test fails, it tells what a person would ask for next.
#[derive(Debug)]
pub struct TestNamespace {
    kubectl: Kubectl,
    name: String,
}

/// A pod as the API server admitted it, and what it said to whoever created it.
#[derive(Debug)]
pub struct Created {
    /// The object.
    pub pod: Value,
    /// The admission warnings.
    pub warnings: Vec<String>,
}

impl TestNamespace {
    /// Makes a namespace and waits until pods can be made in it.
    ///
    /// # Errors
    /// In kubectl's words.
    pub fn create(kubectl: &Kubectl, name: &str, sessions: Sessions) -> Result<Self> {
        let mut labels = BTreeMap::new();
        match sessions {
            Sessions::Enforced => {
                labels.insert("cofferdam.dev/sessions", "enforced");
                labels.insert("pod-security.kubernetes.io/enforce", "restricted");
                labels.insert("pod-security.kubernetes.io/warn", "privileged");
            }
            Sessions::Warn => {
                labels.insert("cofferdam.dev/sessions", "warn");
            }
            Sessions::None => {}
        }
        let object =
            serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        // Left by a run that was killed.
        kubectl.run(["delete", "namespace", name, "--ignore-not-found"])?;
        kubectl.run_with(["create", "--filename=-"], &object.to_string())?;
        let namespace = Self { kubectl: kubectl.clone(), name: name.to_owned() };
        until("the ServiceAccount `default`", PATIENCE, || namespace.run(["get", "serviceaccount", "default"]))?;
        Ok(namespace)
    }

    /// A namespace that is there already. It goes with the test as well.
    #[must_use]
    pub fn existing(kubectl: &Kubectl, name: &str) -> Self {
        Self { kubectl: kubectl.clone(), name: name.to_owned() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs kubectl in it.
    ///
    /// # Errors
    /// In kubectl's words.
    pub fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
        self.kubectl.run(self.within(arguments))
    }

    /// Runs kubectl in it and returns all that it printed, whether it succeeded or not.
    ///
    /// # Errors
    /// When kubectl cannot be started.
    pub fn ask<'a>(&self, arguments: impl IntoIterator<Item = &'a str>, input: &str) -> Result<Answer> {
        self.kubectl.ask(self.within(arguments), input)
    }

    /// Runs kubectl in it and reads the JSON that it prints.
    ///
    /// # Errors
    /// In kubectl's words.
    pub fn json<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<Value> {
        self.kubectl.json(self.within(arguments))
    }

    /// Creates what `manifest` (YAML) says and returns it as it was admitted.
    ///
    /// # Errors
    /// In kubectl's words.
    pub fn create_object(&self, manifest: &str) -> Result<Created> {
        let answer = self.ask(["create", "--filename=-", "--output=json"], manifest)?;
        ensure!(answer.success, "not created: {}", answer.stderr);
        let pod = serde_json::from_str(&answer.stdout).context("kubectl printed no JSON")?;
        Ok(Created { pod, warnings: answer.warnings().into_iter().map(str::to_owned).collect() })
    }

    /// Tries to create what `manifest` says and returns why that was refused.
    ///
    /// # Errors
    /// When it was created.
    pub fn refused(&self, manifest: &str) -> Result<String> {
        let answer = self.ask(["create", "--filename=-"], manifest)?;
        ensure!(!answer.success, "it was created: {}", answer.stdout);
        Ok(answer.stderr)
    }

    /// Waits until a pod has ended well.
    ///
    /// # Errors
    /// When it does not.
    pub fn succeeded(&self, pod: &str) -> Result<()> {
        self.wait(pod, "--for=jsonpath={.status.phase}=Succeeded")
    }

    /// Waits until a pod has ended badly.
    ///
    /// # Errors
    /// When it does not.
    pub fn failed(&self, pod: &str) -> Result<()> {
        self.wait(pod, "--for=jsonpath={.status.phase}=Failed")
    }

    /// Waits until a pod is Ready.
    ///
    /// # Errors
    /// When it does not get there.
    pub fn ready(&self, pod: &str) -> Result<()> {
        self.wait(pod, "--for=condition=Ready")
    }

    fn wait(&self, pod: &str, condition: &str) -> Result<()> {
        let limit = format!("--timeout={}s", PATIENCE.as_secs());
        self.run(["wait", &format!("pod/{pod}"), condition, &limit]).map(|_| ())
    }

    /// What a container printed.
    ///
    /// # Errors
    /// In kubectl's words.
    pub fn logs(&self, pod: &str, container: &str) -> Result<String> {
        self.run(["logs", pod, "--container", container])
    }

    /// The one pod that carries a label, once it is there.
    ///
    /// # Errors
    /// When there is none.
    pub fn pod_with(&self, label: &str) -> Result<Value> {
        until(&format!("a pod with label {label}"), PATIENCE, || {
            let list = self.json(["get", "pods", "--selector", label])?;
            list["items"].get(0).cloned().context("there is none yet")
        })
    }

    fn within<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let namespace = format!("--namespace={}", self.name);
        // In front: what follows `--` belongs to a container.
        std::iter::once(namespace).chain(arguments.into_iter().map(str::to_owned)).collect()
    }

    fn diagnose(&self) {
        let system = format!("--namespace={SYSTEM}");
        let own = format!("--namespace={}", self.name);
        let questions: [&[&str]; 6] = [
            &[&own, "get", "all", "--output=wide"],
            &[&own, "describe", "pods"],
            &[&own, "logs", "--selector=cofferdam.dev/session", "--all-containers", "--tail=30", "--prefix"],
            &[&own, "get", "events", "--sort-by=.lastTimestamp"],
            &[&system, "logs", REPLICAS, "--tail=30", "--prefix"],
            &[&system, "logs", AGENTS, "--tail=30", "--prefix"],
        ];
        for question in questions {
            let answer = self.kubectl.ask(question, "");
            let text = answer.map_or_else(|error| format!("{error:#}"), |answer| answer.stdout + &answer.stderr);
            eprintln!("--- kubectl {}\n{text}", question.join(" "));
        }
    }
}

impl Drop for TestNamespace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.diagnose();
        }
        // The next run removes what this one could not.
        let _ = self.kubectl.run(["delete", "namespace", &self.name, "--wait=false"]);
    }
}
