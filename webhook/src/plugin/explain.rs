//! What was done to one pod, by which rule, and what that rule holds.

use std::io::{self, Write};

use cofferdam_model::rules::RULES;
use cofferdam_model::{Action, Record, RecordedChange, keys};
use serde_json::Value;

use super::metadata;
use crate::plain;

/// Writes it.
pub(super) fn write(pod: &Value, out: &mut impl Write) -> io::Result<()> {
    let name = plain(pod["metadata"]["name"].as_str().unwrap_or("?"));
    let session = metadata(pod, "labels", keys::SESSION);
    let mark: Value = serde_json::from_str(metadata(pod, "annotations", keys::HARDENED)).unwrap_or_default();
    if mark.is_null() {
        let why = if session.is_empty() {
            "it is no session, or was made before its namespace was labelled or while the webhook was not asked"
        } else {
            "it carries a session's label, but the webhook was not asked when it was created"
        };
        return writeln!(
            out,
            "Pod {name} was not hardened: {why}; its condition {}, if it has one, says more.",
            keys::IS_HARDENED
        );
    }
    let word = |key: &str| plain(mark[key].as_str().unwrap_or("?"));
    writeln!(out, "Pod {name} is session {}.", plain(session))?;
    writeln!(out, "Profile {}, policy {}, Cofferdam {}.", word("profile"), word("policy"), word("version"))?;
    let Some(record) = Record::read(metadata(pod, "annotations", keys::CHANGES)) else {
        return writeln!(out, "What was changed is not known: the annotation {} is not ours.", keys::CHANGES);
    };
    let (tightened, injected): (Vec<_>, Vec<_>) = record
        .changes
        .iter()
        .partition(|change| change.action == Action::Tighten || is_copy_of_a_limit(change, &record.changes));
    if !tightened.is_empty() {
        writeln!(out, "\nAsked for, and made stricter:")?;
        by_rule(&tightened, pod, out)?;
    }
    if !injected.is_empty() {
        writeln!(out, "\nNot asked for, and filled in or taken away:")?;
        by_rule(&injected, pod, out)?;
    }
    if record.changes.is_empty() {
        writeln!(out, "\nNothing was changed.")?;
    }
    match record.more {
        0 => Ok(()),
        more => writeln!(out, "\nand {more} more, for which the annotation has no room."),
    }
}

/// Whether it is a request that the API server copied from a limit, which was asked for and made stricter.
fn is_copy_of_a_limit(change: &RecordedChange, changes: &[RecordedChange]) -> bool {
    let Some((container, resource)) = change.path.split_once(".resources.requests") else { return false };
    let limit = format!("{container}.resources.limits{resource}");
    change.old.is_some()
        && changes.iter().any(|other| other.action == Action::Tighten && other.path == limit && other.old == change.old)
}

/// Each rule once, in the order in which it first did something, with what it holds and what it did.
fn by_rule(changes: &[&RecordedChange], pod: &Value, out: &mut impl Write) -> io::Result<()> {
    let mut seen: Vec<&str> = Vec::new();
    for change in changes {
        if seen.contains(&change.rule.as_str()) {
            continue;
        }
        seen.push(&change.rule);
        let holds = RULES.iter().find(|rule| rule.name == change.rule).map_or("", |rule| rule.holds);
        writeln!(out, "  {}: {holds}", change.rule)?;
        for change in changes.iter().filter(|other| other.rule == change.rule) {
            writeln!(out, "    {}: {}", change.path, plain(&change.outcome(pod)))?;
        }
    }
    Ok(())
}
