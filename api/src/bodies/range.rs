//! Which part of a body is asked for (RFC 9110, range requests).

use std::ops::Range;

/// What to answer with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// These bytes, of which there is at least one.
    Bytes(Range<u64>),
    /// None of the bytes asked for is there.
    Unsatisfiable,
}

/// The part of `length` bytes, whose strong validator is `etag`, that the headers `Range` and `If-Range` ask for.
///
/// What is no range of bytes, or several ranges, is as if it were not there, which the standard allows; a client that
/// has a part of another body gets all of this one.
pub(super) fn asked(range: Option<&str>, if_range: Option<&str>, etag: &str, length: u64) -> Part {
    if if_range.is_some_and(|validator| validator != etag) {
        return Part::Whole;
    }
    let Some((first, last)) = range.and_then(|range| range.strip_prefix("bytes=")?.trim().split_once('-')) else {
        return Part::Whole;
    };
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => within(first, last.saturating_add(1).min(length)),
        (Some(first), None) if last.is_empty() => within(first, length),
        (None, Some(suffix)) if first.is_empty() => within(length.saturating_sub(suffix), length),
        _ => Part::Whole,
    }
}

fn within(start: u64, end: u64) -> Part {
    if start < end { Part::Bytes(start..end) } else { Part::Unsatisfiable }
}

/// Digits alone: Rust's own parser takes a sign as well.
fn number(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_honoured_and_what_is_none_is_ignored() {
        for (range, expected) in [
            (None, Part::Whole),
            (Some("bytes=0-"), Part::Bytes(0..100)),
            (Some("bytes=40-"), Part::Bytes(40..100)),
            (Some("bytes=40-49"), Part::Bytes(40..50)),
            (Some("bytes=99-99"), Part::Bytes(99..100)),
            (Some("bytes=40-1000"), Part::Bytes(40..100)),
            (Some("bytes=0-18446744073709551615"), Part::Bytes(0..100)),
            (Some("bytes=-10"), Part::Bytes(90..100)),
            (Some("bytes=-1000"), Part::Bytes(0..100)),
            (Some("bytes=100-"), Part::Unsatisfiable),
            (Some("bytes=-0"), Part::Unsatisfiable),
            (Some("bytes=50-40"), Part::Whole),
            (Some("bytes=-"), Part::Whole),
            (Some("bytes=+1-"), Part::Whole),
            (Some("bytes=0-1,5-6"), Part::Whole),
            (Some("bytes=99999999999999999999-"), Part::Whole),
            (Some("lines=0-1"), Part::Whole),
            (Some("bytes"), Part::Whole),
        ] {
            assert_eq!(asked(range, None, "\"a\"", 100), expected, "{range:?}");
        }
        assert_eq!(asked(Some("bytes=0-"), None, "\"a\"", 0), Part::Unsatisfiable);
    }

    #[test]
    fn who_has_a_part_of_another_body_gets_all_of_this_one() {
        let asked = |if_range| asked(Some("bytes=40-"), Some(if_range), "\"a\"", 100);
        assert_eq!(asked("\"a\""), Part::Bytes(40..100));
        for other in ["\"b\"", "W/\"a\"", "a", "Wed, 21 Oct 2026 07:28:00 GMT"] {
            assert_eq!(asked(other), Part::Whole, "{other}");
        }
    }
}
