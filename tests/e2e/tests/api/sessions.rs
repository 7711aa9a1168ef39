//! Sessions, from a request to their end.

use cofferdam_e2e::api::TOKEN;
use cofferdam_e2e::images::SHELL;
use serde_json::{Value, json};

use crate::client::Client;
use crate::installed;

/// Begins a session that runs `script`; its id, and what opens its streams.
pub(crate) fn create(client: &Client, script: &str) -> (String, String) {
    create_with(client, script, &json!({}))
}

/// The same with more members of the request.
pub(crate) fn create_with(client: &Client, script: &str, more: &Value) -> (String, String) {
    let mut wanted = json!({
        "bundle": {"entryRelativePath": "src/main.sh", "files": [
            {"relativePath": "src/main.sh", "contents": script},
            {"relativePath": "name", "contents": "YmVuZWF0aA==", "encoding": "base64"},
        ]},
        "env": {"GREETING": "hello-0815"},
        "ports": [],
        "inspect": true,
        "config": {"image": SHELL, "pullPolicy": "missing"},
    });
    for (member, value) in more.as_object().unwrap() {
        wanted[member] = value.clone();
    }
    client.ask("POST", "/v1/sessions", &wanted).session()
}

/// The kind of an event's status; nothing where it has none.
pub(crate) fn kind(event: &Value) -> &str {
    event["status"]["kind"].as_str().unwrap_or_default()
}

#[test]
fn a_bundle_of_files_runs_is_spoken_with_and_ends_with_its_code() {
    let stage = installed::shared();
    let client = installed::client(stage);
    let script = "echo \"$GREETING from $(cat /app/name)\"; read line; echo \"got $line\"; exit 3";
    let (id, token) = create(&client, script);

    let mut terminal = client.terminal(&id, &token);
    terminal.until("hello-0815 from beneath");
    let pod = installed::pod(stage, &id);
    assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true, "it is hardened as any");
    let text = pod.to_string();
    assert!(!text.contains("hello-0815") && !text.contains(TOKEN) && !text.contains(&token), "{text}");
    terminal.write("a line\r");
    terminal.until("got a line");

    let events = client.events(&id, &token, |event| kind(event) == "exited");
    assert_eq!(events.last().unwrap()["status"]["code"], 3, "{events:#?}");
    let kinds: Vec<&str> = events.iter().map(kind).filter(|kind| !kind.is_empty()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 2]), ("starting", "running"), "{events:#?}");
    let session = client.ask("GET", &format!("/v1/sessions/{id}"), &Value::Null);
    assert_eq!((session.status, &session.body["status"]["kind"]), (200, &json!("exited")), "{session:?}");
    assert_eq!(client.ask("DELETE", &format!("/v1/sessions/{id}"), &Value::Null).status, 204);
}

#[test]
fn d29_sessions_outlive_the_api_and_another_one_finds_them() {
    let stage = &installed::start("e2e-api-restart");
    let client = installed::client(stage);
    let (id, token) = create(&client, "echo ready-to-serve; exec sleep 3600");
    client.terminal(&id, &token).until("ready-to-serve");
    installed::restart(stage);

    let client = installed::client(stage);
    let session = client.ask("GET", &format!("/v1/sessions/{id}"), &Value::Null);
    assert_eq!((session.status, &session.body["status"]["kind"]), (200, &json!("running")), "{session:?}");
    client.terminal(&id, &token).until("ready-to-serve");
    let events = client.events(&id, &token, |event| kind(event) == "running");
    assert_eq!(events[0]["type"], "gap", "what the one before told is not kept: {events:#?}");
    assert_eq!(client.ask("DELETE", &format!("/v1/sessions/{id}"), &Value::Null).status, 204);
    let events = client.events(&id, &token, |event| kind(event) == "stopped");
    assert!(!events.iter().any(|event| kind(event) == "failed"), "{events:#?}");
    installed::gone(stage, &id);
}

#[test]
fn who_sends_no_token_gets_nothing() {
    let client = installed::client(installed::shared());
    let health = client.ask("GET", "/v1/health", &Value::Null);
    assert_eq!((health.status, &health.body["ok"]), (200, &json!(true)));
    for path in ["/v1/sessions/aaaaaaaaaaaa/events?access_token=guess", "/v1/capabilities?access_token=guess"] {
        assert_eq!(client.anonymous(path), 401, "{path}");
    }
}
