//! What the API server was asked by service accounts of Cofferdam's own namespace, and what it answered.
//!
//! Only those: with everybody else's requests the log would be mostly about kubelets, and large.

use std::fs;
use std::io::ErrorKind;

use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;

use crate::cluster::Cluster;
use crate::error::Error;

/// The name of the log among those of the first node.
pub(crate) const LOG: &str = "audit";

/// What the API server is told to log. A watch, a log and their like are logged when they have begun and when they have ended.
pub(crate) const POLICY: &str = r#"
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts:cofferdam-system"]}
- {level: None}
"#;

/// One request, at one stage; the names are those of Kubernetes' `audit.k8s.io/v1`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// `ResponseStarted` (of what goes on for long), `ResponseComplete` or `Panic`.
    pub stage: String,
    /// As in RBAC: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: String,
    /// Path and query.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// Who asked.
    pub user: User,
    /// What it was about; nothing for paths that are no resource.
    #[serde(default)]
    pub object_ref: Option<ObjectReference>,
    /// What was answered.
    #[serde(default)]
    pub response_status: Option<ResponseStatus>,
    /// When this stage was reached, by the API server's clock, to the microsecond.
    #[serde(default)]
    pub stage_timestamp: Option<Timestamp>,
}

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct User {
    /// As in `system:serviceaccount:NAMESPACE:NAME`.
    pub username: String,
    /// What the token says beside that, by its full key.
    #[serde(default)]
    pub extra: std::collections::BTreeMap<String, Vec<String>>,
}

/// What a request was about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// Empty for the core group.
    pub api_group: String,
    /// The plural name.
    pub resource: String,
    /// As in `status`; mostly empty.
    pub subresource: String,
    /// Empty for all namespaces, and for what is in none.
    pub namespace: String,
    /// Empty for lists and watches.
    pub name: String,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ResponseStatus {
    /// The HTTP status.
    #[serde(default)]
    pub code: u16,
}

impl Event {
    /// The pod whose token was used.
    #[must_use]
    pub fn pod(&self) -> Option<&str> {
        self.user.extra.get("authentication.kubernetes.io/pod-name")?.first().map(String::as_str)
    }

    /// The HTTP status of the answer.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.response_status.as_ref().map(|status| status.code)
    }
}

impl Cluster {
    /// Every request so far of a ServiceAccount in `cofferdam-system`, in the order of the answers.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::State`] when the log cannot be read.
    pub fn audit(&self) -> Result<Vec<Event>, Error> {
        let path = self.paths().node("node-1").log(LOG);
        match fs::read_to_string(&path) {
            Ok(text) => events(&text).map_err(|source| Error::State { path, source }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()), // nobody has asked yet
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }
}

/// The events of a log whose last line may not be whole yet.
fn events(text: &str) -> Result<Vec<Event>, serde_json::Error> {
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(serde_json::from_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_the_api_server_writes_it_and_a_line_that_is_not_whole_waits() {
        let line = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a",
            "stage":"ResponseComplete","requestURI":"/api/v1/namespaces/n/pods/p/status","verb":"patch",
            "user":{"username":"system:serviceaccount:cofferdam-system:agent","uid":"u",
            "extra":{"authentication.kubernetes.io/pod-name":["agent-x"]}},"sourceIPs":["10.88.0.1"],
            "objectRef":{"resource":"pods","namespace":"n","name":"p","apiVersion":"v1","subresource":"status"},
            "responseStatus":{"metadata":{},"code":200},"stageTimestamp":"2026-01-02T03:04:05.000006Z"}"#
            .replace('\n', "");
        let events = events(&format!("{line}\n{}", &line[..40])).unwrap();
        assert_eq!(events.len(), 1);
        assert_eq!((events[0].pod(), events[0].code()), (Some("agent-x"), Some(200)));
        assert_eq!(events[0].stage_timestamp, "2026-01-02T03:04:05.000006Z".parse().ok());
        let about = events[0].object_ref.as_ref().unwrap();
        assert_eq!(
            (about.api_group.as_str(), about.resource.as_str(), about.subresource.as_str()),
            ("", "pods", "status")
        );
    }

    #[test]
    fn a_request_for_no_resource_has_none() {
        let line = r#"{"stage":"ResponseComplete","requestURI":"/apis","verb":"get","user":{"username":"u"}}"#;
        let events = events(&format!("{line}\n")).unwrap();
        assert_eq!((&events[0].object_ref, events[0].code(), events[0].pod()), (&None, None, None));
    }
}
