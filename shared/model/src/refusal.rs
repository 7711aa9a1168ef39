//! Why a pod is refused: every reason at once, each with the field it stands in.

use std::fmt;

use crate::change::{Action, Change, below};

/// At most this many reasons are spelled out; a pod with more is hostile, and an answer has to stay readable.
const SPELLED_OUT: usize = 100;

/// One thing that cannot be made safe without breaking what was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Name of the rule, as in [`crate::rules::RULES`]; `pod` for what keeps any rule from being applied.
    pub rule: &'static str,
    /// Path of the field, e.g. `spec.containers[0].ports[1].hostPort`.
    pub field: String,
    /// What is wrong and what to do; never holds a value that could be secret.
    pub message: String,
}

impl Reason {
    /// The same, for whoever sees the object that the pod stands in, at `at`, such as `spec.template`; empty for the pod
    /// alone.
    #[must_use]
    pub fn below(&self, at: &str) -> Self {
        Self { field: below(at, &self.field), ..self.clone() }
    }

    /// What an audit says of a field that a rule would have changed.
    pub(crate) fn of(change: &Change) -> Self {
        let message = match (&change.old, &change.new) {
            (Some(old), Some(new)) => format!("is {old}, must be {new}"),
            (Some(old), None) => format!("is {old}, which is not allowed"),
            (None, Some(new)) => format!("must be {new}"),
            (None, None) if change.action == Action::Inject => "is missing or must not be there".to_owned(),
            (None, None) => "is not allowed".to_owned(),
        };
        Self { rule: change.rule, field: change.path.clone(), message }
    }
}

/// One line: the field, what is wrong with it, and the rule.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.field, self.message, self.rule)
    }
}

/// All reasons against a pod. Displays as one line that names each with its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// In the order of the rules; never empty.
    pub reasons: Vec<Reason>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cofferdam refuses this pod: ")?;
        for (index, reason) in self.reasons.iter().take(SPELLED_OUT).enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{reason}")?;
        }
        match self.reasons.len().saturating_sub(SPELLED_OUT) {
            0 => Ok(()),
            more => write!(f, "; and {more} more reasons"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(field: String) -> Reason {
        Reason { rule: "host", field, message: "remove it".to_owned() }
    }

    #[test]
    fn one_line_names_every_reason_with_its_field() {
        let refusal = Refusal { reasons: vec![reason("spec.hostPID".to_owned()), reason("spec.hostIPC".to_owned())] };
        assert_eq!(
            refusal.to_string(),
            "Cofferdam refuses this pod: spec.hostPID: remove it (host); spec.hostIPC: remove it (host)"
        );
    }

    #[test]
    fn a_hostile_number_of_reasons_is_counted_instead_of_printed() {
        let refusal = Refusal { reasons: (0..150).map(|i| reason(format!("spec.volumes[{i}]"))).collect() };
        let text = refusal.to_string();
        assert!(text.contains("spec.volumes[99]") && !text.contains("spec.volumes[100]"));
        assert!(text.ends_with("; and 50 more reasons"), "{text}");
    }
}
