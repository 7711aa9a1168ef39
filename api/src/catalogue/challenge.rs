//! How a registry asks who calls (RFC 9110, `WWW-Authenticate`; the token flow of the distribution project).

use std::collections::BTreeMap;

use http::header::{HeaderMap, WWW_AUTHENTICATE};

/// One way to say who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// `bearer`, `basic` or another, in lower case.
    pub(super) scheme: String,
    /// Its parameters, their names in lower case.
    pub(super) parameters: BTreeMap<String, String>,
}

/// All ways that an answer offers, in its order.
pub(super) fn challenges(headers: &HeaderMap) -> Vec<Challenge> {
    headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok()).flat_map(read).collect()
}

/// Reads one header; what comes behind something that cannot be read is left out.
fn read(header: &str) -> Vec<Challenge> {
    let mut challenges: Vec<Challenge> = Vec::new();
    let mut rest = gap(header);
    while !rest.is_empty() {
        let (word, after) = token(rest);
        if word.is_empty() {
            break;
        }
        // A parameter has a value; a word without one is the next scheme.
        let word = word.to_ascii_lowercase();
        if let (Some(after), Some(challenge)) = (after.trim_start().strip_prefix('='), challenges.last_mut()) {
            let (value, after) = value(after.trim_start());
            challenge.parameters.entry(word).or_insert(value);
            rest = gap(after);
        } else {
            challenges.push(Challenge { scheme: word, parameters: BTreeMap::new() });
            rest = gap(after);
        }
    }
    challenges
}

/// Without the gap before the next word.
fn gap(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', ','])
}

/// A word, and what comes behind it.
fn token(text: &str) -> (&str, &str) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c);
    text.split_at(text.find(|c| !is_token(c)).unwrap_or(text.len()))
}

/// A word or a quoted text, and what comes behind it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (word, after) = token(text);
        return (word.to_owned(), after);
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            letter => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(header: &str) -> Vec<String> {
        let parameter = |(name, value): (&String, &String)| format!(" {name}={value};");
        let all = |challenge: &Challenge| challenge.parameters.iter().map(parameter).collect::<String>();
        read(header).iter().map(|challenge| challenge.scheme.clone() + &all(challenge)).collect()
    }

    #[test]
    fn schemes_and_their_parameters_are_told_apart() {
        for (header, challenges) in [
            (
                r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push""#,
                &["bearer realm=https://auth.example/token; scope=repository:a/b:pull,push; service=registry.example;"]
                    [..],
            ),
            (r#"Basic realm="a \"b\" \\c""#, &[r#"basic realm=a "b" \c;"#]),
            ("BASIC Realm = simple , charset=UTF-8", &["basic charset=UTF-8; realm=simple;"]),
            (r#"Negotiate, Basic realm="x", Bearer realm=y"#, &["negotiate", "basic realm=x;", "bearer realm=y;"]),
            (r#"Bearer realm="never closed"#, &["bearer realm=never closed;"]),
            ("Bearer realm=first,realm=second", &["bearer realm=first;"]),
            ("", &[]),
            (" , ,", &[]),
            ("=x", &[]),
            ("Negotiate abc==", &["negotiate abc=;"]),
        ] {
            assert_eq!(shown(header), challenges, "{header}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_registry_sends_is_read_to_an_end(header in r#"[a-z="\\, é]{0,40}"#) {
            prop_assert!(read(&header).len() <= header.len());
        }
    }
}
