//! A cluster with the API on it, by its overlay.

use std::sync::OnceLock;

use cofferdam_e2e::images::{self, SHELL};
use cofferdam_e2e::install::{self, IMAGE, SESSIONS, SYSTEM};
use cofferdam_e2e::namespace::TestNamespace;
use cofferdam_e2e::port_forward::PortForward;
use cofferdam_e2e::stage::Stage;
use serde_json::json;

use crate::client::Client;

/// What callers send.
pub(crate) const TOKEN: &str = "a-token-of-the-tests-4711";

/// The pods of the API.
const API: &str = "--selector=app.kubernetes.io/component=api";

/// The stage that all tests share.
pub(crate) fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| {
        let mut stage = Stage::bare("e2e-api", 1).unwrap();
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
    })
}

/// Waits until the API serves.
pub(crate) fn serves(stage: &Stage) {
    let of = format!("--namespace={SYSTEM}");
    stage.kubectl.run([of.as_str(), "rollout", "status", "deployment/cofferdam-api", "--timeout=5m"]).unwrap();
}

/// A client of the API that serves now.
pub(crate) fn client(stage: &Stage) -> Client {
    let system = TestNamespace::existing(&stage.kubectl, SYSTEM);
    let pod = system.json(["get", "pods", API, "--field-selector=status.phase=Running"]).unwrap();
    let name = pod["items"][0]["metadata"]["name"].as_str().unwrap();
    Client(PortForward::to(&stage.kubectl, SYSTEM, name, 8062).unwrap())
}

/// The API that serves now ends, and another begins.
pub(crate) fn restart(stage: &Stage) {
    let of = format!("--namespace={SYSTEM}");
    stage.kubectl.run([of.as_str(), "delete", "pods", API, "--wait=true"]).unwrap();
    serves(stage);
}

/// Where its sessions are.
pub(crate) fn sessions(stage: &Stage) -> TestNamespace {
    TestNamespace::existing(&stage.kubectl, SESSIONS)
}
