//! The rights that `docs/permissions.md` says our programs have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A right: API group (empty for the core), resource with its subresource, verb.
pub type Right = (String, String, String);

/// A program that has rights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// The agents.
    Agents,
    /// The API.
    Api,
}

impl Program {
    /// The heading of its table.
    fn heading(self) -> &'static str {
        match self {
            Self::Agents => "The agents",
            Self::Api => "The API",
        }
    }
}

/// A row of the table of a program's rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The rights it gives.
    pub rights: Vec<Right>,
    /// `everywhere`, or the namespace.
    pub place: String,
    /// What they are for.
    pub why: String,
}

/// The table of a program's rights, as the page has it.
///
/// # Panics
/// When the page is not in the checkout.
#[must_use]
pub fn rows(program: Program) -> Vec<Row> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/permissions.md");
    #[expect(clippy::expect_used, reason = "a checkout without the page has nothing to compare")]
    let text = fs::read_to_string(page).expect("docs/permissions.md is in the checkout");
    let sections = text.split("\n## ").filter_map(|section| section.split_once('\n'));
    sections
        .filter(|(heading, _)| *heading == program.heading())
        .flat_map(|(_, text)| text.lines().filter_map(row))
        .collect()
}

/// Every right that a program has somewhere, by the page.
///
/// # Panics
/// When the page is not in the checkout.
#[must_use]
pub fn documented(program: Program) -> BTreeSet<Right> {
    rows(program).into_iter().flat_map(|row| row.rights).collect()
}

/// A line of the table; not its head, and not what is beside it.
fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [group, resource, verbs, place, why] = cells[..] else { return None };
    if matches!(group, "API group" | "---") {
        return None;
    }
    let group = if group == "core" { "" } else { group };
    let rights = verbs.split(", ").map(|verb| (group.to_owned(), resource.to_owned(), verb.to_owned())).collect();
    Some(Row { rights, place: place.to_owned(), why: why.to_owned() })
}
