//! A cluster with the API on it, by its overlay.

use std::sync::OnceLock;

use cofferdam_e2e::api::{self, API};
use cofferdam_e2e::install::{SESSIONS, SYSTEM};
use cofferdam_e2e::stage::Stage;
use serde_json::Value;

use crate::client::Client;

/// The stage that all tests share that disturb nobody.
pub(crate) fn shared() -> &'static Stage {
    static SHARED: OnceLock<Stage> = OnceLock::new();
    SHARED.get_or_init(|| start("e2e-api"))
}

/// A stage with the API.
pub(crate) fn start(name: &str) -> Stage {
    api::start(name, None, &[]).unwrap()
}

/// A client of the API that serves now.
pub(crate) fn client(stage: &Stage) -> Client {
    Client(api::door(stage, API).unwrap())
}

/// The API that serves now ends, and another begins.
pub(crate) fn restart(stage: &Stage) {
    let of = format!("--namespace={SYSTEM}");
    stage.kubectl.run([of.as_str(), "delete", "pods", API, "--wait=true"]).unwrap();
    api::serves(&stage.kubectl).unwrap();
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
