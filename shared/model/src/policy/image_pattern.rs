//! Patterns of image references, and the same patterns as regular expressions for admission policies.
//!
//! A pattern is laid against a reference in full, `docker.io/library/python:3.12`. `*` stands for text without `/`, `:`
//! and `@`, and `**` for any text. A pattern whose last part has neither `:` nor `@` means every tag and digest; one
//! with a tag means that tag without a digest, because a runtime that is given both goes by the digest alone.

use crate::{glob::escaped, image::has_version};

/// A piece of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// This text.
    Text(String),
    /// `*`
    Part,
    /// `**`
    Any,
    /// Nothing, or a tag, a digest or both.
    Version,
}

/// Whether the pattern means this reference, which has to be in full.
#[must_use]
pub(crate) fn matches(pattern: &str, reference: &str) -> bool {
    let bytes = reference.as_bytes();
    // The places up to which the pieces so far can have read.
    let mut reached = vec![false; bytes.len() + 1];
    reached[0] = true;
    for piece in pieces(pattern) {
        reached = after(&piece, reference, &reached);
    }
    reached.last() == Some(&true)
}

/// Where reading can stand after the piece, given where it could before.
fn after(piece: &Piece, reference: &str, before: &[bool]) -> Vec<bool> {
    let mut after = vec![false; before.len()];
    match piece {
        Piece::Text(text) => {
            for start in (0..before.len()).filter(|&start| before[start]) {
                if reference.as_bytes()[start..].starts_with(text.as_bytes()) {
                    after[start + text.len()] = true;
                }
            }
        }
        Piece::Part | Piece::Any => {
            let mut is_reading = false;
            for (place, stands) in after.iter_mut().enumerate() {
                let read = place.checked_sub(1).map(|last| reference.as_bytes()[last]);
                let stops = *piece == Piece::Part && read.is_some_and(|byte| b"/:@".contains(&byte));
                is_reading = (is_reading && !stops) || before[place];
                *stands = is_reading;
            }
        }
        Piece::Version => {
            for start in (0..before.len()).filter(|&start| before[start]) {
                after[start] = true;
                let version = &reference.as_bytes()[start..];
                if version.len() > 1 && matches!(version[0], b':' | b'@') && !version.contains(&b'/') {
                    after[before.len() - 1] = true;
                }
            }
        }
    }
    after
}

/// Whether the pattern can mean an image that is named by its digest.
pub(super) fn may_mean_a_digest(pattern: &str) -> bool {
    pieces(pattern).iter().any(|piece| match piece {
        Piece::Text(text) => text.contains('@'),
        Piece::Part => false,
        Piece::Any | Piece::Version => true,
    })
}

/// The pattern as an RE2 regular expression, to be anchored and read with `.` standing for any character.
pub(super) fn regex(pattern: &str) -> String {
    let mut regex = String::new();
    for piece in pieces(pattern) {
        match piece {
            Piece::Text(text) => regex.push_str(&escaped(&text)),
            Piece::Part => regex.push_str("[^/:@]*"),
            Piece::Any => regex.push_str(".*"),
            Piece::Version => regex.push_str("(?:[:@][^/]+)?"),
        }
    }
    regex
}

fn pieces(pattern: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(star) = rest.find('*') {
        if star > 0 {
            pieces.push(Piece::Text(rest[..star].to_owned()));
        }
        let after = rest[star..].trim_start_matches('*');
        pieces.push(if rest[star..].starts_with("**") { Piece::Any } else { Piece::Part });
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    if !has_version(pattern) {
        pieces.push(Piece::Version);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    const DIGEST: &str = "@sha256:0123456789abcdef";

    #[test]
    fn stars_stand_for_text_within_a_part_or_for_any() {
        for (pattern, reference, is_meant) in [
            ("**", "docker.io/library/python:3.12", true),
            ("docker.io/library/python", "docker.io/library/python:3.12", true),
            ("docker.io/library/python", "docker.io/library/python", true),
            ("docker.io/library/python", "docker.io/library/python3", false),
            ("docker.io/library/python", "docker.io/library/python/evil:3", false),
            ("docker.io/library/*", "docker.io/library/python:3.12", true),
            ("docker.io/library/*", "docker.io/other/python:3.12", false),
            ("docker.io/*", "docker.io/library/python", false),
            ("docker.io/**", "docker.io/library/python:3.12", true),
            ("docker.io/**", "docker.io.evil.example/library/python", false),
            ("docker.io/library/python:3.*", "docker.io/library/python:3.12", true),
            ("docker.io/library/python:3.*", "docker.io/library/python:4.12", false),
            ("registry.example.com:5000/a", "registry.example.com:5000/a:1", true),
            ("registry.example.com:5000/a", "registryXexample.com:5000/a:1", false),
            ("**@sha256:*", "docker.io/library/python@sha256:0123", true),
            ("**@sha256:*", "docker.io/library/python:3.12", false),
            ("", "docker.io/library/python", false),
        ] {
            assert_eq!(matches(pattern, reference), is_meant, "{pattern} {reference}");
        }
    }

    #[test]
    fn a_tag_says_nothing_of_an_image_that_is_named_by_digest() {
        let pinned = format!("docker.io/library/python:3.12{DIGEST}");
        assert!(!matches("docker.io/library/python:3.12", &pinned));
        assert!(!matches("docker.io/library/python:3.*", &pinned));
        assert!(matches("docker.io/library/python", &pinned));
        assert!(matches("docker.io/library/python:3.12@*:*", &pinned));
    }

    proptest! {
        #[test]
        fn the_regular_expression_means_the_same(
            pattern in "[ab.+(*]{0,2}(/|\\*\\*)?[ab*:@]{0,4}",
            reference in "[ab.+(]{0,2}/?[ab:@/\n]{0,5}",
        ) {
            let regex = Regex::new(&format!("^(?s:{})$", regex(&pattern))).unwrap();
            prop_assert_eq!(matches(&pattern, &reference), regex.is_match(&reference), "{}", regex);
        }
    }
}
