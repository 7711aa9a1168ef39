//! What is kept of a session beside its pod: a Secret of its own.
//!
//! The values of its variables and its body's token are what it holds, so that they are in no pod. What a pod cannot tell, or
//! not for long enough, is an annotation: who only wants to know that need not be sent the rest.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_model::keys;
use cofferdam_model::session::SessionId;
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::token::TokenDigest;
use crate::wire::{self, Environment, Io, Mode, Port};

/// The key of the body's token: the fetching program's mount names it.
const TOKEN: &str = "token";

/// The format's version.
const VERSION: u8 = 1;

/// The most variables: each is 200 bytes of the pod besides, with what the API server notes about it.
const MOST_VARIABLES: usize = 1000;

/// The longest variable, with its name: Linux starts no program with one of 128 KiB, its `=` and its end included.
const LONGEST_VARIABLE: usize = 128 * 1024 - 2;

/// All their names: a pod has them, and has them once more in what the API server notes of who wrote it, and etcd takes no
/// object of more than 1.5 MiB.
const LARGEST_NAMES: usize = 256 * 1024;

/// All of them, with their names: a Secret holds 1 MiB, and the token has to fit as well.
const LARGEST_ENVIRONMENT: usize = 1023 * 1024;

/// What a pod does not tell of its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// When it was asked for.
    pub created_at: Timestamp,
    /// How long it lives.
    pub mode: Mode,
    /// Whether events of its program's inspector are passed on.
    pub inspect: bool,
    /// The image that the client chose; none where the operator did, and clients do not see its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The digest of what opens its streams; none where it was made while nobody was asked who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_token: Option<TokenDigest>,
    /// Its programs, at least one.
    pub apps: Vec<App>,
}

/// One program of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// Its name.
    pub name: String,
    /// How its output is told apart.
    pub io: Io,
    /// What it serves, as the client said it.
    pub ports: Vec<Port>,
}

/// What must not be seen: values of variables, and the body's token. Nothing of it is in its `Debug`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Confidential {
    variables: Vec<(String, String)>,
    token: Option<String>,
}

/// Why variables cannot be given to a program. A variable is named by its place, from 1: its name is as much the client's as
/// its value, and may be the secret by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// The name is empty, or has a character that none may have.
    #[error("variable {0} of env has no name that can be set; use printable ASCII characters other than `=`")]
    Name(usize),
    /// The value has a character that none may have.
    #[error("variable {0} of env has a NUL character in its value; leave it out")]
    Nul(usize),
    /// It alone is too long.
    #[error("variable {0} of env is longer than 128 KiB with its name; put it into a file of the bundle")]
    TooLong(usize),
    /// All names together are too large.
    #[error("env has names of more than {} KiB together; choose shorter ones", LARGEST_NAMES / 1024)]
    NamesTooLarge,
    /// All together are too large.
    #[error("env is larger than {} KiB with its names; put large values into files of the bundle", LARGEST_ENVIRONMENT / 1024)]
    TooLarge,
    /// There are too many.
    #[error("env has more than {MOST_VARIABLES} variables; put some into a file of the bundle")]
    TooMany,
}

/// As it is written.
#[derive(Serialize, Deserialize)]
struct Written<R> {
    v: u8,
    #[serde(flatten)]
    record: R,
}

impl Confidential {
    /// What a program gets, in this order, and the token of its body. What a cluster would refuse only after the session
    /// was promised is refused here (defect D17); names are what Kubernetes 1.34 and later accept.
    pub fn new(environment: Environment, token: Option<String>) -> Result<Self, EnvironmentError> {
        let variables = environment.0;
        if variables.len() > MOST_VARIABLES {
            return Err(EnvironmentError::TooMany);
        }
        for (place, (name, value)) in (1..).zip(&variables) {
            if name.is_empty() || !name.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
                return Err(EnvironmentError::Name(place));
            }
            if value.contains('\0') {
                return Err(EnvironmentError::Nul(place));
            }
            if name.len() + value.len() > LONGEST_VARIABLE {
                return Err(EnvironmentError::TooLong(place));
            }
        }
        if variables.iter().map(|(name, _)| name.len()).sum::<usize>() > LARGEST_NAMES {
            return Err(EnvironmentError::NamesTooLarge);
        }
        if variables.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > LARGEST_ENVIRONMENT {
            return Err(EnvironmentError::TooLarge);
        }
        Ok(Self { variables, token })
    }

    /// The names of the variables, in order: the value of each is in the Secret under [`variable_key`] of its place.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name.as_str())
    }

    /// The same, with the token of a body that was kept meanwhile.
    #[must_use]
    pub fn with_token(self, token: String) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Whether there is a token.
    #[must_use]
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }
}

impl fmt::Debug for Confidential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Confidential")
    }
}

impl Record {
    /// Reads it from the session's Secret, of which the metadata is enough; nothing where it is of another format.
    #[must_use]
    pub fn read(secret: &Value) -> Option<Self> {
        let text = secret["metadata"]["annotations"][keys::RECORD].as_str()?;
        let written: Written<Self> = serde_json::from_str(text).ok()?;
        (written.v == VERSION && !written.record.apps.is_empty()).then_some(written.record)
    }

    /// The session's Secret, as it is created. It is not immutable: how a session ended is noted on it.
    #[must_use]
    pub fn secret(&self, id: &SessionId, namespace: &str, confidential: &Confidential) -> Value {
        let values = confidential.variables.iter().enumerate().map(|(place, (_, value))| (variable_key(place), value));
        let token = confidential.token.iter().map(|token| (TOKEN.to_owned(), token));
        let data: Map<String, Value> =
            values.chain(token).map(|(key, value)| (key, STANDARD.encode(value).into())).collect();
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": secret_name(id),
                "namespace": namespace,
                "labels": { (keys::SESSION): id.as_str(), (keys::MANAGED_BY): keys::API },
                "annotations": { (keys::RECORD): json!(Written { v: VERSION, record: self }).to_string() },
            },
            "type": "Opaque",
            "data": data,
        })
    }

    /// What clients are told of it, in this state. `exited_at` is when it ended; none while it has not.
    #[must_use]
    pub fn session(&self, id: &SessionId, status: wire::Status, exited_at: Option<Timestamp>) -> wire::Session {
        let app = |App { name, io, ports }: &App| wire::SessionApp {
            name: name.clone(),
            io: *io,
            generation: 1,
            ports: ports.clone(),
        };
        wire::Session {
            session_id: id.to_string(),
            status,
            created_at: shown(self.created_at),
            exited_at: exited_at.map(shown),
            mode: self.mode,
            apps: self.apps.iter().map(app).collect(),
        }
    }
}

/// The name of a session's Secret.
#[must_use]
pub fn secret_name(id: &SessionId) -> String {
    format!("s-{id}")
}

/// The key of the value of the variable at this place, from 0: the name itself may be no key of a Secret, and tells much.
#[must_use]
pub fn variable_key(place: usize) -> String {
    format!("env-{place}")
}

/// As clients read a moment: RFC 3339, UTC, milliseconds.
#[must_use]
pub fn shown(at: Timestamp) -> String {
    format!("{at:.3}")
}

#[cfg(test)]
mod tests;
