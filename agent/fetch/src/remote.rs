//! The other side: where it is, how it is reached, and what it is shown and asked for.

use std::fs;
use std::path::{Path, PathBuf};

use http::HeaderValue;
use http::header::AUTHORIZATION;
use http::request::Builder;
use tokio_rustls::TlsConnector;

use self::address::Address;
use crate::failure::Failure;

pub(crate) mod acknowledge;
pub(crate) mod address;
mod answer;
pub(crate) mod connect;
pub(crate) mod deadline;
pub(crate) mod download;
mod resume;

/// The header that holds the proof of who the pod is.
const IDENTITY: &str = "x-cofferdam-identity";

/// Where the body is, and what opens it.
pub(crate) struct Remote {
    pub(crate) address: Address,
    pub(crate) tls: TlsConnector,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) identity_file: Option<PathBuf>,
}

impl Remote {
    /// Adds the tokens to a request to the URL's own origin. They are read for every one, since a kubelet renews them.
    fn authorize(&self, mut request: Builder) -> Result<Builder, Failure> {
        if let Some(file) = &self.token_file {
            request = request.header(AUTHORIZATION, header("Bearer ", file, "--token-file")?);
        }
        if let Some(file) = &self.identity_file {
            request = request.header(IDENTITY, header("", file, "--identity-file")?);
        }
        Ok(request)
    }
}

fn header(prefix: &str, file: &Path, flag: &str) -> Result<HeaderValue, Failure> {
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::Usage(format!("cannot read the file of {flag}: {}", error.kind())))?;
    let token = text.trim();
    let mut value = HeaderValue::from_str(&format!("{prefix}{token}"))
        .ok()
        .filter(|_| !token.is_empty())
        .ok_or_else(|| Failure::Usage(format!("the file of {flag} holds no token")))?;
    value.set_sensitive(true);
    Ok(value)
}
