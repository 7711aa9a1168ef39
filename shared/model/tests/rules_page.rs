//! `docs/rules.md` says what the table of rules says: it is written from the table and from the first paragraph of each
//! rule's file, and this test keeps it current.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::{fmt::Write as _, fs, path::Path};

use cofferdam_model::rules::{Cel, Effect, RULES, Rule};

const INTRO: &str = include_str!("rules_page/intro.md");

/// Set to 1, the page is written instead of compared.
const UPDATE: &str = "COFFERDAM_UPDATE";

fn path(below: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

/// What a rule demands: the first paragraph of its file.
fn demand(rule: &Rule) -> String {
    let file = path(&format!("src/rules/{}.rs", rule.name.replace('-', "_")));
    let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines: Vec<&str> = source.lines().map_while(|line| line.strip_prefix("//! ")).collect();
    assert!(!lines.is_empty(), "{}: it does not begin with what it demands", file.display());
    lines.join(" ")
}

fn may(rule: &Rule) -> String {
    let words = rule.effects.iter().map(|effect| match effect {
        Effect::Inject => "inject",
        Effect::Tighten => "tighten",
        Effect::Refuse => "refuse",
    });
    words.collect::<Vec<_>>().join(", ")
}

fn policies(rule: &Rule) -> String {
    match rule.cel {
        Cel::Stated => "hold it too".to_owned(),
        Cel::But(but) => format!("hold it too, but {but}"),
        Cel::WebhookOnly(why) => format!("do not hold it: {why}"),
    }
}

/// `https://github.com/o/r/issues/1` as a link that reads `o/r#1`.
fn link(url: &str) -> String {
    let parts: Vec<&str> = url.trim_start_matches("https://github.com/").split('/').collect();
    match parts[..] {
        [owner, repository, "issues" | "pull", number] => format!("[{owner}/{repository}#{number}]({url})"),
        _ => format!("<{url}>"),
    }
}

fn page() -> String {
    let mut page = format!("{INTRO}\n## All rules\n\n| rule | what it holds | what it may do |\n| --- | --- | --- |\n");
    for rule in RULES {
        let (name, holds) = (rule.name, rule.holds);
        writeln!(page, "| [{name}](#{name}) | {holds} | {} |", may(rule)).unwrap();
    }
    for rule in RULES {
        write!(page, "\n### {}\n\n{}\n\n", rule.name, demand(rule)).unwrap();
        writeln!(page, "* May {}.", may(rule)).unwrap();
        writeln!(page, "* Admission policies in the API server {}.", policies(rule)).unwrap();
        let audited = if rule.audits { "Live pods are audited by it." } else { "Settled when a pod is created." };
        writeln!(page, "* {audited}").unwrap();
        writeln!(page, "* Source: {}.", rule.source).unwrap();
        if !rule.reports.is_empty() {
            let links: Vec<String> = rule.reports.iter().map(|url| link(url)).collect();
            writeln!(page, "* Met by others: {}.", links.join(", ")).unwrap();
        }
    }
    page
}

#[test]
fn the_page_of_rules_is_current() {
    let file = path("../../docs/rules.md");
    let page = page();
    if std::env::var(UPDATE).is_ok_and(|value| value == "1") {
        fs::write(&file, &page).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == page,
        "docs/rules.md is not what the rules say; run {UPDATE}=1 cargo test -p cofferdam-model --test rules_page"
    );
}

#[test]
fn a_report_reads_as_people_cite_it() {
    assert_eq!(link("https://github.com/a/b/issues/7"), "[a/b#7](https://github.com/a/b/issues/7)");
    assert_eq!(link("https://example.com/x"), "<https://example.com/x>");
}
