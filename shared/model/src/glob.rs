//! Patterns in which `*` stands for any text, and the same patterns as regular expressions for admission policies.

/// Whether the whole text fits the pattern; without a `*`, whether they are the same.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        // The last part has to stand at the end; every other one is taken where it comes first.
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

/// The pattern as an RE2 regular expression, to be anchored and read with `.` standing for any character.
pub(crate) fn regex(pattern: &str) -> String {
    escaped(pattern).replace(r"\*", ".*")
}

/// A text as a regular expression that means this text.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::{matches, regex};

    proptest! {
        #[test]
        fn the_regular_expression_means_the_same(pattern in "[ab.*]{0,5}", text in "[ab.]{0,6}") {
            let regex = Regex::new(&format!("^(?s:{})$", regex(&pattern))).unwrap();
            prop_assert_eq!(matches(&pattern, &text), regex.is_match(&text), "{}", regex);
        }
    }

    #[test]
    fn a_star_stands_for_any_text_and_everything_else_for_itself() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("*", "anything", true),
            ("team-*", "team-", true),
            ("team-*", "team-blue", true),
            ("team-*", "a-team-blue", false),
            ("*-dev", "a-dev", true),
            ("*-dev", "a-dev-b", false),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a**b", "ab", true),
            ("*a*", "xax", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
