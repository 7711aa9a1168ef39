//! The host name of a session's port.

use sha2::{Digest, Sha256};

use crate::{
    policy::Routing,
    session::{ALPHABET, SessionId},
};

/// Characters of a namespace's hash: 25 bits, so that namespaces of one cluster rarely meet, and the Service that is the
/// claim is in one namespace anyway.
const HASH: usize = 5;

/// The host of a port: one label below the base domain, so that one wildcard record and certificate cover all
/// (case B127). In the namespaces that are `home` it is `<port>-<id>`, elsewhere `<port>-<id>--<hash of the namespace>`, so
/// that no two namespaces want the same. None where routing is off.
#[must_use]
pub fn host(port: u16, id: &SessionId, namespace: &str, routing: &Routing) -> Option<String> {
    let domain = routing.base_domain.as_ref().filter(|_| routing.is_on())?;
    if routing.home.iter().any(|home| home == namespace) {
        return Some(format!("{port}-{id}.{domain}"));
    }
    let digest = Sha256::digest(namespace.as_bytes());
    let hash: String = digest.iter().take(HASH).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    Some(format!("{port}-{id}--{hash}.{domain}"))
}
