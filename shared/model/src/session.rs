//! The id that names a session in labels, object names and host names.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::names::is_dns_label;

/// Letters of a derived id: RFC 4648 base32 in lower case, so no two look alike in a host name.
pub(crate) const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Length of a derived id; 60 bits, so ids of one cluster do not meet by chance.
const DERIVED_LENGTH: usize = 12;

/// Longest id. `s-<id>-<port>` and `<port>-<id>--<hhhhh>` must fit the 63 characters of a DNS label.
const MAX_LENGTH: usize = 50;

/// A lower-case DNS label of at most 50 characters without `--`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(String);

/// Why a text is no session id. The messages say what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionIdError {
    /// Nothing there; as a label value this asks for a derived id.
    #[error("is empty; write an id, or leave it to be derived")]
    Empty,
    /// More than 50 characters.
    #[error("is longer than {MAX_LENGTH} characters; shorten it")]
    TooLong,
    /// A character outside `a-z`, `0-9` and `-`, or `-` at an end.
    #[error("is no lower-case DNS label; use a-z, 0-9 and single `-` between them")]
    NotALabel,
    /// `--` separates the id from the namespace's hash in host names.
    #[error("contains `--`, which separates parts of a host name; use a single `-`")]
    DoubleDash,
}

impl SessionId {
    /// Reads an id that somebody chose.
    pub fn parse(text: &str) -> Result<Self, SessionIdError> {
        if text.is_empty() {
            return Err(SessionIdError::Empty);
        }
        if text.len() > MAX_LENGTH {
            return Err(SessionIdError::TooLong);
        }
        if !is_dns_label(text, MAX_LENGTH) {
            return Err(SessionIdError::NotALabel);
        }
        if text.contains("--") {
            return Err(SessionIdError::DoubleDash);
        }
        Ok(Self(text.to_owned()))
    }

    /// Derives the id of a pod that brings none from the uid of its admission request, so that every answer to one
    /// request names the same session (the pod itself has no uid yet, and often no name).
    #[must_use]
    pub fn derive(request_uid: &str) -> Self {
        let digest = Sha256::digest(request_uid.as_bytes());
        let id = digest.iter().take(DERIVED_LENGTH).map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
        Self(id)
    }

    /// The id as it stands in labels and names.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_short_lower_case_dns_label_without_double_dash() {
        let fifty = "a".repeat(50);
        for good in ["a", "7", "abc-1", "0-0", fifty.as_str()] {
            assert_eq!(SessionId::parse(good).map(|id| id.to_string()), Ok(good.to_owned()));
        }
        let long = "a".repeat(51);
        for (bad, why) in [
            ("", SessionIdError::Empty),
            (long.as_str(), SessionIdError::TooLong),
            ("-a", SessionIdError::NotALabel),
            ("a-", SessionIdError::NotALabel),
            ("A", SessionIdError::NotALabel),
            ("a.b", SessionIdError::NotALabel),
            ("a_b", SessionIdError::NotALabel),
            ("ü", SessionIdError::NotALabel),
            ("a--b", SessionIdError::DoubleDash),
        ] {
            assert_eq!(SessionId::parse(bad), Err(why), "{bad:?}");
        }
    }

    #[test]
    fn a_derived_id_is_twelve_base32_characters_and_the_same_each_time() {
        let id = SessionId::derive("705ab4f5-6393-11e8-b7cc-42010a800002");
        // The same from release to release, too: two replicas may answer one request.
        assert_eq!(id.as_str(), "yy7m2kj33zyx");
        assert_eq!(id, SessionId::derive("705ab4f5-6393-11e8-b7cc-42010a800002"));
        assert_ne!(id, SessionId::derive("705ab4f5-6393-11e8-b7cc-42010a800003"));
        assert_eq!(id.as_str().len(), 12);
        assert!(id.as_str().bytes().all(|b| ALPHABET.contains(&b)));
        assert_eq!(SessionId::parse(id.as_str()), Ok(id));
    }
}
