use std::collections::HashSet;
use std::path::Path;
use std::{env, fs};

use super::*;

fn written() -> Value {
    serde_json::from_str(&document()).unwrap()
}

/// Every `$ref` below a value.
fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn the_page_is_what_the_code_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    if env::var_os("COFFERDAM_UPDATE").is_some() {
        fs::write(&path, document()).unwrap();
    }
    let page = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(page, document(), "run the test with COFFERDAM_UPDATE=1 and commit docs/openapi.json");
}

#[test]
fn every_route_is_there_with_what_it_leaves_open_and_an_id_of_its_own() {
    let document = written();
    let mut ids = HashSet::new();
    let mut operations = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            operations += 1;
            let is_entry = |entry: &&Entry| entry.path == path && entry.method.as_str().eq_ignore_ascii_case(method);
            assert_eq!(ENTRIES.iter().filter(is_entry).count(), 1, "{method} {path}");
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{method} {path}");
            assert!(operation["responses"].as_object().is_some_and(|answers| !answers.is_empty()));
            let open: Vec<_> = path.split(['{', '}']).skip(1).step_by(2).collect();
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let told: Vec<_> = parameters.filter(|one| one["in"] == "path").map(|one| &one["name"]).collect();
            assert_eq!(told, open, "{method} {path}");
        }
    }
    assert_eq!(operations, ENTRIES.len());
}

#[test]
fn a_route_that_is_not_for_everybody_says_how_it_refuses_a_caller() {
    let document = written();
    for Entry { method, path, audience, .. } in &ENTRIES {
        let answers = &document["paths"][path][method.as_str().to_ascii_lowercase()]["responses"];
        let told: Vec<_> = ["401", "403", "503"].into_iter().filter(|status| !answers[status].is_null()).collect();
        let expected: &[&str] = match audience {
            Audience::Public => &["403"],
            Audience::Callers | Audience::Readers => &["401", "403", "503"],
            // By codes that a socket is closed with.
            Audience::Sockets => &[],
        };
        assert_eq!(told, expected, "{method} {path}");
    }
}

#[test]
fn every_reference_leads_somewhere_and_nothing_is_described_in_vain() {
    let document = written();
    let mut found = Vec::new();
    references(&document, &mut found);
    for reference in &found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        let is_used = found.iter().any(|reference| reference.ends_with(&format!("/{name}")));
        assert!(is_used || name == "Event", "{name}");
    }
}

#[test]
fn a_type_that_is_sent_both_ways_looks_the_same_both_ways() {
    let mut schemas = Schemas::new();
    for entry in &ENTRIES {
        let operation = routes::operation(entry.route, &mut schemas);
        operation.into_value(entry.audience, &mut schemas);
    }
    let (sent, answered) = (schemas.sent.take_definitions(true), schemas.answered.take_definitions(true));
    for (name, schema) in &sent {
        assert!(answered.get(name).is_none_or(|other| other == schema), "{name}");
    }
}
