//! The Gateway that every add-on which serves the Gateway API brings: `sessions` in the namespace `gateway`.

use std::fs;
use std::path::PathBuf;

use super::{AddonError, Ready};
use crate::cache::{self, CacheError, Key};
use crate::error::Error;
use crate::pki::Authority;

/// What the listener `https` has a certificate for.
pub const HTTPS_HOSTS: &str = "*.sessions.example.test";

/// When its data plane serves what it is told.
pub(super) const PROGRAMMED: Ready =
    Ready::Condition { namespace: "gateway", object: "gateway/sessions", condition: "Programmed" };

/// The authority that signed the certificate of the listener `https`, as PEM. The Secret `gateway/sessions-tls` has it
/// too, as `ca.crt`.
///
/// # Errors
/// [`Error::Part`] when the cache cannot be used.
pub fn authority() -> Result<String, Error> {
    pem("ca.crt").map_err(Error::part)
}

/// A file of the listener's certificate.
fn pem(name: &str) -> Result<String, AddonError> {
    let file = certificate()?.join(name);
    Ok(fs::read_to_string(&file).map_err(CacheError::io("read", &file))?)
}

/// The folder of the listener's certificate: the same for every cluster, so that a second installation changes nothing.
fn certificate() -> Result<PathBuf, AddonError> {
    cache::entry("certificates", &Key::new().text(HTTPS_HOSTS).finish(), |out| {
        Ok(Authority::create(out, "ca")?.leaf(out, "tls", HTTPS_HOSTS, None, &[HTTPS_HOSTS])?)
    })
}

/// The namespace and what the Gateway needs in it.
pub(super) fn namespace() -> Result<String, AddonError> {
    let secret = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": "sessions-tls", "namespace": "gateway"},
        "stringData": {"tls.crt": pem("tls.crt")?, "tls.key": pem("tls.key")?, "ca.crt": pem("ca.crt")?},
    });
    Ok(format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: gateway}}}}\n---\n{secret}"))
}

/// The Gateway, of a class.
pub(super) fn manifest(class: &str) -> String {
    include_str!("../../addons/gateway.yaml").replace("{class}", class)
}
