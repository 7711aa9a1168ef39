//! The pod of a session: what runs, and nothing about how it is confined. All of that the webhook adds, to this pod as to
//! anybody's, so that there is one place where it is decided.

use std::net::IpAddr;

use cofferdam_model::keys;
use cofferdam_model::ports::{INSPECTOR, Ports, PortsError, Protocol};
use cofferdam_model::session::SessionId;
use serde_json::{Map, Value, json};

use super::record::{secret_name, variable_key};
use crate::wire::{Io, Port, PortProtocol, PullPolicy};

/// The container that is the session's program.
pub const CONTAINER: &str = "session";

/// In a command: the path of what is run.
const ENTRY: &str = "$(ENTRY)";

/// In a command: what makes the program's inspector listen, or nothing.
const INSPECT: &str = "$(INSPECT)";

/// What a pod is made from.
#[derive(Clone, Debug)]
pub struct SessionPod<'a> {
    /// Whose it is.
    pub id: &'a SessionId,
    /// Where it runs.
    pub namespace: &'a str,
    /// The profile of the policy that it is hardened by.
    pub profile: &'a str,
    /// What it runs in.
    pub image: &'a str,
    /// When that is pulled.
    pub pull_policy: PullPolicy,
    /// What it runs; empty for what the profile says, or else the image.
    pub command: Vec<String>,
    /// The entry's path in the body, for the profile's command.
    pub entry: Option<&'a str>,
    /// What is fetched first.
    pub body: Option<Body<'a>>,
    /// Names of the variables whose values are in the session's Secret, in its order.
    pub variables: Vec<&'a str>,
    /// What it serves.
    pub ports: &'a Ports,
    /// Whether its output is a terminal's.
    pub io: Io,
    /// For how many seconds it is kept when it has ended, if that is longer than the policy's.
    pub finished_grace_seconds: u64,
}

/// What is fetched into a pod.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// From where; no secret is in it.
    pub url: &'a str,
    /// Its SHA-256, as 64 hex digits.
    pub sha256: &'a str,
    /// Whether a token is needed, which is in the session's Secret.
    pub has_token: bool,
}

/// What runs in a session's pod, where the profile does not say it: `$(ENTRY)` stands for the entry's path, and `$(INSPECT)`,
/// alone, for the arguments that make the program's inspector listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    parts: Vec<String>,
    inspect: Vec<String>,
}

impl Command {
    /// Of these parts, with these arguments for the inspector.
    #[must_use]
    pub fn new(parts: Vec<String>, inspect: Vec<String>) -> Self {
        Self { parts, inspect }
    }

    /// For the entry at this path in the pod.
    #[must_use]
    pub fn of(&self, path: &str, inspects: bool) -> Vec<String> {
        // A kubelet would take `$(NAME)` in a path for a variable.
        let path = path.replace('$', "$$");
        let mut command = Vec::new();
        for part in &self.parts {
            match part.as_str() {
                INSPECT if inspects => command.extend(self.inspect.iter().cloned()),
                INSPECT => {}
                part => command.push(part.replace(ENTRY, &path)),
            }
        }
        command
    }
}

/// The ports of a request, each once: one that is listed twice is meant once, and the same number may be served by TCP and
/// by UDP (defect D13).
pub fn ports(requested: &[Port]) -> Result<Ports, PortsError> {
    let protocol = |port: &Port| match port.protocol {
        PortProtocol::Tcp => Protocol::Tcp,
        PortProtocol::Udp => Protocol::Udp,
    };
    let listed = requested.iter().map(|port| format!("{}/{}", port.port, protocol(port).as_str()));
    Ports::parse(&listed.collect::<Vec<_>>().join(","))
}

/// Whether a program's inspector is listened to: where its port is the program's own, that wins (lesson L31).
#[must_use]
pub fn inspects(asked: bool, ports: &Ports) -> bool {
    asked && ports.tcp().all(|port| port != INSPECTOR)
}

/// Where a pod is, as its kubelet says.
#[must_use]
pub fn address(pod: &Value) -> Option<IpAddr> {
    pod["status"]["podIP"].as_str()?.parse().ok()
}

/// The name of a session's pod.
#[must_use]
pub fn pod_name(id: &SessionId) -> String {
    format!("run-{id}")
}

impl SessionPod<'_> {
    /// The pod as it is created.
    #[must_use]
    pub fn object(&self) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod_name(self.id),
                "namespace": self.namespace,
                "labels": {
                    (keys::SESSION): self.id.as_str(),
                    (keys::PROFILE): self.profile,
                    (keys::MANAGED_BY): keys::API,
                },
                "annotations": self.annotations(),
            },
            "spec": { "containers": [self.container()] },
        })
    }

    fn annotations(&self) -> Map<String, Value> {
        let mut annotations = Map::new();
        let mut note = |key: &str, value: String| annotations.insert(key.to_owned(), value.into());
        note(keys::FINISHED_GRACE, self.finished_grace_seconds.to_string());
        // Said even where there are none: what containers declare would count otherwise, and a webhook may add some.
        note(keys::PORTS, self.ports.to_string());
        if let Some(entry) = self.entry {
            note(keys::ENTRY, entry.to_owned());
        }
        if let Some(body) = &self.body {
            note(keys::BODY_URL, body.url.to_owned());
            note(keys::BODY_SHA256, body.sha256.to_owned());
            if body.has_token {
                note(keys::BODY_TOKEN_SECRET, secret_name(self.id));
            }
        }
        annotations
    }

    fn container(&self) -> Value {
        let secret = secret_name(self.id);
        let variable = |(place, name): (usize, &&str)| {
            let reference = json!({ "name": secret, "key": variable_key(place) });
            json!({ "name": name, "valueFrom": { "secretKeyRef": reference } })
        };
        let port = |port: cofferdam_model::ports::Port| json!({ "containerPort": port.number, "protocol": port.protocol.as_str().to_ascii_uppercase() });
        let mut container = json!({
            "name": CONTAINER,
            "image": self.image,
            "imagePullPolicy": match self.pull_policy {
                PullPolicy::Missing => "IfNotPresent",
                PullPolicy::Always => "Always",
                PullPolicy::Never => "Never",
            },
            "stdin": true,
            // Whoever is attached may go, and another may come.
            "stdinOnce": false,
            "tty": self.io == Io::Tty,
            "env": self.variables.iter().enumerate().map(variable).collect::<Vec<_>>(),
            "ports": self.ports.iter().map(port).collect::<Vec<_>>(),
        });
        if !self.command.is_empty() {
            container["command"] = json!(self.command);
        }
        container
    }
}

#[cfg(test)]
mod tests;
