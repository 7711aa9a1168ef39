//! All that was ever told of a pod, also for a moment only.

use std::io::BufReader;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use anyhow::ensure;
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::routing::{condition, message};
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use serde_json::Value;

/// A watch of one pod, from when it begins.
pub(crate) struct History {
    kubectl: Child,
    told: Arc<Mutex<Vec<Value>>>,
}

impl History {
    /// Begins, and returns once the pod as it is now has been seen.
    pub(crate) fn begin(stage: &Stage, namespace: &TestNamespace, pod: &str) -> Self {
        let mut kubectl = stage.cluster.kubectl_command().unwrap();
        kubectl.args(["--namespace", namespace.name(), "get", "pod", pod, "--watch", "--output=json"]);
        let mut kubectl = kubectl.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(kubectl.stdout.take().unwrap());
        let told = Arc::new(Mutex::new(Vec::new()));
        let its = Arc::clone(&told);
        thread::spawn(move || {
            let pods = serde_json::Deserializer::from_reader(output).into_iter::<Value>();
            for pod in pods.map_while(Result::ok) {
                its.lock().unwrap().push(pod);
            }
        });
        let history = Self { kubectl, told };
        until("the pod is seen", PATIENCE, || {
            ensure!(!history.told.lock().unwrap().is_empty(), "not yet");
            Ok(())
        })
        .unwrap();
        history
    }

    /// Waits until it was told, at any time, of a condition that its `status/reason: message` begins so.
    pub(crate) fn has(&self, name: &str, wanted: &str) {
        until(&format!("{name} was {wanted:?}"), PATIENCE, || {
            let all = self.all(name);
            ensure!(all.iter().any(|told| told.starts_with(wanted)), "it was {all:?}");
            Ok(())
        })
        .unwrap();
    }

    /// All that was told of a condition, in order, each time that it changed.
    pub(crate) fn all(&self, name: &str) -> Vec<String> {
        let told = self.told.lock().unwrap();
        let of = |pod: &Value| format!("{}: {}", condition(pod, name), message(pod, name));
        let mut all: Vec<String> = told.iter().map(of).collect();
        all.dedup();
        all
    }
}

impl Drop for History {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.kubectl.kill();
        let _ = self.kubectl.wait();
    }
}
