//! Whether sessions can be had.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;

/// The body of `POST /v1/probe`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Probe {
    /// What the client's form holds.
    pub config: Config,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Probed {
    /// They can.
    Ready,
    /// Not now.
    Unavailable {
        /// Why not, in one sentence.
        message: String,
    },
}
