//! The policy file as it is written: YAML with a line for every value that can be wrong.
//!
//! These types are the format: reading, writing and the JSON Schema are derived from them, and the comments on their
//! fields are what the schema says. What a file means is [`super::check`]'s.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PolicyError;

pub(super) mod network;
pub(super) mod profile;
pub(super) mod routing;
pub(super) mod scheduling;
mod unreadable;
pub(super) mod value;

use network::NetworkFile;
use profile::{EachRequest, ProfileFile};
use routing::RoutingFile;
use value::{Amount, Given};

/// A policy: what sessions may at most be, whether they get an address, and how bodies get into them.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Policy")]
pub(super) struct PolicyFile {
    /// Profiles by name. A pod names its profile by the label cofferdam.dev/profile; `default`, which has to be there,
    /// holds where it names none.
    pub(super) profiles: Given<BTreeMap<Given<String>, Option<ProfileFile>>>,
    /// Whether sessions get an address, and where it is.
    pub(super) routing: Option<RoutingFile>,
    /// Whom sessions reach, and who reaches them.
    pub(super) network: Option<NetworkFile>,
    /// How many seconds a pod that has finished is kept, if no controller owns it. It may ask for more by the
    /// annotation cofferdam.dev/finished-grace-seconds.
    #[schemars(range(min = 0, max = 86400))]
    pub(super) finished_grace_seconds: Option<Given<i64>>,
    /// How bodies get into pods.
    pub(super) bodies: Option<BodiesFile>,
    /// User names that may set the labels and annotations that are otherwise written by Cofferdam alone.
    pub(super) trusted: Option<Vec<Given<String>>>,
}

/// How bodies get into pods.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Bodies")]
pub(super) struct BodiesFile {
    /// Whether bodies are delivered. A pod that names one is refused otherwise.
    pub(super) enabled: Option<bool>,
    /// The directory that a body is unpacked into.
    pub(super) path: Option<Given<String>>,
    /// `sizeLimit` of the volume that is mounted there, and the most bytes that a body may unpack to.
    pub(super) size: Option<Given<Amount>>,
    /// The most files, directories and links that a body may unpack to.
    #[schemars(range(min = 1))]
    pub(super) max_entries: Option<Given<u64>>,
    /// How long fetching may take.
    #[schemars(range(min = 1, max = 2_147_483_647))]
    pub(super) deadline_seconds: Option<Given<i64>>,
    /// The audience of the service account token by which a pod proves who it is.
    pub(super) audience: Option<Given<String>>,
}

/// Reads a file. `file` is what it is called in messages.
pub(super) fn read(file: &str, text: &str) -> Result<PolicyFile, PolicyError> {
    serde_saphyr::from_str(text).map_err(|error| unreadable::unreadable(file, text, &error))
}
