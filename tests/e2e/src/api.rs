//! The API on a cluster, as its overlay installs it, and the way to it.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::images::{self, SHELL};
use crate::install::{self, IMAGE, SYSTEM};
use crate::kubectl::Kubectl;
use crate::routing::Door;
use crate::stage::Stage;

/// What callers send.
pub const TOKEN: &str = "a-token-of-the-tests-4711";

/// What selects its pods.
pub const API: &str = "--selector=app.kubernetes.io/component=api";

/// The port of its clients.
pub const PORT: u16 = 8062;

/// A cluster with Cofferdam and the API on it, whose sessions run the files of their clients by a shell, and which has an app
/// `notebook`. `policy` is the one that ships where there is none, and `settings` are variables of the API beside those of
/// every test.
///
/// # Errors
/// What could not be started.
pub fn start(name: &str, policy: Option<&str>, settings: &[(&str, &str)]) -> Result<Stage> {
    start_with(name, policy, settings, |_| Ok(()))
}

/// The same; `change` changes what is installed before it is waited for.
///
/// # Errors
/// What could not be started or changed.
pub fn start_with(
    name: &str,
    policy: Option<&str>,
    settings: &[(&str, &str)],
    change: impl FnOnce(&Stage) -> Result<()>,
) -> Result<Stage> {
    let mut stage = Stage::bare(name, 1)?;
    images::load_shell(&mut stage.cluster)?;
    stage.manifests = match policy {
        Some(policy) => install::render_with_policy(&stage.kubectl, "api", IMAGE, policy)?,
        None => install::render_overlay(&stage.kubectl, "api", IMAGE)?,
    };
    stage.kubectl.run_with(["apply", "--filename=-"], &stage.manifests)?;
    stage.system(&[
        "create",
        "secret",
        "generic",
        "cofferdam-api-tokens",
        &format!("--from-literal=tokens={TOKEN}"),
    ])?;
    let apps = format!("--from-literal=apps.yaml={{notebook: {{image: '{SHELL}', title: A shell}}}}");
    stage.system(&["create", "secret", "generic", "apps", &apps])?;
    let command = json!(["sh", "$(ENTRY)"]).to_string();
    let of_every_test = [
        ("COFFERDAM_API_DEFAULT_IMAGE", SHELL),
        ("COFFERDAM_API_RUN_COMMAND", &command),
        ("COFFERDAM_API_APPS", "/etc/cofferdam/apps/apps.yaml"),
    ];
    let settings = of_every_test.iter().chain(settings).map(|(name, value)| json!({"name": name, "value": value}));
    let pod = json!({
        "volumes": [{"name": "apps", "secret": {"secretName": "apps", "defaultMode": 0o440}}],
        "containers": [{
            "name": "api",
            "volumeMounts": [{"name": "apps", "mountPath": "/etc/cofferdam/apps"}],
            "env": settings.collect::<Vec<_>>(),
        }],
    });
    let patch = json!({"spec": {"template": {"spec": pod}}}).to_string();
    stage.system(&["patch", "deployment/cofferdam-api", "--patch", &patch])?;
    change(&stage)?;
    install::ready(&stage.kubectl)?;
    serves(&stage.kubectl)?;
    Ok(stage)
}

/// Waits until it serves.
///
/// # Errors
/// When it does not get there.
pub fn serves(kubectl: &Kubectl) -> Result<()> {
    let of = format!("--namespace={SYSTEM}");
    kubectl.run([of.as_str(), "rollout", "status", "deployment/cofferdam-api", "--timeout=5m"]).map(drop)
}

/// The pod that serves now, of those that `selector` names.
///
/// # Errors
/// When there is none.
pub fn pod(stage: &Stage, selector: &str) -> Result<Value> {
    let of = format!("--namespace={SYSTEM}");
    let running = [of.as_str(), "get", "pods", selector, "--field-selector=status.phase=Running"];
    let pod = stage.kubectl.json(running)?["items"][0].take();
    pod.is_object().then_some(pod).context("no pod of the API runs")
}

/// The port of its clients, on this machine: a connection there is a connection to the pod that serves now, which takes what is
/// sent, and is read, no sooner than the other end.
///
/// # Errors
/// When no pod serves.
pub fn door(stage: &Stage, selector: &str) -> Result<Door> {
    let pod = pod(stage, selector)?;
    let address = pod["status"]["podIP"].as_str().context("the API's pod has no address")?.parse()?;
    Ok(Door::on(stage.cluster.relay(SocketAddr::new(address, PORT), 0)?))
}
