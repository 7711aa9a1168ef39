//! The NetworkPolicy of sessions, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::value::Given;

/// Whom sessions reach, and who reaches them: the NetworkPolicy cofferdam-sessions of each namespace of sessions.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Network")]
pub(in crate::policy) struct NetworkFile {
    /// Who keeps the NetworkPolicy.
    pub(in crate::policy) mode: Option<NetworkModeFile>,
    /// Namespaces in which the pods of the routing layer run that carry requests to sessions.
    pub(in crate::policy) data_plane_namespaces: Option<Vec<Given<String>>>,
    /// CIDRs that sessions do not reach. They reach the rest of the internet.
    pub(in crate::policy) blocked: Option<Vec<Given<String>>>,
}

/// Who keeps the NetworkPolicy.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "NetworkMode")]
pub(in crate::policy) enum NetworkModeFile {
    /// The agents: nothing of a namespace is published before it is there.
    Managed,
    /// Whoever installs Cofferdam.
    Manual,
}
