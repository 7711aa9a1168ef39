use serde::Deserialize;

use super::*;
use crate::wire::{CreateAppSession, CreateSession, Environment, Mode};

/// What a create of the contract looks like, with one part replaced.
fn create(part: &str, value: &str) -> String {
    let mut text =
        r#"{"bundle": BUNDLE, "env": ENV, "ports": PORTS, "config": CONFIG, "inspect": INSPECT, "mode": MODE}"#
            .replace(part, value);
    for (part, value) in [
        ("BUNDLE", r#"{"entryRelativePath": "a.yaml", "files": [{"relativePath": "a.yaml", "contents": "x"}]}"#),
        ("ENV", r#"{"A": "1"}"#),
        ("PORTS", r#"[{"port": 3000, "protocol": "tcp"}]"#),
        ("CONFIG", r#"{"image": "i", "pullPolicy": "missing"}"#),
        ("INSPECT", "true"),
        ("MODE", r#""run""#),
    ] {
        text = text.replace(part, value);
    }
    text
}

fn read(text: &str) -> Result<CreateSession, String> {
    let mut document = Document::parse(text.as_bytes()).map_err(|error| error.to_string())?;
    Shape::of::<CreateSession>().check(&mut document)?;
    // What passes is what the type takes.
    CreateSession::deserialize(document).map_err(|error| error.to_string())
}

#[test]
fn nothing_of_what_is_taken_goes_unchecked() {
    fn has_any(kind: &Kind) -> bool {
        match kind {
            Kind::Any => true,
            Kind::List { of, .. } | Kind::OrNull(of) => has_any(of),
            // Of what nobody knows anything may come, unless it is all that comes.
            Kind::Members { known, others, .. } => {
                known.iter().any(|(_, kind)| has_any(kind)) || (known.is_empty() && has_any(others))
            }
            Kind::Truth | Kind::Integer { .. } | Kind::Text { .. } | Kind::Word(_) => false,
        }
    }
    for shape in [Shape::of::<CreateSession>(), Shape::of::<CreateAppSession>()] {
        assert!(!has_any(&shape.0), "{shape:?}");
    }
}

#[test]
fn the_first_thing_that_is_wrong_is_named_in_the_words_that_clients_know() {
    let many = format!("[{}]", [r#"{"port": 1, "protocol": "tcp"}"#; 33].join(","));
    let long = format!(r#"[{{"name": "{}", "entryRelativePath": "a"}}]"#, "n".repeat(64));
    for (part, value, sentence) in [
        ("BUNDLE", r#"{"entryRelativePath": "a"}"#, "body/bundle must have required property 'files'"),
        ("BUNDLE", r#""a""#, "body/bundle must be object"),
        (
            "BUNDLE",
            r#"{"entryRelativePath": "", "files": []}"#,
            "body/bundle/entryRelativePath must NOT have fewer than 1 characters",
        ),
        (
            "BUNDLE",
            r#"{"entryRelativePath": "a", "files": [{"relativePath": "a", "contents": "x"}, {"relativePath": "b"}]}"#,
            "body/bundle/files/1 must have required property 'contents'",
        ),
        (
            "BUNDLE",
            r#"{"entryRelativePath": "a", "files": [{"relativePath": "a", "contents": {}}]}"#,
            "body/bundle/files/0/contents must be string",
        ),
        (
            "BUNDLE",
            r#"{"entryRelativePath": "a", "files": [{"relativePath": "a", "contents": "", "encoding": "hex"}]}"#,
            "body/bundle/files/0/encoding must be equal to one of the allowed values",
        ),
        ("ENV", r#"{"A/~B": {}}"#, "body/env/A~1~0B must be string"),
        ("PORTS", r#"[{"port": 0, "protocol": "tcp"}]"#, "body/ports/0/port must be >= 1"),
        ("PORTS", r#"[{"port": 65536, "protocol": "tcp"}]"#, "body/ports/0/port must be <= 65535"),
        ("PORTS", r#"[{"port": 1e30, "protocol": "tcp"}]"#, "body/ports/0/port must be <= 65535"),
        ("PORTS", r#"[{"port": 80.5, "protocol": "tcp"}]"#, "body/ports/0/port must be integer"),
        ("PORTS", r#"[{"port": "inf", "protocol": "tcp"}]"#, "body/ports/0/port must be integer"),
        (
            "PORTS",
            r#"[{"port": 80, "protocol": "sctp"}]"#,
            "body/ports/0/protocol must be equal to one of the allowed values",
        ),
        ("PORTS", &many, "body/ports must NOT have more than 32 items"),
        ("CONFIG", "{}", "body/config must have required property 'image'"),
        ("CONFIG", r#"{"image": [], "pullPolicy": "missing"}"#, "body/config/image must be string"),
        ("INSPECT", r#""yes""#, "body/inspect must be boolean"),
        ("MODE", r#""forever""#, "body/mode must be equal to one of the allowed values"),
        ("MODE", r#""run", "apps": []"#, "body/apps must NOT have fewer than 1 items"),
        ("MODE", &format!(r#""run", "apps": {long}"#), "body/apps/0/name must NOT have more than 63 characters"),
    ] {
        assert_eq!(read(&create(part, value)).unwrap_err(), sentence);
    }
    for (text, sentence) in [
        ("[]", "body must be object"),
        ("null", "body must be object"),
        ("{}", "body must have required property 'bundle'"),
    ] {
        assert_eq!(read(text).unwrap_err(), sentence);
    }
}

#[test]
fn b15_a_scalar_of_another_type_is_taken_for_what_it_stands_for() {
    let env = |value: &str| read(&create("ENV", &format!(r#"{{"A": {value}}}"#))).unwrap().env;
    for (value, text) in [
        ("3000", "3000"),
        ("-1", "-1"),
        ("0.5", "0.5"),
        ("2.0", "2"),
        ("536870912", "536870912"),
        ("true", "true"),
        ("null", ""),
        (r#"["x"]"#, "x"),
    ] {
        assert_eq!(env(value), Environment(vec![("A".to_owned(), text.to_owned())]), "{value}");
    }
    for port in [r#""3000""#, "3000.0", r#"" 3e3 ""#, "[3000]"] {
        let create = read(&create("PORTS", &format!(r#"[{{"port": {port}, "protocol": "tcp"}}]"#))).unwrap();
        assert_eq!(create.ports[0].port, 3000, "{port}");
    }
    let one = read(&create("PORTS", r#"[[{"port": 1, "protocol": "udp"}]]"#)).unwrap();
    assert_eq!(one.ports[0].port, 1);
    for (value, is) in [(r#""true""#, true), (r#""false""#, false), ("1", true), ("0", false), ("null", false)] {
        assert_eq!(read(&create("INSPECT", value)).unwrap().inspect, is, "{value}");
    }
    assert_eq!(read(&create("MODE", r#"["watch"]"#)).unwrap().mode, Mode::Watch);
    assert_eq!(read(&create("MODE", r#""run", "apps": null"#)).unwrap().apps, None);
}

#[test]
fn variables_come_in_the_order_in_which_they_were_sent() {
    let env = read(&create("ENV", r#"{"Z": "1", "A": "$(Z)"}"#)).unwrap().env;
    assert_eq!(env.0[0].0, "Z");
}

#[test]
fn the_place_of_a_fault_is_cut_and_no_value_is_told() {
    let sentence = read(&create("ENV", &format!(r#"{{"{}": [{{"secret": 1}}]}}"#, "é".repeat(100_000)))).unwrap_err();
    assert!(sentence.len() < 500 && sentence.ends_with("… must be string"), "{sentence}");
    assert!(!sentence.contains("secret"));
}
