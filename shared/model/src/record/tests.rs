use serde_json::json;

use super::*;
use crate::quantity::Quantity;

fn change(path: impl Into<String>, action: Action) -> Change {
    Change {
        rule: "privilege",
        path: path.into(),
        action,
        old: Some(Told::from(true)),
        new: Some(Told::from(false)),
        removed: false,
    }
}

fn many(count: usize) -> Vec<Change> {
    (0..count).map(|i| change(format!("spec.containers[{i}].securityContext.privileged"), Action::Inject)).collect()
}

#[test]
fn tightened_fields_come_first_and_the_order_is_kept_otherwise() {
    let record = Record::default().with(&[
        change("spec.a", Action::Inject),
        change("spec.b", Action::Tighten),
        change("spec.c", Action::Inject),
        change("spec.d", Action::Tighten),
    ]);
    let paths: Vec<&str> = record.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["spec.b", "spec.d", "spec.a", "spec.c"]);
    assert_eq!(
        Record::default().with(&[change("spec.b", Action::Tighten)]).to_string(),
        r#"[{"rule":"privilege","path":"spec.b","action":"tighten","old":true,"new":false}]"#
    );
}

#[test]
fn a_record_reads_back_and_writes_the_same_text_at_every_size() {
    for count in 0..200 {
        let text = Record::default().with(&many(count)).to_string();
        assert!(text.len() <= MOST, "{count}: {}", text.len());
        let read = Record::read(&text).unwrap();
        assert_eq!(read.to_string(), text, "{count}");
        assert_eq!(u64::try_from(read.changes.len()).unwrap() + read.more, u64::try_from(count).unwrap());
    }
}

#[test]
fn a_record_reads_back_whatever_amounts_it_tells() {
    for amount in ["-1e300", "1e-9", "123456789012345678901234567890123456789e-9", "-8Ei", "0.0000000001Ki"] {
        let told = Some(Told::from(Quantity::parse(amount).unwrap()));
        let text = Record::default().with(&[Change { new: told, ..change("spec.a", Action::Inject) }]).to_string();
        assert_eq!(Record::read(&text).map(|read| read.to_string()), Some(text), "{amount}");
    }
}

#[test]
fn a_full_record_makes_room_for_what_was_tightened_since() {
    let full = Record::default().with(&many(200)).to_string();
    let text = Record::read(&full).unwrap().with(&[change("spec.new", Action::Tighten)]).to_string();
    assert!(text.len() <= MOST);
    assert!(text.starts_with(r#"[{"rule":"privilege","path":"spec.new""#), "{text}");
    let read = Record::read(&text).unwrap();
    assert_eq!(read.changes.len() + usize::try_from(read.more).unwrap(), 201);
}

#[test]
fn a_forged_record_hides_nothing_that_was_tightened_and_never_reaches_the_audit_log() {
    let lies: Vec<Change> = (0..200).map(|i| change(format!("spec.lie{i}"), Action::Tighten)).collect();
    let forged = Record::read(&Record::default().with(&lies).to_string()).unwrap();
    let done = [change("spec.a", Action::Inject), change("spec.true", Action::Tighten)];
    let text = forged.with(&done).to_string();
    assert!(text.starts_with(r#"[{"rule":"privilege","path":"spec.true""#), "{text}");
    let audited = changes_annotation(&done).unwrap();
    assert!(audited.contains("spec.true") && audited.contains("spec.a") && !audited.contains("lie"), "{audited}");
    assert_eq!(changes_annotation(&[]), None);
}

#[test]
fn what_we_would_not_have_written_is_not_read() {
    for forged in [
        "",
        "true",
        "{}",
        r#"[{"rule":"privilege"}]"#,
        r#"[{"rule":"nosuchrule","path":"spec.a","action":"inject"}]"#,
        r#"[{"rule":"privilege","path":"spec.a","action":"tell"}]"#,
        r#"[{"rule":"host","path":"spec.a","action":"tighten"}]"#,
        r#"[{"rule":"scratch","path":"spec.a","action":"tighten"}]"#,
        r#"[{"rule":"privilege","path":"spec.a\u001b[2J","action":"inject"}]"#,
        r#"[{"rule":"privilege","path":"spec.a","action":"inject","note":1}]"#,
        r#"[{"rule":"privilege","path":"spec.a","action":"inject","new":"hunter2-xyz"}]"#,
        r#"[{"rule":"privilege","path":"spec.a","action":"inject","new":{"a":1}}]"#,
        r#"[{"rule":"privilege","path":"spec.a","action":"inject","new":true,"removed":true}]"#,
        r#"[{"more":1},{"rule":"privilege","path":"spec.a","action":"inject"}]"#,
        r#"[{"more":-1}]"#,
    ] {
        assert_eq!(Record::read(forged), None, "{forged}");
    }
    assert_eq!(Record::read(&format!("[{}]", " ".repeat(MOST))), None);
    assert_eq!(Record::read("[]"), Some(Record::default()));
}

#[test]
fn an_outcome_says_what_was_added_removed_or_set() {
    let pod = json!({ "spec": {
        "volumes": [{ "name": "cofferdam-tmp", "emptyDir": { "sizeLimit": "256Mi" } }],
        "containers": [{ "volumeMounts": [{ "name": "cofferdam-tmp", "mountPath": "/tmp" }], "env": [{ "name": "HOME", "value": "/x" }] }],
    } });
    let untold = |path: &str| Change { old: None, new: None, ..change(path, Action::Inject) };
    let removed = |change: Change| Change { new: None, removed: true, ..change };
    for (change, says) in [
        (change("spec.a", Action::Tighten), "true -> false"),
        (removed(change("spec.a", Action::Tighten)), "true -> removed"),
        (removed(untold("spec.volumes[0]")), "removed"),
        (untold("spec.volumes[0]"), "added cofferdam-tmp, 256Mi"),
        (untold("spec.containers[0].volumeMounts[0]"), "added cofferdam-tmp at /tmp"),
        (untold("spec.containers[0].env[0]"), "added HOME"),
        (untold("spec.volumes[7]"), "added"),
        (untold("spec.b"), "set"),
    ] {
        let text = Record::default().with(&[change]).to_string();
        assert_eq!(Record::read(&text).unwrap().changes[0].outcome(&pod), says, "{text}");
    }
}
