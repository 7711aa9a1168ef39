//! What is written: the hardened file, the patches that make it, or the difference.

use std::io::Write;

use serde_json::{Value, json};
use similar::TextDiff;

use super::documents::Document;
use super::ordered::Ordered;
use super::{OfflineError, Source};

/// In which form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// YAML documents.
    #[default]
    Yaml,
    /// JSON; several documents as a List.
    Json,
    /// JSON Patch (RFC 6902); of several documents a list that names each object.
    Patch,
    /// A unified diff.
    Diff,
}

/// Lines of a diff around each change.
const CONTEXT: usize = 3;

/// Writes the documents.
pub(super) fn write(
    format: Format,
    source: &Source,
    text: &str,
    documents: &[Document],
    out: &mut impl Write,
) -> Result<(), OfflineError> {
    match format {
        Format::Yaml => out.write_all(yaml(documents).as_bytes())?,
        Format::Json => {
            let mut items: Vec<Ordered<'_>> =
                documents.iter().filter(|document| !document.object.is_null()).map(Document::ordered).collect();
            let json = match items.pop() {
                Some(only) if items.is_empty() => pretty(&only),
                last => {
                    items.extend(last);
                    pretty(&List { api_version: "v1", kind: "List", items })
                }
            };
            writeln!(out, "{json}")?;
        }
        Format::Patch => {
            let patches = match documents {
                [only] => json!(only.patch),
                several => several.iter().filter(|document| !document.object.is_null()).map(named).collect(),
            };
            writeln!(out, "{}", pretty(&patches))?;
        }
        Format::Diff => {
            // Both as we write them, so that only what hardening does is a difference.
            let before = as_written(source, text, documents)?;
            let after = yaml(documents);
            let diff = TextDiff::from_lines(&before, &after);
            let mut unified = diff.unified_diff();
            unified.context_radius(CONTEXT).header(&source.to_string(), &format!("{source} (hardened)"));
            write!(out, "{unified}")?;
        }
    }
    Ok(())
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'d> {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Ordered<'d>>,
}

/// The documents as YAML; those that nothing was done to as they came.
fn yaml(documents: &[Document]) -> String {
    documents
        .iter()
        .map(|document| if document.patch.is_empty() { document.text.clone() } else { written(document) })
        .collect()
}

/// The file before, with the documents that change written as the hardened ones are.
fn as_written(source: &Source, text: &str, hardened: &[Document]) -> Result<String, OfflineError> {
    let before = super::documents::read(source, text)?;
    let texts = before
        .into_iter()
        .zip(hardened)
        .map(|(before, hardened)| if hardened.patch.is_empty() { before.text } else { written(&before) });
    Ok(texts.collect())
}

fn written(document: &Document) -> String {
    let marker = if document.text.starts_with("---") { "---\n" } else { "" };
    // Long lines stay lines: people read them, and compare. kubectl reads no block that begins with a tab.
    let options = serde_saphyr::ser_options! {
        folded_wrap_chars: usize::MAX,
        prefer_block_scalars: !begins_with_a_tab(&document.object),
    };
    let ordered = document.ordered();
    let mut yaml = String::new();
    #[expect(clippy::expect_used, reason = "strings, numbers, lists and maps by string can all be written")]
    serde_saphyr::to_fmt_writer_with_options(&mut yaml, &ordered, options).expect("JSON can be written as YAML");
    format!("{marker}{yaml}")
}

/// Whether a text of several lines in it does.
fn begins_with_a_tab(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\n') && text.trim_start_matches('\n').starts_with('\t'),
        Value::Array(items) => items.iter().any(begins_with_a_tab),
        Value::Object(members) => members.values().any(begins_with_a_tab),
        _ => false,
    }
}

fn named(document: &Document) -> Value {
    let Document { object, patch, .. } = document;
    json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "namespace": object["metadata"]["namespace"],
        "name": object["metadata"]["name"],
        "patch": patch,
    })
}

fn pretty(value: &impl serde::Serialize) -> String {
    #[expect(clippy::expect_used, reason = "strings, numbers, lists and maps by string can all be written")]
    serde_json::to_string_pretty(value).expect("JSON can be written")
}
