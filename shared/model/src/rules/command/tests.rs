use serde_json::{Value, json};

use super::RULE;
use crate::{
    keys,
    policy::{Policy, Profile},
    refusal::Refusal,
    request::Template,
    rules::Occasion,
    testing::{Applied, apply_under, apply_with, fields, pod},
};

fn profile() -> Profile {
    Profile { command: ["run", "--app=$(ENTRY)", "$(HOME)"].map(str::to_owned).to_vec(), ..Profile::default() }
}

fn with_entry(entry: &str, containers: &Value) -> Value {
    let mut pod = pod(json!({ "containers": containers }));
    pod["metadata"]["annotations"] = json!({ keys::ENTRY: entry });
    pod
}

fn apply(entry: &str, containers: &Value) -> Result<Applied, Refusal> {
    apply_with(&RULE, &with_entry(entry, containers), &profile())
}

#[test]
fn the_first_container_runs_the_entry_and_the_others_are_left_alone() {
    let applied = apply("src/main.js", &json!([{ "name": "a" }, { "name": "b" }])).unwrap();
    assert_eq!(applied.spec("/containers/0/command"), &json!(["run", "--app=/app/src/main.js", "$(HOME)"]));
    assert_eq!(applied.spec("/containers/1"), &json!({ "name": "b" }));
    assert!(applied.warnings.is_empty());
    assert_eq!(applied.injected(), ["spec.containers[0].command"]);
}

#[test]
fn a_kubelet_puts_nothing_into_an_entry() {
    let applied = apply("$(PASSWORD)/$$", &json!([{ "name": "a", "command": [], "args": null }])).unwrap();
    assert_eq!(applied.spec("/containers/0/command/1"), &json!("--app=/app/$$(PASSWORD)/$$$$"));
}

#[test]
fn who_says_what_to_run_runs_that() {
    for container in [json!({ "name": "a", "command": ["x"] }), json!({ "name": "a", "args": ["x"] })] {
        assert!(apply("main.js", &json!([container])).unwrap().changes.is_empty());
    }
}

#[test]
fn a_container_that_came_first_since_does_not_run_the_entry_too() {
    let first = apply("main.js", &json!([{ "name": "a" }])).unwrap();
    let joined = json!([{ "name": "proxy" }, first.spec("/containers/0")]);
    assert!(apply("main.js", &joined).unwrap().changes.is_empty());
}

#[test]
fn nothing_is_filled_in_without_an_entry_without_a_place_for_it_or_in_a_template() {
    let containers = json!([{ "name": "a" }]);
    let bare = pod(json!({ "containers": containers }));
    assert!(apply_with(&RULE, &bare, &profile()).unwrap().changes.is_empty());
    let entry = with_entry("main.js", &containers);
    for command in [vec![], vec!["sleep".to_owned()]] {
        let profile = Profile { command, ..Profile::default() };
        assert!(apply_with(&RULE, &entry, &profile).unwrap().changes.is_empty());
    }
    let template = Occasion::Template(Template::RunsForever);
    assert!(apply_under(&[RULE], &entry, &profile(), &Policy::built_in(), template).unwrap().changes.is_empty());
}

#[test]
fn an_entry_that_leads_elsewhere_is_refused_unquoted() {
    let long = "a/".repeat(512) + "a";
    for entry in ["", "/", "/etc/passwd", "..", "a/../../b", "a//b", "a/", "./a", "a\nb", "a\u{0}", &long] {
        let refusal = apply(entry, &json!([{ "name": "a" }])).err().unwrap();
        assert_eq!(fields(&refusal), ["metadata.annotations[cofferdam.dev/entry]"], "{entry:?}");
        assert!(!refusal.to_string().contains("passwd"));
    }
    for entry in ["a", "a b/..c", "ä/…", &"a".repeat(1024)] {
        assert!(apply(entry, &json!([{ "name": "a" }])).is_ok(), "{entry:?}");
    }
}
