//! Admission warnings: one for each field that was tightened, within what the API server passes on.
//!
//! Source: Kubernetes, "Dynamic Admission Control", Response: a warning of more than 256 bytes may be cut, and no more
//! than 4096 bytes of them are shown. What does not fit is counted in the last one.

use crate::{
    change::{Change, tightened},
    harden::Verdict,
    keys,
};

/// Bytes of one warning.
const LONGEST: usize = 256;

/// Bytes of all warnings of one answer.
const ALL: usize = 4096;

/// Renders the warnings for what was tightened, in the order it was.
pub(crate) fn warnings(changes: &[Change]) -> Vec<String> {
    bounded(tightened(changes).map(warning).collect(), |rest| {
        format!("{rest} more fields were tightened; annotation {} lists what was changed", keys::CHANGES)
    })
}

/// What would become of a pod, as lines for whoever would not hear of it otherwise: the creator of a workload, whose
/// pods' warnings go to its controller, or of a pod in a namespace where nothing is enforced yet. `at` is where the pod
/// stands in their object, such as `spec.template`, or empty. One line for each field that would be tightened or is a
/// reason to refuse, within the same bounds as warnings.
#[must_use]
pub fn advice(verdict: &Verdict, at: &str) -> Vec<String> {
    match verdict {
        Verdict::Untouched(_) => Vec::new(),
        Verdict::Advised(advice) => advice.warnings.clone(),
        Verdict::Hardened(hardened) => {
            let lines = hardened.tightened().map(|change| {
                let warning = warning(&change.below(at));
                shorten(&format!("would change: {warning}"), LONGEST)
            });
            bounded(lines.collect(), and_more)
        }
        Verdict::Refused(refusal) => {
            let reasons = refusal.reasons.iter();
            let lines = reasons.map(|reason| shorten(&format!("would refuse: {}", reason.below(at)), LONGEST));
            bounded(lines.collect(), and_more)
        }
    }
}

/// As many lines as fit, and how many do not.
fn bounded(all: Vec<String>, closing: fn(usize) -> String) -> Vec<String> {
    if all.iter().map(String::len).sum::<usize>() <= ALL {
        return all;
    }
    let mut fitting = Vec::new();
    // The closing line is never longer than this, however much it counts.
    let mut room = ALL - closing(usize::MAX).len();
    for line in &all {
        let Some(left) = room.checked_sub(line.len()) else { break };
        room = left;
        fitting.push(line.clone());
    }
    fitting.push(closing(all.len() - fitting.len()));
    fitting
}

/// Closes advice.
fn and_more(rest: usize) -> String {
    format!("and {rest} more")
}

fn warning(change: &Change) -> String {
    let outcome = change.outcome();
    let path = shorten(&change.path, LONGEST.saturating_sub(outcome.len()));
    format!("{path}{outcome}")
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
