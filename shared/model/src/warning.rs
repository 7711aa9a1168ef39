//! Admission warnings: one for each field that was tightened, within what the API server passes on.
//!
//! Source: Kubernetes, "Dynamic Admission Control", Response: a warning of more than 256 bytes may be cut, and no more
//! than 4096 bytes of them are shown. What does not fit is counted in the last one.

use crate::{
    change::{Action, Change},
    keys,
};

/// Bytes of one warning.
const LONGEST: usize = 256;

/// Bytes of all warnings of one answer.
const ALL: usize = 4096;

/// Renders the warnings for what was tightened, in the order it was.
pub(crate) fn warnings(changes: &[Change]) -> Vec<String> {
    let all: Vec<String> = changes.iter().filter(|change| change.action == Action::Tighten).map(warning).collect();
    if all.iter().map(String::len).sum::<usize>() <= ALL {
        return all;
    }
    let mut fitting = Vec::new();
    // The closing line is never longer than this, however much it counts.
    let mut room = ALL - closing(usize::MAX).len();
    for warning in &all {
        let Some(left) = room.checked_sub(warning.len()) else { break };
        room = left;
        fitting.push(warning.clone());
    }
    let rest = all.len() - fitting.len();
    fitting.push(closing(rest));
    fitting
}

fn warning(change: &Change) -> String {
    let old = change.old.as_ref().map_or_else(String::new, |old| format!(" {old},"));
    let outcome = change.new.as_ref().map_or_else(|| "removed".to_owned(), |new| format!("now {new}"));
    let rule = change.rule;
    let tail = format!(":{old} {outcome} ({rule})");
    let path = shorten(&change.path, LONGEST.saturating_sub(tail.len()));
    format!("{path}{tail}")
}

fn closing(rest: usize) -> String {
    format!("{rest} more fields were tightened; annotation {} lists what was changed", keys::CHANGES)
}

/// Cuts the middle out of a path that is too long, since its beginning and its end say where it is.
fn shorten(path: &str, most: usize) -> String {
    const GAP: &str = "…";
    if path.len() <= most {
        return path.to_owned();
    }
    let half = most.saturating_sub(GAP.len()) / 2;
    let head = &path[..path.floor_char_boundary(half)];
    let tail = &path[path.ceil_char_boundary(path.len() - half)..];
    format!("{head}{GAP}{tail}")
}

#[cfg(test)]
mod tests;
