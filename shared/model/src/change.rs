//! What was changed in a pod, and how much of it may be told.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::quantity::Quantity;

/// What the pod itself is called.
pub(crate) const WHOLE: &str = "the pod";

/// Longest text that is told; the API's own words and quantities are shorter.
const LONGEST_TOLD: usize = 32;

/// How a field came to its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It was missing, or held what the API server fills in by itself: changed silently.
    Inject,
    /// It was asked for and is weaker than the profile: changed with a warning.
    Tighten,
}

/// One field that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Name of the rule, as in [`crate::rules::RULES`].
    pub rule: &'static str,
    /// Path of the field in the pod as it was when the rule ran.
    pub path: String,
    /// Whether somebody had asked for the old value.
    pub action: Action,
    /// The old value, where there was one that may be told.
    pub old: Option<Told>,
    /// The new value, where there is one that may be told.
    pub new: Option<Told>,
    /// Whether nothing is there any more.
    pub removed: bool,
}

impl Change {
    /// The same, for whoever sees the object that the pod stands in, at `at`, such as `spec.template`; empty for the pod
    /// alone.
    #[must_use]
    pub fn below(&self, at: &str) -> Self {
        Self { path: below(at, &self.path), ..self.clone() }
    }

    /// What a line about it says behind the path.
    pub(crate) fn outcome(&self) -> String {
        let old = self.old.as_ref().map_or_else(String::new, |old| format!(" {old},"));
        let now = match &self.new {
            Some(new) => format!("now {new}"),
            None => without_value(&self.path, self.removed).to_owned(),
        };
        format!(":{old} {now} ({})", self.rule)
    }
}

/// What became of a field, or of an item of a list, of whose new value nothing is told.
pub(crate) fn without_value(path: &str, removed: bool) -> &'static str {
    let index = path.strip_suffix(']').and_then(|path| path.rsplit_once('[')).map_or("", |(_, index)| index);
    match removed {
        true => "removed",
        false if index.parse::<usize>().is_ok() => "added",
        false => "set",
    }
}

/// The name of a place in the pod, for whoever sees the object that the pod stands in, at `at`; empty for the pod alone.
pub(crate) fn below(at: &str, place: &str) -> String {
    match (at, place) {
        ("", place) => place.to_owned(),
        (at, WHOLE) => at.to_owned(),
        (at, place) => format!("{at}.{place}"),
    }
}

/// Those of the changes that their author is told of.
pub(crate) fn tightened(changes: &[Change]) -> impl Iterator<Item = &Change> {
    changes.iter().filter(|change| change.action == Action::Tighten)
}

/// One line: the path, the old and the new value as far as they may be told, and the rule.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.path, self.outcome())
    }
}

/// A value that may be shown in warnings, annotations and logs: a switch, a whole number, a quantity, a word of the
/// API's own vocabulary (letters and `_`, at most 32 of them), or a list of such words. Everything else an author
/// wrote could be secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct Told(Value);

/// A value that is not for telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is neither a switch, a whole number, a quantity nor a word of the API")]
pub struct NotForTelling;

impl Told {
    /// Nothing: for what an author wrote freely.
    pub(crate) fn nothing(_: &Value) -> Option<Self> {
        None
    }

    /// A switch or a whole number; `None` for anything else.
    pub(crate) fn plain(value: &Value) -> Option<Self> {
        matches!(value, Value::Bool(_)).then(|| Self(value.clone())).or_else(|| value.as_i64().map(Self::from))
    }

    /// A word, or a list of words, such as a capability or a restart policy; `None` for anything else.
    pub(crate) fn words(value: &Value) -> Option<Self> {
        let is_word = |value: &Value| {
            value.as_str().is_some_and(|text| {
                !text.is_empty()
                    && text.len() <= LONGEST_TOLD
                    && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
            })
        };
        let all_words = match value {
            Value::Array(items) => items.len() <= LONGEST_TOLD && items.iter().all(is_word),
            other => is_word(other),
        };
        all_words.then(|| Self(value.clone()))
    }

    /// A quantity as its author wrote it, if it is short enough; `None` for what is no quantity.
    pub(crate) fn amount(value: &Value) -> Option<Self> {
        Quantity::from_json(value).ok()?;
        // Space around it, as the API allows, may be the end of a line.
        let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
        (text.len() <= LONGEST_TOLD).then_some(Self(Value::String(text)))
    }

    /// A quantity as we write it, which may be longer than an author's.
    fn canonical(value: &Value) -> Option<Self> {
        let quantity = Quantity::parse(value.as_str()?).ok()?;
        (value == quantity.to_string().as_str()).then(|| Self::from(quantity))
    }
}

impl TryFrom<Value> for Told {
    type Error = NotForTelling;

    fn try_from(value: Value) -> Result<Self, NotForTelling> {
        Self::plain(&value)
            .or_else(|| Self::words(&value))
            .or_else(|| Self::amount(&value))
            .or_else(|| Self::canonical(&value))
            .ok_or(NotForTelling)
    }
}

impl From<bool> for Told {
    fn from(value: bool) -> Self {
        Self(Value::Bool(value))
    }
}

impl From<i64> for Told {
    fn from(value: i64) -> Self {
        Self(value.into())
    }
}

impl From<&'static str> for Told {
    fn from(value: &'static str) -> Self {
        Self(value.into())
    }
}

impl From<Quantity> for Told {
    fn from(value: Quantity) -> Self {
        Self(value.to_string().into())
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => f.write_str(text),
            Value::Array(items) => {
                let words: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
                write!(f, "[{}]", words.join(", "))
            }
            other => write!(f, "{other}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Told;

    #[test]
    fn an_amount_is_told_on_one_line_whoever_wrote_it() {
        for value in [json!("5\n"), json!("\r 5"), json!("5\u{b}\u{85}\u{2028}")] {
            assert_eq!(Told::amount(&value).unwrap().to_string(), "5");
            assert_eq!(Told::try_from(value).unwrap().to_string(), "5");
        }
    }
}
