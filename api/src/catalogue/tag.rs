//! A tag, and what its name says: a version, what comes behind it, and which of two is newer.

use std::cmp::Ordering;

/// First parts behind a version that say it is not released.
const PRERELEASES: [&str; 10] =
    ["rc", "alpha", "beta", "pre", "preview", "next", "canary", "dev", "nightly", "snapshot"];

/// The fewest hex digits that are taken for a commit.
const SHORTEST_SHA: usize = 7;

/// The longest tag that there is (OCI distribution specification).
const LONGEST: usize = 128;

/// A tag of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// When something was last pushed by it (RFC 3339, UTC), where the registry says so.
    pub updated: Option<String>,
}

/// What a name says.
struct Version<'t> {
    numbers: Vec<u64>,
    /// What comes behind the numbers.
    rest: &'t str,
}

impl Tag {
    /// Whether this can name a tag at all: the name comes from a registry and goes into pods.
    pub(super) fn is_valid(&self) -> bool {
        let name = self.name.as_bytes();
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        name.len() <= LONGEST
            && name.first().is_some_and(is_word)
            && name.iter().all(|b| is_word(b) || b"-.".contains(b))
    }

    /// Whether this names one version: `MAJOR.MINOR.PATCH`, with or without a variant.
    pub(super) fn is_pinned(&self) -> bool {
        let version = Version::of(&self.name);
        version.numbers.len() == 3 && (version.rest.is_empty() || version.rest.starts_with('-'))
    }

    /// Whether this names a commit, or by convention something about a digest: a signature, an attestation.
    pub(super) fn is_sha(&self) -> bool {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_hexdigit).count();
        let is_commit = |text: &str| digits(text) == text.len() && text.len() >= SHORTEST_SHA;
        let name = self.name.to_ascii_lowercase();
        let of_digest = ["sha-", "sha256-", "sha512-"].iter().find_map(|prefix| name.strip_prefix(prefix));
        is_commit(&name) || of_digest.is_some_and(|rest| digits(rest) >= SHORTEST_SHA)
    }

    /// Whether this names what is not released.
    pub(super) fn is_prerelease(&self) -> bool {
        Version::of(&self.name).is_prerelease()
    }

    /// The newer one first: by when it was pushed, where the registry tells; then by version, and of one version the plain
    /// one first.
    pub(super) fn newest_first(&self, other: &Self) -> Ordering {
        // Fractions of a second are of any length, so the sign at the end must not be compared with a digit.
        let updated = |tag: &Self| tag.updated.as_ref().map(|time| time.trim_end_matches('Z').to_owned());
        let (version, others) = (Version::of(&self.name), Version::of(&other.name));
        updated(other)
            .cmp(&updated(self))
            .then_with(|| others.numbers.cmp(&version.numbers))
            .then_with(|| version.is_prerelease().cmp(&others.is_prerelease()))
            .then_with(|| version.rest.cmp(others.rest))
            .then_with(|| self.name.cmp(&other.name))
    }
}

impl<'t> Version<'t> {
    fn of(name: &'t str) -> Self {
        let is_digit = |c: char| c.is_ascii_digit();
        let mut rest = name.strip_prefix('v').filter(|rest| rest.starts_with(is_digit)).unwrap_or(name);
        let mut numbers = Vec::new();
        while rest.starts_with(is_digit) {
            let end = rest.find(|c: char| !is_digit(c)).unwrap_or(rest.len());
            // Only digits: what does not fit is more than any version is.
            numbers.push(rest[..end].parse().unwrap_or(u64::MAX));
            rest = &rest[end..];
            match rest.strip_prefix('.').filter(|next| next.starts_with(is_digit)) {
                Some(next) => rest = next,
                None => break,
            }
        }
        Self { numbers, rest }
    }

    fn is_prerelease(&self) -> bool {
        let rest = self.rest.trim_start_matches(['-', '.', '_']);
        let first = rest.split(['-', '.', '_']).next().unwrap_or_default();
        let word = first.trim_end_matches(|c: char| c.is_ascii_digit()).to_ascii_lowercase();
        PRERELEASES.contains(&word.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(name: &str) -> Tag {
        Tag { name: name.to_owned(), updated: None }
    }

    #[test]
    fn a_name_says_whether_it_is_pinned_a_commit_or_unreleased() {
        for (name, pinned, sha, prerelease) in [
            ("1.2.3", true, false, false),
            ("v1.2.3", true, false, false),
            ("1.2.3-slim", true, false, false),
            ("1.2.3-rust-1.80", true, false, false),
            ("1.2.3-20240101", true, false, false),
            ("1.2.3-rc.1", true, false, true),
            ("1.2.3-RC1", true, false, true),
            ("1.2.3-beta-slim", true, false, true),
            ("1.2.3-dev", true, false, true),
            ("1.2.3-devel", true, false, false),
            ("1.2.3-slim-rc1", true, false, false),
            ("1.2.3rc1", false, false, true),
            ("1.2.3.4", false, false, false),
            ("1.2", false, false, false),
            ("1.2-slim", false, false, false),
            ("1", false, false, false),
            ("latest", false, false, false),
            ("nightly", false, false, true),
            ("canary-slim", false, false, true),
            ("next", false, false, true),
            ("next-js", false, false, true),
            ("v", false, false, false),
            ("sha-0123456", false, true, false),
            ("sha-012345", false, false, false),
            ("sha-0123456-slim", false, true, false),
            ("sha256-0123456789abcdef.sig", false, true, false),
            ("0123456", false, true, false),
            ("deadBEEF", false, true, false),
            ("20240101", false, true, false),
            ("012345", false, false, false),
            ("0123456x", false, false, false),
            ("1.2.3-0123456", true, false, false),
        ] {
            let tag = tag(name);
            assert_eq!((tag.is_pinned(), tag.is_sha(), tag.is_prerelease()), (pinned, sha, prerelease), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_a_tag_is_none() {
        for name in ["a", "_a", "1.2.3-x_y", &"a".repeat(128)] {
            assert!(tag(name).is_valid(), "{name}");
        }
        for name in ["", "-a", ".a", "a b", "a@b", "a:b", "a/b", "é", "a\n", &"a".repeat(129)] {
            assert!(!tag(name).is_valid(), "{name}");
        }
    }

    #[test]
    fn versions_are_ordered_by_number_and_the_plain_one_comes_first() {
        let ordered = [
            "99999999999999999999.0.0",
            "10.0.0",
            "v9.10.0",
            "9.9.0",
            "9.9.0-alpine",
            "9.9.0-slim",
            "9.9.0-rc.1",
            "9.9",
            "9",
            "edge",
            "latest",
        ];
        let mut tags: Vec<Tag> = ordered.iter().rev().map(|name| tag(name)).collect();
        tags.sort_by(Tag::newest_first);
        assert_eq!(tags.iter().map(|tag| tag.name.as_str()).collect::<Vec<_>>(), ordered);
    }

    #[test]
    fn what_was_pushed_last_comes_first_where_that_is_told() {
        let ordered = [
            ("1.0.0", Some("2024-03-01T00:00:00.5Z")),
            ("2.0.0", Some("2024-03-01T00:00:00Z")),
            ("3.0.0", Some("2024-02-01T00:00:00.123456Z")),
            ("9.0.0", None),
            ("8.0.0", None),
        ];
        let of =
            |(name, time): &(&str, Option<&str>)| Tag { name: (*name).to_owned(), updated: time.map(str::to_owned) };
        let mut tags: Vec<Tag> = ordered.iter().rev().map(of).collect();
        tags.sort_by(Tag::newest_first);
        assert_eq!(tags, ordered.iter().map(of).collect::<Vec<_>>());
    }
}
