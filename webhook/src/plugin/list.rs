//! Which sessions there are.

use std::io::{self, Write};

use cofferdam_model::{Action, Record, keys};
use serde_json::Value;

use super::metadata;
use crate::plain;

/// The columns.
const HEAD: [&str; 7] = ["NAMESPACE", "POD", "SESSION", "PROFILE", "STATUS", "HARDENED", "TIGHTENED"];

/// Writes a table.
pub(super) fn write(pods: &Value, out: &mut impl Write) -> io::Result<()> {
    let rows: Vec<[String; 7]> = pods["items"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        return writeln!(out, "No sessions found.");
    }
    let widths: Vec<usize> = HEAD
        .iter()
        .enumerate()
        .map(|(column, head)| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(head.len()))
        .collect();
    for row in std::iter::once(&HEAD.map(str::to_owned)).chain(&rows) {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

fn row(pod: &Value) -> [String; 7] {
    let text = |value: &Value| plain(value.as_str().unwrap_or_default());
    let mark: Value = serde_json::from_str(metadata(pod, "annotations", keys::HARDENED)).unwrap_or_default();
    let tightened = Record::read(metadata(pod, "annotations", keys::CHANGES))
        .map(|record| record.changes.iter().filter(|change| change.action == Action::Tighten).count().to_string());
    let status = if pod["metadata"]["deletionTimestamp"].is_string() {
        "Terminating".to_owned()
    } else {
        text(pod["status"].get("reason").unwrap_or(&pod["status"]["phase"]))
    };
    [
        text(&pod["metadata"]["namespace"]),
        text(&pod["metadata"]["name"]),
        plain(metadata(pod, "labels", keys::SESSION)),
        text(&mark["profile"]),
        status,
        if mark.is_object() { "yes" } else { "no" }.to_owned(),
        tightened.unwrap_or_default(),
    ]
}
