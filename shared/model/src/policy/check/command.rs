//! What runs where a pod names an entry and nothing to run it with.

use super::{Checked, Checker, values};
use crate::policy::{ENTRY, file::value::Given};

impl Checker<'_> {
    /// A command without a place for the entry would run instead of what the entry names.
    pub(super) fn command(&self, command: Given<Vec<Given<String>>>) -> Checked<Vec<String>> {
        if !command.value.is_empty() && !command.value.iter().any(|item| item.value.contains(ENTRY)) {
            let problem = format!("has no place for the entry; write `{ENTRY}` where its path goes, or leave it empty");
            return Err(self.invalid(command.line, "command", problem));
        }
        if let Some(program) = command.value.first()
            && program.value.is_empty()
        {
            return Err(self.invalid(program.line, "command", "begins with the program to run, which cannot be empty"));
        }
        Ok(values(command.value))
    }
}
