//! Tokens: what lets a session's pod fetch its body, a browser read its streams, a caller call. Whoever serves keeps the
//! digest alone.

use std::fmt;

use rustls::crypto::ring::default_provider;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq};

/// 192 random bits, as 48 hexadecimal digits.
#[derive(Clone)]
pub struct Token(String);

/// The system gives no random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bits")]
pub struct NoRandomness;

/// The SHA-256 of a token. Written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenDigest([u8; 32]);

impl Token {
    /// A new one.
    pub fn random() -> Result<Self, NoRandomness> {
        let mut bytes = [0; 24];
        default_provider().secure_random.fill(&mut bytes).map_err(|_| NoRandomness)?;
        Ok(Self(hex(&bytes)))
    }

    /// The token itself, for who is to have it.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    #[must_use]
    pub fn digest(&self) -> TokenDigest {
        TokenDigest::of(&self.0)
    }
}

impl TokenDigest {
    /// That of a text that may be a token.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Reads 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// As 64 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Whether it is the digest of `presented`. How long that takes says nothing about either.
    #[must_use]
    pub fn is_of(&self, presented: &str) -> bool {
        self.ct_eq(&Self::of(presented)).into()
    }
}

/// Bytes as hexadecimal digits in lower case.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;

    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// How long it takes says nothing about either.
impl ConstantTimeEq for TokenDigest {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl TryFrom<String> for TokenDigest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("no 64 hexadecimal digits")
    }
}

impl From<TokenDigest> for String {
    fn from(digest: TokenDigest) -> Self {
        digest.hex()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenDigest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_192_bits_and_no_two_are_alike() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert_eq!(one.secret().len(), 48);
        assert!(one.secret().bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(one.secret(), other.secret());
    }

    #[test]
    fn a_digest_knows_its_token_and_no_other() {
        let token = Token::random().unwrap();
        let digest = TokenDigest::parse(&token.digest().hex()).unwrap();
        assert!(digest.is_of(token.secret()));
        for wrong in ["", &token.secret()[1..], &digest.hex()] {
            assert!(!digest.is_of(wrong), "{wrong}");
        }
        for broken in ["", "00", &"0".repeat(63), &"g".repeat(64), &"é".repeat(32)] {
            assert!(TokenDigest::parse(broken).is_none(), "{broken}");
        }
    }

    #[test]
    fn d10_nothing_shows_a_token() {
        let token = Token::random().unwrap();
        assert_eq!(format!("{token:?} {:?}", token.digest()), "Token TokenDigest");
    }
}
