//! A cluster with the API on it, by its overlay.

use std::sync::OnceLock;

use cofferdam_e2e::images::{self, SHELL};
use cofferdam_e2e::install::{self, IMAGE, SESSIONS, SYSTEM};
use cofferdam_e2e::port_forward::PortForward;
use cofferdam_e2e::stage::Stage;
use serde_json::{Value, json};

use crate::client::Client;

/// What callers send.
pub(crate) const TOKEN: &str = "a-token-of-the-tests-4711";

/// The pods of the API.
const API: &str = "--selector=app.kubernetes.io/component=api";

/// The stage that all tests share that disturb nobody.
pub(crate) fn shared() -> &'static Stage {
    static SHARED: OnceLock<Stage> = OnceLock::new();
    SHARED.get_or_init(|| start("e2e-api"))
}

/// A stage with the API.
pub(crate) fn start(name: &str) -> Stage {
    let mut stage = Stage::bare(name, 1).unwrap();
    images::load_shell(&mut stage.cluster).unwrap();
    stage.manifests = install::render_overlay(&stage.kubectl, "api", IMAGE).unwrap();
    stage.kubectl.run_with(["apply", "--filename=-"], &stage.manifests).unwrap();
    let of = format!("--namespace={SYSTEM}");
    let tokens = format!("--from-literal=tokens={TOKEN}");
    stage.kubectl.run([of.as_str(), "create", "secret", "generic", "cofferdam-api-tokens", &tokens]).unwrap();
    let command = json!(["sh", "$(ENTRY)"]);
    stage
        .kubectl
        .run([
            of.as_str(),
            "set",
            "env",
            "deployment/cofferdam-api",
            &format!("COFFERDAM_API_DEFAULT_IMAGE={SHELL}"),
            &format!("COFFERDAM_API_RUN_COMMAND={command}"),
        ])
        .unwrap();
    install::ready(&stage.kubectl).unwrap();
    serves(&stage);
    stage
}

/// Waits until the API serves.
pub(crate) fn serves(stage: &Stage) {
    let of = format!("--namespace={SYSTEM}");
    stage.kubectl.run([of.as_str(), "rollout", "status", "deployment/cofferdam-api", "--timeout=5m"]).unwrap();
}

/// A client of the API that serves now.
pub(crate) fn client(stage: &Stage) -> Client {
    let of = format!("--namespace={SYSTEM}");
    let running = [of.as_str(), "get", "pods", API, "--field-selector=status.phase=Running"];
    let pod = stage.kubectl.json(running).unwrap();
    let name = pod["items"][0]["metadata"]["name"].as_str().unwrap();
    Client(PortForward::to(&stage.kubectl, SYSTEM, name, 8062).unwrap())
}

/// The API that serves now ends, and another begins.
pub(crate) fn restart(stage: &Stage) {
    let of = format!("--namespace={SYSTEM}");
    stage.kubectl.run([of.as_str(), "delete", "pods", API, "--wait=true"]).unwrap();
    serves(stage);
}

/// The pod of a session.
pub(crate) fn pod(stage: &Stage, id: &str) -> Value {
    let (of, name) = (format!("--namespace={SESSIONS}"), format!("run-{id}"));
    stage.kubectl.json([of.as_str(), "get", "pod", &name]).unwrap()
}

/// Waits until that is gone.
pub(crate) fn gone(stage: &Stage, id: &str) {
    let (of, name) = (format!("--namespace={SESSIONS}"), format!("pod/run-{id}"));
    stage.kubectl.run([of.as_str(), "wait", &name, "--for=delete", "--timeout=2m"]).unwrap();
}
