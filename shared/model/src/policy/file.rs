//! The policy file as it is written: YAML with a line for every value that can be wrong.
//!
//! These types are the format: reading, writing and the JSON Schema are derived from them, and the comments on their
//! fields are what the schema says. What a file means is [`super::check`]'s.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PolicyError;

pub(super) mod profile;
pub(super) mod scheduling;
mod unreadable;
pub(super) mod value;

use profile::{EachRequest, ProfileFile};
use value::{Amount, Given};

/// A policy: what sessions may at most be, whether they get an address, and how bodies get into them.
#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Policy")]
pub(super) struct PolicyFile {
    /// Profiles by name. A pod names its profile by the label cofferdam.dev/profile; `default`, which has to be there,
    /// holds where it names none.
    pub(super) profiles: Given<BTreeMap<Given<String>, Option<ProfileFile>>>,
    /// Whether sessions get an address.
    pub(super) routing: Option<RoutingFile>,
    /// How bodies get into pods.
    pub(super) bodies: Option<BodiesFile>,
    /// User names that may set the labels and annotations that are otherwise written by Cofferdam alone.
    pub(super) trusted: Option<Vec<Given<String>>>,
}

/// Whether sessions get an address.
#[derive(Default, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "Routing")]
pub(super) struct RoutingFile {
    /// The domain below which each session has its hosts, such as sessions.example.com. Without one there are no
    /// addresses.
    pub(super) base_domain: Option<Given<String>>,
    /// Which kind of object makes an address.
    pub(super) mode: Option<RoutingModeFile>,
}

/// Which kind of object makes an address.
#[derive(Clone, Copy, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RoutingMode")]
pub(super) enum RoutingModeFile {
    /// Whichever is configured, then whichever is installed.
    Auto,
    /// Gateway API's HTTPRoute.
    Gateway,
    /// Ingress.
    Ingress,
    /// None: sessions have no address.
    None,
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
