//! The place of a field in a pod, and the name people know it by.

use std::{borrow::Cow, fmt};

use crate::change::WHOLE;

/// Longest key that is shown whole; keys of annotations and labels come from the author.
const LONGEST_KEY: usize = 80;

/// A place in the pod; displays as Kubernetes writes it, e.g. `spec.containers[0].resources.limits.cpu` or
/// `metadata.labels[cofferdam.dev/session]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(Cow<'static, str>),
    Index(usize),
}

impl Path {
    /// The place that these keys lead to from the top.
    pub(crate) fn of(keys: &[&'static str]) -> Self {
        Self(Vec::new()).at(keys)
    }

    /// The label of the pod.
    pub(crate) fn label(key: &'static str) -> Self {
        Self::of(&["metadata", "labels", key])
    }

    /// The annotation of the pod.
    pub(crate) fn annotation(key: &'static str) -> Self {
        Self::of(&["metadata", "annotations", key])
    }

    /// The place that these keys lead to from here.
    pub(crate) fn at(&self, keys: &[&'static str]) -> Self {
        let mut steps = Vec::with_capacity(self.0.len() + keys.len());
        steps.extend_from_slice(&self.0);
        steps.extend(keys.iter().map(|&key| Step::Key(Cow::Borrowed(key))));
        Self(steps)
    }

    /// The member of that name.
    pub(crate) fn key(&self, key: impl Into<Cow<'static, str>>) -> Self {
        self.step(Step::Key(key.into()))
    }

    /// The item of that number.
    pub(crate) fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    /// The first steps of the way.
    pub(crate) fn prefix(&self, steps: usize) -> Self {
        Self(self.0.iter().take(steps).cloned().collect())
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether this place is that one or lies in it.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = Vec::with_capacity(self.0.len() + 1);
        steps.extend_from_slice(&self.0);
        steps.push(step);
        Self(steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(WHOLE);
        }
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') => {
                    write!(f, "{}{}", if position == 0 { "" } else { "." }, shown(key))?;
                }
                Step::Key(key) => write!(f, "[{}]", shown(key))?,
            }
        }
        Ok(())
    }
}

/// The key on one line and not too long: control characters would break a warning header or a log line.
fn shown(key: &str) -> Cow<'_, str> {
    if key.len() <= LONGEST_KEY && !key.contains(char::is_control) {
        return Cow::Borrowed(key);
    }
    let mut shown: String =
        key.chars().take(LONGEST_KEY).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    if key.chars().nth(LONGEST_KEY).is_some() {
        shown.push('…');
    }
    Cow::Owned(shown)
}
