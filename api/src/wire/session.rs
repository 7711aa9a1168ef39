//! What makes a session, and what is answered.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::PortProtocol;

/// The most ports of a request, as of a pod: each is a route.
const MOST_PORTS: usize = cofferdam_model::ports::MOST;

/// The body of `POST /v1/sessions`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateSession {
    /// What is run.
    pub bundle: Bundle,
    /// The program's environment, in the order in which it was sent.
    pub env: Environment,
    /// What the program serves.
    #[serde(default)]
    #[schemars(length(max = MOST_PORTS))]
    pub ports: Vec<Port>,
    /// What the client's form holds.
    pub config: Config,
    /// Whether events of the program's inspector are passed on.
    #[serde(default)]
    pub inspect: bool,
    /// How long the session lives.
    #[serde(default)]
    pub mode: Mode,
    /// By name, what works beside the apps of a session that outlives its runs.
    #[serde(default)]
    pub agent: Option<String>,
    /// The one app where it is left out: `app`, with the bundle's entry and the ports above.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub apps: Option<Vec<App>>,
}

/// The body of `POST /v1/apps/:name/sessions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateAppSession {
    /// The program's environment; what the operator sets wins.
    #[serde(default)]
    pub env: Environment,
    /// What the program serves.
    #[serde(default)]
    #[schemars(length(max = MOST_PORTS))]
    pub ports: Vec<Port>,
    /// Whether events of the program's inspector are passed on.
    #[serde(default)]
    pub inspect: bool,
}

/// Names and values of variables, in the order in which they were sent. Its `Debug` shows none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(pub Vec<(String, String)>);

/// Files, and the one that is run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// The path of the file that is run.
    #[schemars(length(min = 1))]
    pub entry_relative_path: String,
    /// The files.
    pub files: Vec<BundleFile>,
}

/// One file. Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleFile {
    /// Where it is.
    #[schemars(length(min = 1))]
    pub relative_path: String,
    /// What is in it.
    pub contents: String,
    /// How that is written.
    #[serde(default)]
    pub encoding: Encoding,
}

/// How a file's contents are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// As text.
    #[default]
    Utf8,
    /// As base64, with padding.
    Base64,
}

/// What the client's form holds; whatever else travels with it is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// The image that the program runs in.
    #[schemars(length(min = 1))]
    pub image: String,
    /// When it is pulled.
    pub pull_policy: PullPolicy,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PullPolicy {
    /// Where the node does not have it.
    #[default]
    Missing,
    /// Each time.
    Always,
    /// Not at all: the node has it.
    Never,
}

/// A port that a program serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Port {
    /// Its number.
    #[schemars(range(min = 1))]
    pub port: u16,
    /// Its protocol.
    pub protocol: PortProtocol,
}

/// How long a session lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// As long as its program.
    #[default]
    Run,
    /// Longer than the runs of its programs.
    Watch,
}

/// One program of a session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct App {
    /// Its name, a DNS label.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The path of the file that is run.
    #[schemars(length(min = 1))]
    pub entry_relative_path: String,
    /// What it serves.
    #[serde(default)]
    #[schemars(length(max = MOST_PORTS))]
    pub ports: Vec<Port>,
    /// How its output is told apart.
    #[serde(default)]
    pub io: Io,
}

/// How a program's output is told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Io {
    /// A terminal: one stream.
    #[default]
    Tty,
    /// Standard output and standard error.
    Streams,
}

/// The answer to a session that is on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Created {
    /// Its id.
    pub session_id: String,
    /// The path of its events.
    pub stream_url: String,
    /// When it was asked for (RFC 3339, UTC, milliseconds).
    pub created_at: String,
    /// What its streams accept in place of the caller's token, where callers need one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_token: Option<String>,
}

/// The answer to `GET /v1/sessions/:id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its id.
    pub session_id: String,
    /// Its state.
    pub status: super::Status,
    /// When it was asked for (RFC 3339, UTC, milliseconds).
    pub created_at: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exited_at: Option<String>,
    /// How long it lives.
    pub mode: Mode,
    /// Its programs.
    pub apps: Vec<SessionApp>,
}

/// One program of a session, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionApp {
    /// Its name.
    pub name: String,
    /// How its output is told apart.
    pub io: Io,
    /// Which run of it this is, from 1.
    pub generation: u64,
    /// What it serves.
    pub ports: Vec<Port>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment of {}", self.0.len())
    }
}

impl fmt::Debug for BundleFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BundleFile")
    }
}

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Variables;

        impl<'de> Visitor<'de> for Variables {
            type Value = Environment;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("names and values of variables")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Environment, A::Error> {
                let mut variables: Vec<(String, String)> = Vec::new();
                while let Some(variable) = map.next_entry()? {
                    variables.push(variable);
                }
                // Of a name that is there twice the last value holds, as everywhere in JSON.
                let mut names = HashSet::new();
                let keeps: Vec<bool> = variables.iter().rev().map(|(name, _)| names.insert(name.clone())).collect();
                let mut keeps = keeps.into_iter().rev();
                variables.retain(|_| keeps.next().unwrap_or(true));
                Ok(Environment(variables))
            }
        }

        deserializer.deserialize_map(Variables)
    }
}

impl JsonSchema for Environment {
    fn schema_name() -> Cow<'static, str> {
        "Environment".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, String>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_keep_their_order_and_the_last_of_a_name_holds() {
        let environment: Environment = serde_json::from_str(r#"{"B": "1", "A": "2", "B": "3"}"#).unwrap();
        let is = [("A", "2"), ("B", "3")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(environment.0, is);
    }

    #[test]
    fn what_a_client_of_the_contract_sends_is_read_and_what_else_it_sends_is_ignored() {
        let sent = r#"{"bundle": {"entryRelativePath": "app.yaml", "files": [{"relativePath": "app.yaml", "contents": ""}]},
            "env": {}, "ports": [{"port": 3000, "protocol": "tcp"}], "inspect": true,
            "config": {"image": "i", "pullPolicy": "missing", "region": "x"}}"#;
        let create: CreateSession = serde_json::from_str(sent).unwrap();
        assert_eq!((create.mode, create.inspect, create.apps), (Mode::Run, true, None));
        assert_eq!(create.ports, [Port { port: 3000, protocol: PortProtocol::Tcp }]);
        assert_eq!(create.bundle.files[0].encoding, Encoding::Utf8);
    }

    #[test]
    fn d10_nothing_that_may_be_secret_is_shown() {
        let sent = r#"{"bundle": {"entryRelativePath": "a", "files": [{"relativePath": "a", "contents": "hunter2"}]},
            "env": {"KEY": "hunter2"}, "config": {"image": "i", "pullPolicy": "missing"}}"#;
        let create: CreateSession = serde_json::from_str(sent).unwrap();
        let shown = format!("{create:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("KEY"), "{shown}");
    }
}
