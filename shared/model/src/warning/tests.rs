use super::*;
use crate::change::{Action, Told};

fn tightened(path: &str) -> Change {
    Change {
        rule: "privilege",
        path: path.to_owned(),
        action: Action::Tighten,
        old: Some(Told::from(true)),
        new: Some(Told::from(false)),
        removed: false,
    }
}

#[test]
fn a_warning_names_the_field_the_old_and_the_new_value_and_the_rule() {
    let injected = Change { action: Action::Inject, ..tightened("spec.hostUsers") };
    let removed = Change { old: None, new: None, removed: true, ..tightened("spec.x") };
    assert_eq!(
        warnings(&[tightened("spec.containers[0].securityContext.privileged"), injected, removed]),
        ["spec.containers[0].securityContext.privileged: true, now false (privilege)", "spec.x: removed (privilege)",]
    );
}

#[test]
fn a_long_path_loses_its_middle_and_never_half_a_character() {
    for letter in ["a", "ü", "漢"] {
        let path = format!("spec.{}.end", letter.repeat(300));
        let warning = &warnings(&[tightened(&path)])[0];
        assert!(warning.len() <= LONGEST && warning.len() > LONGEST - 8, "{}", warning.len());
        assert!(warning.starts_with("spec.") && warning.ends_with(".end: true, now false (privilege)"), "{warning}");
    }
}

#[test]
fn what_does_not_fit_is_counted_in_the_last_warning() {
    let many: Vec<Change> =
        (0..1000).map(|i| tightened(&format!("spec.containers[{i}].securityContext.privileged"))).collect();
    let warnings = warnings(&many);
    let (last, shown) = warnings.split_last().unwrap();
    assert!(warnings.iter().map(String::len).sum::<usize>() <= ALL);
    assert!(shown.len() > 40);
    let rest = 1000 - shown.len();
    assert_eq!(
        last,
        &format!("{rest} more fields were tightened; annotation cofferdam.dev/changes lists what was changed")
    );
}

#[test]
fn as_many_as_fit_exactly_are_all_shown() {
    let one = warning(&tightened("spec.x")).len();
    let fitting: Vec<Change> = (0..ALL / one).map(|_| tightened("spec.x")).collect();
    assert_eq!(warnings(&fitting).len(), ALL / one);
    let one_too_many = [&fitting[..], &fitting[..1]].concat();
    assert!(warnings(&one_too_many).last().unwrap().ends_with("lists what was changed"));
}
