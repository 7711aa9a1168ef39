use serde_json::json;

use super::*;
use crate::{
    change::{Action, Told, below},
    quantity::Quantity,
    testing::fields,
};

fn draft(pod: &Value) -> Draft {
    let mut draft = Draft::new(pod);
    draft.enter("rule");
    draft
}

#[test]
fn a_path_reads_as_kubernetes_writes_it() {
    let path = Path::of(&["spec", "containers"]).index(3).at(&["resources", "limits", "ephemeral-storage"]);
    assert_eq!(path.to_string(), "spec.containers[3].resources.limits.ephemeral-storage");
    let path = Path::of(&["metadata", "labels"]).key("cofferdam.dev/session");
    assert_eq!(path.to_string(), "metadata.labels[cofferdam.dev/session]");
    assert_eq!(Path::of(&[]).to_string(), "the pod");
    assert_eq!(below("spec.template", &path.to_string()), "spec.template.metadata.labels[cofferdam.dev/session]");
    assert_eq!(below("spec.template", &Path::of(&[]).to_string()), "spec.template");
}

#[test]
fn a_hostile_key_neither_breaks_the_line_nor_fills_it() {
    let path = Path::of(&["a"]).key("x\r\nWarning: 299\u{0}".to_owned()).key("k".repeat(1000));
    let text = path.to_string();
    assert!(!text.contains(char::is_control) && text.len() < 200, "{text}");
}

#[test]
fn null_reads_as_nothing_and_a_wrong_type_is_refused_once_by_the_field_in_the_way() {
    let mut draft = draft(&json!({ "spec": { "a": null, "b": "x", "c": { "d": 1 } } }));
    assert_eq!(draft.switch(&Path::of(&["spec", "a"])), None);
    assert_eq!(draft.switch(&Path::of(&["spec", "a", "deeper"])), None);
    assert_eq!(draft.number(&Path::of(&["spec", "c", "d"])), Some(1));
    assert!(!draft.is_refused());
    for _ in 0..2 {
        assert_eq!(draft.switch(&Path::of(&["spec", "b", "deeper"])), None);
        assert!(draft.items(&Path::of(&["spec", "c"])).is_empty());
        assert_eq!(draft.text(&Path::of(&["spec", "c", "d"])), None);
    }
    assert_eq!(fields(&draft.into_refusal()), ["spec.b", "spec.c", "spec.c.d"]);
}

#[test]
fn an_edit_makes_the_objects_on_its_way_and_notes_what_it_did() {
    let mut draft = draft(&json!({ "spec": { "securityContext": null } }));
    let field = Path::of(&["spec", "securityContext", "runAsNonRoot"]);
    draft.require(&field, true);
    draft.require(&field, true);
    let (pod, _, changes) = draft.finish().unwrap();
    assert_eq!(pod, json!({ "spec": { "securityContext": { "runAsNonRoot": true } } }));
    let expected = Change {
        rule: "rule",
        path: field.to_string(),
        action: Action::Inject,
        old: None,
        new: Some(Told::from(true)),
        removed: false,
    };
    assert_eq!(changes, [expected]);
}

#[test]
fn what_the_server_filled_in_counts_as_missing_and_anything_else_as_asked_for() {
    for (is, action) in
        [(json!(null), Action::Inject), (json!("Always"), Action::Inject), (json!("OnFailure"), Action::Tighten)]
    {
        let mut draft = draft(&json!({ "p": is }));
        draft.require_over(&Path::of(&["p"]), "Never", "Always");
        let (pod, _, changes) = draft.finish().unwrap();
        assert_eq!(pod, json!({ "p": "Never" }));
        assert_eq!(changes[0].action, action, "{is}");
    }
    let mut draft = draft(&json!({ "p": "Never" }));
    draft.require_over(&Path::of(&["p"]), "Never", "Always");
    draft.require_over(&Path::of(&["p"]), "Never", "Never");
    assert!(draft.changes().is_empty());
}

#[test]
fn removed_items_are_told_by_their_old_numbers() {
    let mut draft = draft(&json!({ "l": [0, 1, 2, 3] }));
    draft.remove_items(&Path::of(&["l"]), &[0, 2], Action::Tighten, Told::plain);
    let (pod, _, changes) = draft.finish().unwrap();
    assert_eq!(pod, json!({ "l": [1, 3] }));
    let told: Vec<String> = changes.iter().map(|c| format!("{} {}", c.path, c.old.clone().unwrap())).collect();
    assert_eq!(told, ["l[0] 0", "l[2] 2"]);
}

#[test]
fn removing_what_is_not_there_is_no_change() {
    let mut draft = draft(&json!({ "a": {} }));
    draft.remove(&Path::of(&["a", "b"]), Action::Tighten, Told::plain);
    draft.remove(&Path::of(&["x", "b"]), Action::Tighten, Told::plain);
    draft.remove_items(&Path::of(&["l"]), &[0], Action::Tighten, Told::plain);
    assert!(draft.changes().is_empty());
    assert_eq!(draft.finish().unwrap().0, json!({ "a": {} }));
}

#[test]
fn only_switches_numbers_quantities_and_words_are_told() {
    for (value, told) in
        [(json!(true), true), (json!(5), true), (json!(0.5), false), (json!("x"), false), (json!({}), false)]
    {
        assert_eq!(Told::plain(&value).is_some(), told, "{value}");
    }
    for (value, told) in [
        (json!("Unconfined"), true),
        (json!("SYS_ADMIN"), true),
        (json!(["SYS_ADMIN", "ALL"]), true),
        (json!("hunter2"), false),
        (json!("a/b"), false),
        (json!(""), false),
        (json!("a".repeat(33)), false),
        (json!(["ALL", 5]), false),
    ] {
        assert_eq!(Told::words(&value).is_some(), told, "{value}");
    }
    for (value, told) in
        [(json!("64Gi"), true), (json!(3), true), (json!("hunter2"), false), (json!("1".repeat(33)), false)]
    {
        assert_eq!(Told::amount(&value).is_some(), told, "{value}");
    }
    assert_eq!(Told::from(Quantity::parse("1024Mi").unwrap()).to_string(), "1Gi");
}

#[test]
fn b38_the_visitor_meets_every_list_in_order() {
    let mut draft = draft(&json!({
        "metadata": {},
        "spec": {
            "ephemeralContainers": [{ "name": "e" }],
            "initContainers": [{ "name": "i" }, { "name": "j" }],
            "containers": [{ "name": "a" }],
        },
    }));
    draft.find_containers();
    let met: Vec<String> = draft.containers().iter().map(|c| format!("{:?} {}", c.list, c.path)).collect();
    assert_eq!(
        met,
        [
            "Containers spec.containers[0]",
            "InitContainers spec.initContainers[0]",
            "InitContainers spec.initContainers[1]",
            "EphemeralContainers spec.ephemeralContainers[0]",
        ]
    );
}

#[test]
fn a_hostile_number_of_containers_is_refused_unread() {
    let mut draft = draft(&json!({ "metadata": {}, "spec": { "initContainers": vec![json!({}); 257] } }));
    draft.find_containers();
    assert!(draft.containers().is_empty());
    assert_eq!(fields(&draft.into_refusal()), ["spec.initContainers"]);
}

#[test]
fn a_hostile_number_of_items_is_refused_unread() {
    let mut draft = draft(&json!({ "short": vec![0; 4096], "long": vec![0; 4097] }));
    assert_eq!(draft.items(&Path::of(&["short"])).len(), 4096);
    assert!(draft.items(&Path::of(&["long"])).is_empty());
    assert_eq!(fields(&draft.into_refusal()), ["long"]);
}

#[test]
fn a_container_that_is_no_object_is_refused() {
    let mut draft = draft(&json!({ "metadata": {}, "spec": { "containers": [null, "a", {}], "initContainers": {} } }));
    draft.find_containers();
    assert_eq!(draft.containers().len(), 1);
    assert_eq!(fields(&draft.into_refusal()), ["spec.containers[0]", "spec.containers[1]", "spec.initContainers"]);
}
