//! The annotation `cofferdam.dev/changes`: what was done to a pod, for people who wonder.
//!
//! A JSON list of at most 4 KiB: `{"rule","path","action","old","new","removed"}`, tightened fields first; where not all fit, the
//! last item is `{"more": <how many>}`.
//!
//! A second pass carries on what the first one wrote, and an author can write the same: such a record is read only if it
//! could be ours, and what is done now stands before it, so that no forged list hides it. The audit log gets nothing of
//! what was read.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    change::{Action, Change, Told, without_value},
    rules::{Effect, RULES},
};

mod shown;

/// Bytes of the annotation.
const MOST: usize = 4096;

/// What an item about the rest may take at most.
const REST: usize = r#",{"more":18446744073709551615}"#.len();

/// What one pass did, as the audit log gets it; `None` where it did nothing.
#[must_use]
pub fn changes_annotation(changes: &[Change]) -> Option<String> {
    (!changes.is_empty()).then(|| Record::default().with(changes).to_string())
}

/// What is known to have been done to a pod. Displays as the annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// What was done, tightened fields first.
    pub changes: Vec<RecordedChange>,
    /// Changes that did not fit into the annotation.
    pub more: u64,
}

/// One change that a pod carries a note of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedChange {
    /// Name of the rule.
    pub rule: String,
    /// Path of the field.
    pub path: String,
    /// Whether somebody had asked for the old value.
    pub action: Action,
    /// The old value, where it may be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Told>,
    /// The new value, where it may be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Told>,
    /// Whether nothing is there any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rest {
    more: u64,
}

/// One item of the list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Item {
    Change(RecordedChange),
    Rest(Rest),
}

impl Record {
    /// Reads the annotation; `None` if it holds anything that we would not have written. It is for people: an author may
    /// have written it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        if text.len() > MOST {
            return None;
        }
        let mut record = Self::default();
        for item in serde_json::from_str::<Vec<Item>>(text).ok()? {
            match item {
                Item::Change(change) if record.more == 0 && change.could_be_ours() => record.changes.push(change),
                Item::Rest(rest) if record.more == 0 => record.more = rest.more,
                Item::Change(_) | Item::Rest(_) => return None,
            }
        }
        Some(record)
    }

    /// This record, and before it what was done since.
    pub(crate) fn with(mut self, changes: &[Change]) -> Self {
        self.changes.splice(0..0, changes.iter().map(RecordedChange::from));
        // Stable, so that a record to which nothing is added stays as it is.
        self.changes.sort_by_key(|change| change.action == Action::Inject);
        self
    }
}

impl RecordedChange {
    /// What was done to the field, in words that follow its path: `true -> false`, `1000`, `removed`, `added cofferdam-tmp
    /// at /tmp`. What the annotation does not tell of a new value, which an author may have written, comes from `pod`,
    /// which carries it: it is for whoever may read the pod.
    #[must_use]
    pub fn outcome(&self, pod: &Value) -> String {
        let old = self.old.as_ref().map_or_else(String::new, |old| format!("{old} -> "));
        let new = self.new.as_ref().map_or_else(
            || {
                let done = without_value(&self.path, self.removed);
                let shown = shown::at(pod, &self.path).filter(|_| !self.removed);
                shown.map_or_else(|| done.to_owned(), |value| format!("{done} {value}"))
            },
            ToString::to_string,
        );
        format!("{old}{new}")
    }

    /// Whether a rule of that name does such a thing, to a field whose name we would write.
    fn could_be_ours(&self) -> bool {
        let effect = match self.action {
            Action::Inject => Effect::Inject,
            Action::Tighten => Effect::Tighten,
        };
        RULES.iter().any(|rule| rule.name == self.rule && rule.effects.contains(&effect))
            && !self.path.contains(char::is_control)
            && !(self.removed && self.new.is_some())
    }
}

impl From<&Change> for RecordedChange {
    fn from(change: &Change) -> Self {
        Self {
            rule: change.rule.to_owned(),
            path: change.path.clone(),
            action: change.action,
            old: change.old.clone(),
            new: change.new.clone(),
            removed: change.removed,
        }
    }
}

/// Writes the annotation.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Strings, numbers and switches: none of them fails to serialise.
        let items: Vec<String> = self.changes.iter().filter_map(|change| serde_json::to_string(change).ok()).collect();
        // Each item takes its length and a comma or a bracket; the first bracket is one more.
        let fitting = |room: usize| {
            let ends = items.iter().scan(1, |end, item| {
                *end += item.len() + 1;
                Some(*end)
            });
            ends.take_while(|end| *end <= room).count()
        };
        let mut kept = fitting(MOST);
        if self.more > 0 || kept < items.len() {
            kept = fitting(MOST - REST);
        }
        write!(f, "[{}", items[..kept].join(","))?;
        let left_out = u64::try_from(items.len() - kept).unwrap_or(u64::MAX);
        match self.more.saturating_add(left_out) {
            0 => f.write_str("]"),
            more => write!(f, "{}{{\"more\":{more}}}]", if kept == 0 { "" } else { "," }),
        }
    }
}

#[cfg(test)]
mod tests;
