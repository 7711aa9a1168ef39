//! How bodies get into pods.

use crate::quantity::Quantity;

/// Where the init container that fetches has its credentials.
pub(crate) const CREDENTIALS_DIRECTORY: &str = "/run/cofferdam";

/// What the init container `cofferdam-fetch` is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bodies {
    /// Whether bodies are delivered at all. A pod that names one is refused otherwise.
    pub enabled: bool,
    /// The image that holds the program `cofferdam-fetch`.
    pub image: String,
    /// The directory that a body is unpacked into.
    pub path: String,
    /// `sizeLimit` of the volume that is mounted there, and the most bytes that a body may unpack to.
    pub size: Quantity,
    /// The most files, directories and links that a body may unpack to.
    pub max_entries: u64,
    /// How long fetching may take.
    pub deadline_seconds: i64,
    /// The audience of the token by which a pod proves who it is.
    pub audience: String,
}

impl Default for Bodies {
    fn default() -> Self {
        Self {
            enabled: true,
            image: "cofferdam:dev".to_owned(),
            path: "/app".to_owned(),
            size: Quantity::constant("256Mi"),
            max_entries: 20_000,
            deadline_seconds: 90,
            audience: "cofferdam-bodies".to_owned(),
        }
    }
}
