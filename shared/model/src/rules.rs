//! The table of DESIGN section 5: the list below *is* the table, one file for each row.

use std::fmt;

use crate::{harden::Context, pod::Draft};

mod privilege;
mod read_only_root;

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name in warnings, refusals and recorded changes.
    pub name: &'static str,
    /// What it holds, in one line.
    pub holds: &'static str,
    /// What it may do to a pod.
    pub effects: &'static [Effect],
    /// Where it comes from: the Pod Security Standards' control or the page of the Kubernetes documentation.
    pub source: &'static str,
    /// Reads and edits the pod.
    pub(crate) apply: fn(&mut Draft, &Context<'_>),
}

/// What a rule may do to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Puts in what is missing, silently.
    Inject,
    /// Changes what was asked for and is weaker, with a warning.
    Tighten,
    /// Refuses what cannot be made safe without breaking what was asked.
    Refuse,
}

use Effect::{Inject, Tighten};

/// All rules, in the order they run.
pub const RULES: &[Rule] = &[privilege::RULE, read_only_root::RULE];

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).field("effects", &self.effects).finish_non_exhaustive()
    }
}
