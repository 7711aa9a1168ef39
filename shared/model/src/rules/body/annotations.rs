//! What a pod's annotations ask to be delivered, and what is wrong with it. No message repeats any of it: a URL may hold
//! a signature.

use crate::{
    keys,
    names::is_object_name,
    pod::{Draft, Path},
    rules::Context,
};

/// A body to deliver.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) url: String,
    /// 64 hex digits in lower case.
    pub(super) sha256: String,
    /// The Secret that holds the token, for a body that has one.
    pub(super) token_secret: Option<String>,
}

/// Bytes of a URL.
const LONGEST_URL: usize = 2048;

/// Characters that a URL may hold besides letters and digits (RFC 3986). Others make parsers disagree about the host.
const URL_CHARACTERS: &[u8] = b"-._~:/?#[]@!$&'()*+,;=%";

/// The body that the annotations ask for, if any; or what is wrong with them, by field, and what to do.
pub(super) fn asked(pod: &mut Draft, context: &Context<'_>) -> Result<Option<Delivery>, Vec<(Path, String)>> {
    let [url_field, digest_field, secret_field] =
        [keys::BODY_URL, keys::BODY_SHA256, keys::BODY_TOKEN_SECRET].map(Path::annotation);
    let (digest, token_secret) = (pod.text(&digest_field), pod.text(&secret_field));
    let Some(url) = pod.text(&url_field) else {
        let message = format!("means nothing without {}; add that, or remove this", keys::BODY_URL);
        let alone = [(digest_field, digest), (secret_field, token_secret)].into_iter();
        let alone: Vec<_> =
            alone.filter(|(_, value)| value.is_some()).map(|(field, _)| (field, message.clone())).collect();
        return if alone.is_empty() { Ok(None) } else { Err(alone) };
    };
    if !context.policy.bodies().enabled {
        return Err(vec![(url_field, "asks for a body, and the policy delivers none; remove it".to_owned())]);
    }
    let mut problems = Vec::new();
    if let Err(message) = check_url(&url) {
        problems.push((url_field, message));
    }
    let digest = digest.filter(|digest| digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if digest.is_none() {
        let message = "must be the SHA-256 of the body, as 64 hex digits: what is fetched is checked against it";
        problems.push((digest_field, message.to_owned()));
    }
    if token_secret.as_deref().is_some_and(|name| !is_object_name(name)) {
        problems.push((secret_field, "must be the name of a Secret in the pod's namespace".to_owned()));
    }
    match digest {
        Some(sha256) if problems.is_empty() => {
            Ok(Some(Delivery { url, sha256: sha256.to_ascii_lowercase(), token_secret }))
        }
        _ => Err(problems),
    }
}

fn check_url(url: &str) -> Result<(), String> {
    let rest = ["https://", "http://"].into_iter().find_map(|scheme| url.strip_prefix(scheme));
    let authority = rest.map_or("", |rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    if authority.is_empty() {
        return Err("must be a URL that begins with https:// or http:// and a host".to_owned());
    }
    if url.len() > LONGEST_URL {
        return Err(format!("is longer than {LONGEST_URL} bytes; shorten it"));
    }
    if !url.bytes().all(|byte| byte.is_ascii_alphanumeric() || URL_CHARACTERS.contains(&byte)) {
        return Err("has a character that no URL has; percent-encode it".to_owned());
    }
    if authority.contains('@') {
        let message = format!(
            "holds a user or a password, which everybody who sees the pod could read; use {}",
            keys::BODY_TOKEN_SECRET
        );
        return Err(message);
    }
    Ok(())
}
