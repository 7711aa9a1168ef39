//! Sentences that are safe to show.

use cofferdam_model::text::{cut, one_line};

/// The most characters of one.
pub const LONGEST: usize = 500;

/// On one line and cut where it is too long, without what may be secret in URLs: their queries, and who asks.
#[must_use]
pub fn sentence(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for part in one_line(text).split_inclusive(is_edge) {
        let (word, edge) = match part.char_indices().next_back() {
            Some((at, edge)) if is_edge(edge) => part.split_at(at),
            _ => (part, ""),
        };
        safe.push_str(&without_secrets(word));
        safe.push_str(edge);
    }
    cut(&safe, LONGEST, |_| 1)
}

/// What a URL in running text does not go beyond.
fn is_edge(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '(' | ')')
}

fn without_secrets(word: &str) -> String {
    // A question's mark stands at the end of a word.
    let (word, query) = match word.split_once('?') {
        Some((word, query)) if !query.is_empty() => (word, "?…"),
        _ => (word, ""),
    };
    let word = match word.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
            format!("{scheme}://{host}{path}")
        }
        None => word.to_owned(),
    };
    word + query
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_lose_what_may_be_secret_and_words_lose_nothing() {
        for (text, shown) in [
            ("why? because: a=b", "why? because: a=b"),
            (
                "Get \"https://u:p@r.example.com/v2/x?token=s3cret&a=1\": 401",
                "Get \"https://r.example.com/v2/x?…\": 401",
            ),
            ("r.example.com/x?sig=s3cret.", "r.example.com/x?…"),
            ("https://r.example.com?a#s3cret", "https://r.example.com?…"),
            ("(http://s3cret@h)\nnext\u{202e}", "(http://h) next"),
            ("http://a/b@c", "http://a/b@c"),
        ] {
            assert_eq!(sentence(text), shown);
        }
        assert_eq!(sentence(&"é".repeat(501)), "é".repeat(499) + "…");
    }

    proptest! {
        #[test]
        fn a_sentence_is_short_and_on_one_line_and_shows_no_query(
            text in "(?s).{0,300}",
            before in "[ -~é\\n]{0,400}",
            secret in "[a-z]{8}",
        ) {
            let shown = sentence(&format!("{text}{before} https://{secret}@h.example.com/p?k={secret} {text}"));
            prop_assert!(shown.chars().count() <= LONGEST);
            prop_assert!(!shown.contains(char::is_control));
            prop_assert!(!shown.contains(&secret) || text.contains(&secret) || before.contains(&secret));
            if shown.chars().count() < LONGEST {
                prop_assert_eq!(&sentence(&shown), &shown, "what is safe stays as it is");
            }
        }
    }
}
