//! `policy`: check, show, params, schema.

use crate::program::run;

#[test]
fn a_policy_is_checked_with_file_line_key_and_what_was_meant() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    std::fs::write(file.path(), "profiles:\n  default:\n    lifetime:\n      deadlineSecond: 60\n").unwrap();
    let wrong = run(&["policy", "check", path], "");
    assert_eq!((wrong.code, wrong.out.as_str()), (2, ""));
    assert!(wrong.notes.contains(&format!("{path}:4: ")) && wrong.notes.contains("deadlineSeconds"), "{}", wrong.notes);
    std::fs::write(file.path(), "profiles: {default: {}}\n").unwrap();
    let right = run(&["policy", "check", path], "");
    assert_eq!(right.code, 0, "{}", right.notes);
    assert!(right.out.contains("default"), "{}", right.out);
}

#[test]
fn a_check_notes_that_the_gateway_reaches_no_session() {
    let on = "profiles: {default: {}}\nrouting: {baseDomain: sessions.example.com}\n";
    for (policy, is_noted) in [
        (on.to_owned(), true),
        (format!("{on}network: {{dataPlaneNamespaces: [edge]}}\n"), false),
        (format!("{on}network: {{mode: manual}}\n"), false),
        ("profiles: {default: {}}\n".to_owned(), false),
    ] {
        let checked = run(&["policy", "check", "-"], &policy);
        assert_eq!(checked.code, 0, "{policy}: {}", checked.notes);
        assert_eq!(checked.out.contains("note: network.dataPlaneNamespaces is empty"), is_noted, "{policy}");
    }
}

#[test]
fn a_policy_on_standard_input_is_taken_as_one_in_a_file() {
    const POLICY: &str = "profiles: {default: {lifetime: {deadlineSeconds: 60}}}\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), POLICY).unwrap();
    for command in ["check", "show", "params"] {
        let of_file = run(&["policy", command, file.path().to_str().unwrap()], "");
        let of_input = run(&["policy", command, "-"], POLICY);
        assert_eq!((of_input.code, &of_input.out), (0, &of_file.out), "{command}: {}", of_input.notes);
        let wrong = run(&["policy", command, "-"], "profiles:\n  defualt: {}\n");
        assert_eq!((wrong.code, wrong.out.as_str()), (2, ""), "{command}");
        assert!(wrong.notes.contains("standard input:2: "), "{command}: {}", wrong.notes);
    }
}

#[test]
fn a_shown_policy_is_the_same_policy_and_says_everything() {
    let shown = run(&["policy", "show"], "");
    assert_eq!(shown.code, 0, "{}", shown.notes);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &shown.out).unwrap();
    let again = run(&["policy", "show", file.path().to_str().unwrap()], "");
    assert_eq!(again.out, shown.out, "{}", again.notes);
    assert!(shown.out.contains("deadlineSeconds: 3600"), "{}", shown.out);
}

#[test]
fn parameters_come_as_a_config_map_and_the_schema_as_json() {
    let params = run(&["policy", "params", "--namespace=elsewhere"], "");
    let object: serde_json::Value = serde_saphyr::from_str(&params.out).unwrap();
    assert_eq!((&object["kind"], &object["metadata"]["namespace"]), (&"ConfigMap".into(), &"elsewhere".into()));
    assert!(object["data"].as_object().unwrap().values().all(serde_json::Value::is_string));
    let schema = run(&["policy", "schema"], "");
    let schema: serde_json::Value = serde_json::from_str(&schema.out).unwrap();
    assert!(schema["properties"]["profiles"].is_object());
}
