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

/// Ends of lines to YAML 1.1, which kubectl reads, and not to YAML 1.2: what stands behind one in a comment is there for
/// kubectl alone.
const DISPUTED_BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Reads a file of YAML documents, or of one JSON text.
pub(super) fn read(source: &Source, text: &str) -> Result<Vec<Document>, OfflineError> {
    if let Some(before) = text.split(DISPUTED_BREAKS).next().filter(|before| before.len() < text.len()) {
        return Err(OfflineError::NotYaml {
            source_name: source.to_string(),
            line: before.matches('\n').count() + 1,
            problem:
                "holds U+0085, U+2028 or U+2029, where not all readers of YAML see the end of a line; write it as an \
                      escape in double quotes, or remove it"
                    .to_owned(),
        });
    }
    let mut documents = Vec::new();
    let mut first_line = 0;
    for part in split(text) {
        let unreadable = |error: &serde_saphyr::Error| {
            let line = error.location().map_or(1, |place| usize::try_from(place.line()).unwrap_or(1));
            OfflineError::NotYaml {
                source_name: source.to_string(),
                line: first_line + line,
                problem: problem(error.without_snippet()),
            }
        };
        // As kubectl reads it: 0644 is octal, yes is true.
        let options = serde_saphyr::options! { legacy_octal_numbers: true };
        let body = body(part);
        let object = serde_saphyr::from_str_with_options(body, options.clone()).map_err(|error| unreadable(&error))?;
        let order = serde_saphyr::from_str_with_options(body, options).map_err(|error| unreadable(&error))?;
        documents.push(Document { text: part.to_owned(), object, order, patch: Vec::new() });
        first_line += part.lines().count();
    }
    Ok(documents)
}

/// What is wrong, without a picture of the text, which may hold secrets, and without the parser's own place, which counts
/// from the beginning of the document.
fn problem(error: &serde_saphyr::Error) -> String {
    if let serde_saphyr::Error::DuplicateMappingKey { key: Some(key), .. } = error {
        return format!("the key `{key}` stands here twice; remove one");
    }
    let said = error.to_string();
    said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what).to_owned()
}

/// Cuts before each line that begins with `---`, which no document can hold inside (YAML 1.2, 9.1.2), or that kubectl
/// cuts at.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let is_marker =
            line.strip_prefix("---").is_some_and(|rest| is_bare(rest) || rest.starts_with([' ', '\t', '\n', '\r']));
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

/// Whether nothing but space or a comment stands behind a marker, as kubectl sees it: any space, and `#` at once.
fn is_bare(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with('#')
}

/// A part without its marker, and all lines where they were.
fn body(part: &str) -> &str {
    let Some(rest) = part.strip_prefix("---") else { return part };
    let line = rest.find('\n').unwrap_or(rest.len());
    if is_bare(&rest[..line]) { &rest[line..] } else { rest }
}
