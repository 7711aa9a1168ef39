//! `docs/conditions.md` says what the closed list of reasons says: it is written from the list, and this test keeps it
//! current.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use cofferdam_agent::reason::{ConditionType, Reason};

const INTRO: &str = include_str!("conditions_page/intro.md");

/// Set to 1, the page is written instead of compared.
const UPDATE: &str = "COFFERDAM_UPDATE";

fn page() -> String {
    let mut page = INTRO.to_owned();
    for type_ in ConditionType::ALL {
        write!(page, "\n## {}\n\n| status | reason | what it means | what to check |\n", type_.as_str()).unwrap();
        page.push_str("| --- | --- | --- | --- |\n");
        for reason in Reason::ALL.iter().rev().filter(|reason| reason.of().contains(&type_)) {
            let (status, word) = (reason.status().as_str(), reason.as_str());
            writeln!(page, "| {status} | `{word}` | {} | {} |", reason.meaning(), reason.check()).unwrap();
        }
    }
    page
}

#[test]
fn the_page_of_conditions_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/conditions.md");
    let page = page();
    if std::env::var(UPDATE).is_ok_and(|value| value == "1") {
        fs::write(&file, &page).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == page,
        "docs/conditions.md is not what the reasons say; run {UPDATE}=1 cargo test -p cofferdam-agent --test conditions_page"
    );
}

#[test]
fn every_condition_can_hold_and_fail_to() {
    for type_ in ConditionType::ALL {
        let mut statuses: Vec<_> = Reason::ALL
            .iter()
            .filter(|reason| reason.of().contains(&type_))
            .map(|reason| reason.status().as_str())
            .collect();
        statuses.dedup();
        let expected: &[&str] =
            if type_ == ConditionType::Hardened { &["False", "True"] } else { &["False", "Unknown", "True"] };
        assert_eq!(statuses, expected, "{}", type_.as_str());
    }
}
