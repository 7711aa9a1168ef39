//! The document that says what the API is: programs of others read it, and find the API to be that.

use std::path::{Path, PathBuf};

use cofferdam_e2e::api::{self, TOKEN};
use cofferdam_e2e::install::{SESSIONS, SYSTEM};
use cofferdam_e2e::namespace::Sessions;
use cofferdam_e2e::openapi;
use cofferdam_e2e::stage::Stage;
use serde_json::{Value, json};

use crate::installed;

/// An API for this test alone, which may take all its places.
const NAME: &str = "cofferdam-api-read";

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json")
}

#[test]
fn the_document_is_one() {
    openapi::validate(&document()).unwrap();
}

#[test]
fn the_api_is_what_its_document_says() {
    let stage = installed::shared();
    let sessions = stage.namespace("api-read", Sessions::Enforced);
    another(stage, sessions.name());
    let of = format!("--namespace={SYSTEM}");
    let door = api::door(stage, "--selector=app.kubernetes.io/component=api-read").unwrap();
    let url = format!("http://127.0.0.1:{}", door.port());
    let said = openapi::fuzz(&document(), &url, TOKEN, 30);
    let log = stage.kubectl.run([of.as_str(), "logs", &format!("deployment/{NAME}")]).unwrap();
    let said = said.unwrap_or_else(|wrong| panic!("{wrong:#}\n{log}"));
    assert!(said.contains("Tested: 16") && !log.contains("panicked"), "{said}\n{log}");
}

/// Installs a second API, with sessions in a namespace of its own.
fn another(stage: &Stage, namespace: &str) {
    let get = |namespace: &str, what: &str| {
        let of = format!("--namespace={namespace}");
        let mut object = stage.kubectl.json([of.as_str(), "get", what, "cofferdam-api"]).unwrap();
        object["metadata"] = json!({"name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"]});
        object
    };
    let apply = |object: &Value| stage.kubectl.run_with(["apply", "--filename=-"], &object.to_string()).unwrap();
    for kind in ["role", "rolebinding"] {
        let mut object = get(SESSIONS, kind);
        object["metadata"]["namespace"] = json!(namespace);
        apply(&object);
    }
    let mut deployment = get(SYSTEM, "deployment");
    deployment["metadata"]["name"] = json!(NAME);
    let labels = json!({"app.kubernetes.io/component": "api-read"});
    deployment["spec"]["selector"] = json!({"matchLabels": labels});
    deployment["spec"]["template"]["metadata"] = json!({"labels": labels});
    let env = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array_mut().unwrap();
    env.push(json!({"name": "COFFERDAM_API_SESSION_NAMESPACE", "value": namespace}));
    env.push(json!({"name": "COFFERDAM_API_SESSIONS", "value": "8"}));
    // What is made up for an image there is.
    env.iter_mut().filter(|one| one["name"] == "COFFERDAM_API_DEFAULT_IMAGE").for_each(|one| one["value"] = json!("0"));
    apply(&deployment);
    let of = format!("--namespace={SYSTEM}");
    let rollout = [of.as_str(), "rollout", "status", &format!("deployment/{NAME}"), "--timeout=5m"];
    stage.kubectl.run(rollout).unwrap();
}
