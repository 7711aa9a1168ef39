//! What tests that disturb a stage with the API ask of it: sessions of their own kind, what is told of them, what the log says.

use cofferdam_e2e::api;
use cofferdam_e2e::images::SHELL;
use cofferdam_e2e::install::SESSIONS;
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::client::Client;

/// Runs kubectl where sessions are.
pub(crate) fn sessions(stage: &Stage, arguments: &[&str]) -> String {
    stage.kubectl.run([&["--namespace", SESSIONS], arguments].concat()).unwrap()
}

/// An object where sessions are, or null.
pub(crate) fn object(stage: &Stage, what: &str) -> Value {
    let text = sessions(stage, &["get", what, "--ignore-not-found", "--output=json"]);
    serde_json::from_str(&text).unwrap_or_default()
}

/// Applies an object.
pub(crate) fn apply(stage: &Stage, object: &Value) {
    stage.kubectl.run_with(["apply", "--filename=-"], &object.to_string()).unwrap();
}

/// A session that was promised.
#[derive(Clone)]
pub(crate) struct Session {
    pub id: String,
    token: String,
}

impl Session {
    /// Asks for one that runs `script`. By its port it is told apart from others, where those who hold it up look.
    pub(crate) fn create(client: &Client, script: &str, port: u16) -> Self {
        Self::promised(
            client,
            "/v1/sessions",
            &json!({
                "bundle": {"entryRelativePath": "main.sh", "files": [{"relativePath": "main.sh", "contents": script}]},
                "env": {"SECRET": "hunter2-4711"},
                "ports": [{"port": port, "protocol": "tcp"}],
                "config": {"image": SHELL, "pullPolicy": "missing"},
            }),
        )
    }

    /// Asks for one of an app of the operator's.
    pub(crate) fn of_app(client: &Client, app: &str) -> Self {
        Self::promised(client, &format!("/v1/apps/{app}/sessions"), &json!({"env": {}}))
    }

    fn promised(client: &Client, path: &str, wanted: &Value) -> Self {
        let (id, token) = client.ask("POST", path, wanted).session();
        Self { id, token }
    }

    /// How it is; its code, or its sentence.
    pub(crate) fn status(&self, client: &Client) -> (u16, Value) {
        let answer = client.ask("GET", &format!("/v1/sessions/{}", self.id), &Value::Null);
        (answer.status, answer.body["status"].clone())
    }

    /// Reads its events until it is of that kind; what is told then.
    pub(crate) fn becomes(&self, client: &Client, kind: &str) -> Value {
        let is_over = |event: &Value| {
            let its = crate::sessions::kind(event);
            its == kind || matches!(its, "exited" | "failed" | "stopped")
        };
        let events = client.events(&self.id, &self.token, is_over);
        let status = &events.last().unwrap()["status"];
        assert_eq!(status["kind"], kind, "{events:#?}");
        status.clone()
    }

    /// The sentence by which it fails.
    pub(crate) fn fails(&self, client: &Client) -> String {
        self.becomes(client, "failed")["message"].as_str().unwrap().to_owned()
    }

    /// Waits until its program has written that.
    pub(crate) fn writes(&self, client: &Client, text: &str) {
        client.terminal(&self.id, &self.token).until(text);
    }

    /// Asks for its end; the status of the answer, and its body.
    pub(crate) fn stop(&self, client: &Client) -> (u16, Value) {
        let answer = client.ask("DELETE", &format!("/v1/sessions/{}", self.id), &Value::Null);
        (answer.status, answer.body)
    }

    /// Its pod, or null.
    pub(crate) fn pod(&self, stage: &Stage) -> Value {
        object(stage, &format!("pod/run-{}", self.id))
    }

    /// Its Secret, or null.
    pub(crate) fn secret(&self, stage: &Stage) -> Value {
        object(stage, &format!("secret/s-{}", self.id))
    }
}

/// What the API's admin port answers.
pub(crate) fn ready(stage: &Stage) -> String {
    stage
        .answer(api::pod(stage, api::API).unwrap()["metadata"]["name"].as_str().unwrap(), "/readyz")
        .unwrap_or_else(|error| format!("{error:#}"))
}

/// Waits until the API's admin port answers that.
pub(crate) fn is_ready(stage: &Stage, answer: &str) {
    until(&format!("/readyz is {answer:?}"), PATIENCE, || {
        let is = ready(stage);
        anyhow::ensure!(is == answer, "it is {is:?}");
        Ok(())
    })
    .unwrap();
}

/// Splits a sentence from the reference into the log at its end.
pub(crate) fn referred(sentence: &str) -> (&str, &str) {
    let (sentence, reference) =
        sentence.split_once(" (reference ").unwrap_or_else(|| panic!("no reference: {sentence}"));
    (sentence, reference.strip_suffix(')').unwrap())
}

/// The line of the API's log with that reference.
pub(crate) fn logged(stage: &Stage, reference: &str) -> String {
    let log = stage.system(&["logs", "deployment/cofferdam-api", "--tail=-1"]).unwrap();
    let line = log.lines().find(|line| line.contains(reference));
    line.unwrap_or_else(|| panic!("no line of the log has {reference}: {log}")).to_owned()
}
