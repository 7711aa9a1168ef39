//! Scalars of another type than the one that is wanted, and what they stand for.

use serde_json::Number;

use super::super::document::Document;
use super::Kind;

/// Above it a double does not know all whole numbers, and whoever reads JSON as doubles writes them otherwise.
const MAX_WHOLE: f64 = 9_007_199_254_740_991.0;

impl Kind {
    /// Makes the document what is wanted, if it stands for that; leaves it alone if not.
    pub(super) fn coerce(&self, document: &mut Document) {
        match (self, &mut *document) {
            (Self::List { .. }, Document::List(_) | Document::Members(_)) | (Self::Any, _) => {}
            (Self::List { .. }, _) => *document = Document::List(vec![std::mem::replace(document, Document::Null)]),
            (_, Document::List(list)) => {
                // A list of one stands for what is in it.
                if list.len() == 1
                    && let Some(only) = list.pop()
                {
                    let mut inner = only;
                    if !matches!(inner, Document::List(_)) {
                        self.coerce(&mut inner);
                    }
                    *document = inner;
                }
            }
            _ => {
                if let Some(value) = self.stands_for(document) {
                    *document = value;
                }
            }
        }
    }

    fn stands_for(&self, document: &Document) -> Option<Document> {
        match self {
            Self::Truth => match document {
                Document::Text(text) if text == "true" => Some(true),
                Document::Text(text) if text == "false" => Some(false),
                Document::Number(number) if number.as_f64() == Some(1.0) => Some(true),
                Document::Number(number) if number.as_f64() == Some(0.0) => Some(false),
                Document::Null => Some(false),
                _ => None,
            }
            .map(Document::Bool),
            Self::Integer { .. } => match document {
                Document::Bool(truth) => Some(Number::from(u8::from(*truth))),
                Document::Null => Some(Number::from(0)),
                Document::Number(number) if number.is_f64() => whole(number.as_f64()?),
                Document::Text(text) => whole_of(text.trim()),
                _ => None,
            }
            .map(Document::Number),
            Self::Text { .. } | Self::Word(_) => match document {
                Document::Bool(truth) => Some(truth.to_string()),
                Document::Null => Some(String::new()),
                Document::Number(number) => {
                    let whole = number.as_f64().filter(|_| number.is_f64()).and_then(whole);
                    Some(whole.as_ref().unwrap_or(number).to_string())
                }
                _ => None,
            }
            .map(Document::Text),
            Self::Any | Self::List { .. } | Self::Members { .. } | Self::OrNull(_) => None,
        }
    }
}

/// A number without a fraction.
fn whole(number: f64) -> Option<Number> {
    // The text of a whole double has no fraction and no exponent, so it is an integer's.
    let text = (number.fract() == 0.0 && number.abs() <= MAX_WHOLE).then(|| format!("{number:.0}"))?;
    text.parse::<i64>().ok().map(Number::from)
}

/// The same of a text. What Rust takes for a number beside those of JSON (`inf`, `nan`) is none.
fn whole_of(text: &str) -> Option<Number> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !is_number {
        return None;
    }
    text.parse::<i64>().ok().map(Number::from).or_else(|| text.parse::<f64>().ok().and_then(whole))
}
