//! Prometheus, as Debian packages it: asks Cofferdam's pods for their metrics every second, and evaluates rules as often.
//!
//! It asks the pods that run in `cofferdam-system`, on each port called `metrics`. Series have the labels `namespace`,
//! `pod`, `node`, and `job`, which is the pod's `app.kubernetes.io/component`.

use std::thread;
use std::time::{Duration, Instant};

use form_urlencoded::Serializer;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Addon, AddonError, Installation, Ready, Workbench};
use crate::cluster::Cluster;
use crate::debian;
use crate::error::Error;
use crate::hexadecimal::hexadecimal;

mod promtool;

pub use promtool::promtool;

/// Prometheus, in the namespace `monitoring`.
pub const PROMETHEUS: Addon = Addon { name: "prometheus", prepare };

/// Its port, through the API server.
const URL: &str = "/api/v1/namespaces/monitoring/services/prometheus:http/proxy";
/// How long rules may take to arrive, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often is looked whether they have.
const POLL: Duration = Duration::from_millis(200);

fn prepare(_: &Workbench) -> Result<Installation, AddonError> {
    Ok(Installation {
        images: vec![debian::prometheus_image("cofferdam.test/prometheus:1")?],
        manifests: vec![include_str!("../../addons/prometheus.yaml").to_owned()],
        ready: vec![Ready::Condition {
            namespace: "monitoring",
            object: "deployment/prometheus",
            condition: "Available",
        }],
    })
}

/// What Prometheus answers to an expression now: the `result` of its HTTP API. Blocks.
///
/// # Errors
/// [`Error::Command`] when it cannot be asked or does not understand the expression.
pub fn query(cluster: &Cluster, expression: &str) -> Result<Value, Error> {
    let mut answer = get(cluster, &query_path(expression))?;
    Ok(answer["data"]["result"].take())
}

/// Where the API server passes an expression on to Prometheus: what `kubectl get --raw` is given.
#[must_use]
pub fn query_path(expression: &str) -> String {
    format!("{URL}/api/v1/query?{}", Serializer::new(String::new()).append_pair("query", expression).finish())
}

/// What Prometheus says of its alerts now: those that are pending or firing, as in its HTTP API. Blocks.
///
/// # Errors
/// As [`query`].
pub fn alerts(cluster: &Cluster) -> Result<Value, Error> {
    let mut answer = get(cluster, &format!("{URL}/api/v1/alerts"))?;
    Ok(answer["data"]["alerts"].take())
}

/// Gives Prometheus a rule file, YAML with at least one group, in place of any that it had, and returns once its rules
/// are evaluated. Blocks.
///
/// # Errors
/// [`Error::Timeout`], with what Prometheus says, when it does not take them.
pub fn set_rules(cluster: &Cluster, rules: &str) -> Result<(), Error> {
    let digest = hexadecimal(&Sha256::digest(rules));
    let file = format!("{}.yaml", &digest[..16]);
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "prometheus-rules", "namespace": "monitoring"},
        "data": {&file: rules},
    });
    cluster.apply(&object.to_string())?;
    let start = Instant::now();
    for attempt in 0_u32.. {
        match take_over(cluster, &file, attempt) {
            Ok(true) => break,
            Ok(false) | Err(_) if start.elapsed() < PATIENCE => {}
            last => {
                let look = last.err().map_or("it does not list them".to_owned(), |error| error.to_string());
                let what = "that Prometheus evaluates the new rules".to_owned();
                return Err(Error::Timeout { what, after: PATIENCE, look });
            }
        }
        thread::sleep(POLL);
    }
    Ok(())
}

/// Makes Prometheus read its files again; returns whether it has read `file`.
fn take_over(cluster: &Cluster, file: &str, attempt: u32) -> Result<bool, Error> {
    // A kubelet looks after a pod's volumes once a minute, and at once when the pod has changed.
    let changed = format!("cofferdam.test/rules={file}-{attempt}");
    cluster.kubectl([
        "annotate",
        "pods",
        "--namespace=monitoring",
        "--selector=app=prometheus",
        "--overwrite",
        &changed,
    ])?;
    cluster.kubectl_with(["create", "--raw", &format!("{URL}/-/reload"), "--filename=-"], "")?;
    let rules = get(cluster, &format!("{URL}/api/v1/rules"))?;
    let groups = rules["data"]["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(groups.iter().any(|group| group["file"].as_str().is_some_and(|name| name.ends_with(file))))
}

fn get(cluster: &Cluster, path: &str) -> Result<Value, Error> {
    let answer = cluster.kubectl(["get", "--raw", path])?;
    serde_json::from_str(&answer).map_err(Error::part)
}
