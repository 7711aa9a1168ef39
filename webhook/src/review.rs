//! `AdmissionReview` of `admission.k8s.io/v1`: the request as far as we read it, and the response.
//!
//! The types are ours because the response has to say what the API documents: a patch is a base64 string beside its
//! `patchType`, and the uid is on every answer. The request is read leniently, since later versions of Kubernetes add
//! members; its objects stay the text that came until somebody asks for them.
//!
//! Source: Kubernetes, "Dynamic Admission Control", Webhook request and response.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::Patch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

/// The one version that is spoken.
pub const API_VERSION: &str = "admission.k8s.io/v1";
/// The one kind.
pub const KIND: &str = "AdmissionReview";

/// What the API server asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review<'a> {
    /// Names this request; goes back on the answer. Never empty.
    #[serde(default)]
    pub uid: String,
    /// What is created or changed.
    #[serde(default)]
    pub resource: Resource,
    /// What part of it, if not the whole.
    #[serde(default)]
    pub sub_resource: String,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    #[serde(default)]
    pub operation: String,
    /// Where. The namespace in the object may be missing and is not believed.
    #[serde(default)]
    pub namespace: String,
    /// The name, empty where the API server has yet to make one.
    #[serde(default)]
    pub name: String,
    /// Who asks.
    #[serde(default)]
    pub user_info: UserInfo,
    /// Nothing will be stored.
    #[serde(default)]
    pub dry_run: bool,
    /// What is to be stored. Missing for a deletion.
    #[serde(borrow, default)]
    pub object: Object<'a>,
    /// What was stored before. Missing for a creation.
    #[serde(borrow, default)]
    pub old_object: Object<'a>,
}

/// An object in a review, still the text that came.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Object<'a>(#[serde(borrow)] Option<&'a RawValue>);

/// A kind of object, by its path in the API.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Resource {
    /// Empty for the core group.
    #[serde(default)]
    pub group: String,
    /// For example `v1`.
    #[serde(default)]
    pub version: String,
    /// Plural, for example `pods`.
    #[serde(default)]
    pub resource: String,
}

/// The user as the API server authenticated them.
#[derive(Debug, Default, Deserialize)]
pub struct UserInfo {
    /// The user's name.
    #[serde(default)]
    pub username: String,
    /// The user's groups.
    #[serde(default)]
    pub groups: Vec<String>,
}

/// Why a body is no question that could be answered. The messages quote nothing of it.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Malformed {
    /// No JSON.
    #[error("the body is not JSON (line {line}, column {column})")]
    NotJson {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// JSON whose members are not of the types that a review has.
    #[error("the body is JSON but no AdmissionReview (line {line}, column {column})")]
    NotAReview {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// Another kind or another version.
    #[error("the body must be an AdmissionReview of admission.k8s.io/v1")]
    WrongKind,
    /// A review without its question.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// An answer could not say what it answers.
    #[error("the AdmissionReview's request has no uid")]
    NoUid,
}

/// An object that is valid JSON and yet cannot be read.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "it cannot be read: it is nested more than 127 levels deep, or holds a number or an escape that stands for nothing"
)]
pub struct Unreadable;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow)]
    request: Option<Review<'a>>,
}

impl<'a> Review<'a> {
    /// Reads a request body. Nesting costs nothing here: members that are not asked for, the pod among them, are
    /// skipped without recursion.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let envelope: Envelope<'a> = serde_json::from_slice(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            match error.classify() {
                Category::Data => Malformed::NotAReview { line, column },
                Category::Io | Category::Syntax | Category::Eof => Malformed::NotJson { line, column },
            }
        })?;
        if envelope.api_version != API_VERSION || envelope.kind != KIND {
            return Err(Malformed::WrongKind);
        }
        let review = envelope.request.ok_or(Malformed::NoRequest)?;
        if review.uid.is_empty() {
            return Err(Malformed::NoUid);
        }
        Ok(review)
    }
}

impl<'a> Object<'a> {
    /// Whether there is none.
    #[must_use]
    pub fn is_missing(self) -> bool {
        self.0.is_none()
    }

    /// The object as it came; empty where there is none.
    #[must_use]
    pub fn text(self) -> &'a [u8] {
        self.0.map_or(&[], |text| text.get().as_bytes())
    }

    /// The object as a tree; `null` where there is none.
    pub fn tree(self) -> Result<Value, Unreadable> {
        // serde_json's recursion limit stays on: the tree is walked, compared and dropped by recursion.
        self.0.map_or(Ok(Value::Null), |text| serde_json::from_str(text.get()).map_err(|_| Unreadable))
    }
}

/// The answer to a [`Review`].
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    uid: String,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(flatten)]
    patch: Option<EncodedPatch>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<&'static str, String>,
}

/// Why a request is not allowed, as `kubectl` shows it.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The HTTP status that the client gets.
    pub code: u16,
    /// The word that belongs to it, which `kubectl` puts in front: `Error from server (Forbidden): …`.
    pub reason: &'static str,
    /// What the client reads.
    pub message: String,
}

/// One value, so that neither member can be there without the other: the API server refuses that.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EncodedPatch {
    patch: String,
    patch_type: &'static str,
}

impl Answer {
    /// Allowed as it is.
    #[must_use]
    pub fn allow(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            allowed: true,
            status: None,
            patch: None,
            warnings: Vec::new(),
            audit_annotations: BTreeMap::new(),
        }
    }

    /// Not allowed.
    #[must_use]
    pub fn deny(uid: &str, status: Status) -> Self {
        Self { allowed: false, status: Some(status), ..Self::allow(uid) }
    }

    /// With a patch. Returns how many bytes it has as JSON.
    pub fn set_patch(&mut self, patch: &Patch) -> usize {
        let json = write(patch);
        self.patch = Some(EncodedPatch { patch: STANDARD.encode(&json), patch_type: "JSONPatch" });
        json.len()
    }

    /// With lines that the client shows to whoever made the request.
    pub fn set_warnings(&mut self, warnings: Vec<String>) {
        self.warnings = warnings;
    }

    /// With a line in the cluster's audit log; the API server puts the webhook's name in front of `key`.
    pub fn annotate(&mut self, key: &'static str, value: impl Into<String>) {
        self.audit_annotations.insert(key, value.into());
    }

    /// The body of the HTTP answer.
    #[must_use]
    pub fn to_body(&self) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Outgoing<'a> {
            api_version: &'static str,
            kind: &'static str,
            response: &'a Answer,
        }
        write(&Outgoing { api_version: API_VERSION, kind: KIND, response: self })
    }
}

fn write(value: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "only called for strings, switches, numbers, lists, and maps by string")]
    serde_json::to_vec(value).expect("an answer can be written")
}

#[cfg(test)]
mod tests;
