//! The rights that `docs/permissions.md` says our programs have, and those that they used by the API server's audit log.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cofferdam_cluster::audit::Event;

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

    /// Who it is to the API server.
    fn user(self) -> &'static str {
        match self {
            Self::Agents => "system:serviceaccount:cofferdam-system:cofferdam-agent",
            Self::Api => "system:serviceaccount:cofferdam-system:cofferdam-api",
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

/// What a program asked for, by the audit log, and in words what of it is not documented or was refused for good.
///
/// # Panics
/// When the page is not in the checkout.
#[must_use]
pub fn asked(program: Program, audit: &[Event]) -> (BTreeSet<Right>, Vec<String>) {
    let (mut asked, mut refused, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for event in audit.iter().filter(|event| event.user.username == program.user()) {
        let Some(about) = &event.object_ref else {
            // Which kinds are served is for everybody to ask.
            if event.verb != "get" || !event.request_uri.starts_with("/api") {
                wrong.push(format!("asked for what is no resource: {event:?}"));
            }
            continue;
        };
        let resource = match about.subresource.as_str() {
            "" => about.resource.clone(),
            subresource => format!("{}/{subresource}", about.resource),
        };
        let right = (about.api_group.clone(), resource, event.verb.clone());
        if event.code() == Some(403) {
            refused.insert(right)
        } else {
            asked.insert(right)
        };
    }
    // An API server that begins serves before it knows the roles; what was refused then was granted later.
    wrong.extend(refused.difference(&asked).map(|right| format!("asked for, and never granted: {right:?}")));
    let documented = documented(program);
    wrong.extend(asked.difference(&documented).map(|right| format!("asked for, and not documented: {right:?}")));
    (asked, wrong)
}

/// The rights of a program that were asked for by nobody, but for those of which `why_unseen` says why they are needed all the
/// same.
///
/// # Panics
/// When the page is not in the checkout.
#[must_use]
pub fn unseen(
    program: Program,
    asked: &BTreeSet<Right>,
    why_unseen: impl Fn(&Right) -> Option<&'static str>,
) -> Vec<Right> {
    documented(program).difference(asked).filter(|right| why_unseen(right).is_none()).cloned().collect()
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
