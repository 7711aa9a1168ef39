//! A file as its documents: the text of each, and the object in it.

use serde_json::Value;

use super::ordered::{Order, Ordered};
use super::{OfflineError, Source};

/// One document of a file.
#[derive(Debug)]
pub(super) struct Document {
    /// Its lines as they stand in the file, the marker that opens it included.
    pub(super) text: String,
    /// What it holds; null for a document of comments alone.
    pub(super) object: Value,
    /// The order in which it names its members.
    pub(super) order: Order,
    /// What was done to the object.
    pub(super) patch: Vec<json_patch::PatchOperation>,
}

impl Document {
    /// Its object, to be written in the order it was read in.
    pub(super) fn ordered(&self) -> Ordered<'_> {
        Ordered { value: &self.object, order: Some(&self.order) }
    }
}

/// Reads a file of YAML documents, or of one JSON text.
pub(super) fn read(source: &Source, text: &str) -> Result<Vec<Document>, OfflineError> {
    let mut documents = Vec::new();
    let mut first_line = 0;
    for part in split(text) {
        let unreadable = |error: &serde_saphyr::Error| {
            let line = error.location().map_or(1, |place| usize::try_from(place.line()).unwrap_or(1));
            OfflineError::NotYaml {
                source_name: source.to_string(),
                line: first_line + line,
                // Without a picture of the text: it may hold secrets.
                problem: error.without_snippet().to_string(),
            }
        };
        // As kubectl reads it: 0644 is octal, yes is true.
        let options = serde_saphyr::options! { legacy_octal_numbers: true };
        let body = part.strip_prefix("---").unwrap_or(part);
        let object = serde_saphyr::from_str_with_options(body, options.clone()).map_err(|error| unreadable(&error))?;
        let order = serde_saphyr::from_str_with_options(body, options).map_err(|error| unreadable(&error))?;
        documents.push(Document { text: part.to_owned(), object, order, patch: Vec::new() });
        first_line += part.lines().count();
    }
    Ok(documents)
}

/// Cuts before each line that begins with `---`, which no document can hold inside (YAML 1.2, 9.1.2).
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let is_marker =
            line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']));
        if is_marker && at > begin {
            parts.push(&text[begin..at]);
            begin = at;
        }
        at += line.len();
    }
    if at > begin {
        parts.push(&text[begin..at]);
    }
    parts
}
