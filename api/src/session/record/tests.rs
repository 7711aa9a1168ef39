use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::wire::{PortProtocol, Status};

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

fn id() -> SessionId {
    SessionId::parse("abc234").unwrap()
}

fn record() -> Record {
    Record {
        created_at: "2026-11-30T18:00:00.120Z".parse().unwrap(),
        mode: Mode::Run,
        inspect: true,
        image: Some("registry.example.com/node:1".to_owned()),
        stream_token: Some(TokenDigest::of("5tr34m")),
        apps: vec![App {
            name: "app".to_owned(),
            io: Io::Tty,
            ports: vec![Port { port: 3000, protocol: PortProtocol::Tcp }],
        }],
    }
}

#[test]
fn d10_values_are_under_keys_that_say_nothing_and_the_token_is_under_its_own() {
    let confidential =
        Confidential::new(environment(&[("API_KEY", "hunter2"), ("a b", "")]), Some("t0k3n".to_owned())).unwrap();
    let secret = record().secret(&id(), "n", &confidential);
    assert_eq!((&secret["metadata"]["name"], &secret["metadata"]["namespace"]), (&json!("s-abc234"), &json!("n")));
    assert_eq!(
        secret["metadata"]["labels"],
        json!({ "cofferdam.dev/session": "abc234", "app.kubernetes.io/managed-by": "cofferdam-api" })
    );
    let decoded =
        |key: &str| String::from_utf8(STANDARD.decode(secret["data"][key].as_str().unwrap()).unwrap()).unwrap();
    assert_eq!([decoded("env-0"), decoded("env-1"), decoded("token")], ["hunter2", "", "t0k3n"]);
    assert_eq!(confidential.names().collect::<Vec<_>>(), ["API_KEY", "a b"]);
    assert_eq!((&secret["immutable"], &secret["type"]), (&Value::Null, &json!("Opaque")));
    let metadata = secret["metadata"].to_string();
    assert!(["API_KEY", "hunter2", "t0k3n", "5tr34m"].iter().all(|word| !metadata.contains(word)), "{metadata}");
    assert_eq!(Record::read(&json!({ "metadata": secret["metadata"] })), Some(record()));
}

#[test]
fn d10_nothing_is_shown_of_what_is_confidential() {
    let confidential = Confidential::new(environment(&[("NAME", "hunter2")]), Some("t0k3n".to_owned())).unwrap();
    assert_eq!(format!("{confidential:?}"), "Confidential");
}

#[test]
fn d17_what_no_program_can_be_given_is_told_before_the_session_is_promised() {
    let long = |length| "v".repeat(length);
    let most = long(LONGEST_VARIABLE - 1);
    for (variables, expected) in [
        (vec![("", "v")], Err(EnvironmentError::Name(1))),
        (vec![("A", "v"), ("B=C", "v")], Err(EnvironmentError::Name(2))),
        (vec![("A\n", "v")], Err(EnvironmentError::Name(1))),
        (vec![("Ä", "v")], Err(EnvironmentError::Name(1))),
        (vec![("A", "v\0")], Err(EnvironmentError::Nul(1))),
        (vec![("AB", &most)], Err(EnvironmentError::TooLong(1))),
        // As Kubernetes takes them since 1.34.
        (vec![("A", &most), ("1-a.b c~!", "ä\n")], Ok(())),
    ] {
        assert_eq!(Confidential::new(environment(&variables), None).map(drop), expected);
    }
    let named = |count: usize, value: &str| {
        Environment((0..count).map(|number| (format!("{number:05}"), value.to_owned())).collect())
    };
    assert_eq!(Confidential::new(named(1001, ""), None), Err(EnvironmentError::TooMany));
    assert_eq!(Confidential::new(named(11, &long(100_000)), None), Err(EnvironmentError::TooLarge));
    let long_names =
        |length| Environment((0..3).map(|n| (format!("{n}{}", long(length - 1)), String::new())).collect());
    assert_eq!(Confidential::new(long_names(LARGEST_NAMES / 3 + 1), None), Err(EnvironmentError::NamesTooLarge));
    assert!(Confidential::new(long_names(LARGEST_NAMES / 3), None).is_ok());
    let largest = Confidential::new(named(1000, &long(1042)), Some(long(48))).unwrap();
    let secret = record().secret(&id(), "cofferdam-sessions", &largest);
    let values = secret["data"].as_object().unwrap().values();
    let bytes = values.map(|value| STANDARD.decode(value.as_str().unwrap()).unwrap().len()).sum::<usize>();
    assert!(bytes <= 1024 * 1024, "the most that a Secret holds: {bytes}");
}

#[test]
fn a_secret_that_is_none_of_ours_is_no_record() {
    let annotated = |text: String| json!({"metadata": {"annotations": {"cofferdam.dev/record": text}}});
    let with = |key: &str, value: Value| {
        let mut written = json!(Written { v: VERSION, record: record() });
        written[key] = value;
        annotated(written.to_string())
    };
    assert_eq!(Record::read(&with("later", json!(1))), Some(record()), "what a later version adds is no harm");
    for secret in
        [json!({}), annotated("{}".to_owned()), annotated("%".to_owned()), with("v", json!(2)), with("apps", json!([]))]
    {
        assert_eq!(Record::read(&secret), None);
    }
}

#[test]
fn a_session_is_told_as_clients_of_the_contract_read_it() {
    let session = record().session(&id(), Status::Exited { code: 3 }, Some("2026-11-30T19:00:00Z".parse().unwrap()));
    assert_eq!(
        json!(session),
        json!({
            "sessionId": "abc234",
            "status": {"kind": "exited", "code": 3},
            "createdAt": "2026-11-30T18:00:00.120Z",
            "exitedAt": "2026-11-30T19:00:00.000Z",
            "mode": "run",
            "apps": [{"name": "app", "io": "tty", "generation": 1, "ports": [{"port": 3000, "protocol": "tcp"}]}],
        })
    );
}

proptest! {
    #[test]
    fn what_is_accepted_comes_back_from_the_secret_and_fits_it(
        variables in prop::collection::vec(("[ -~]{0,6}", "(?s).{0,40}"), 0..20),
        token in prop::option::of("[0-9a-f]{48}"),
    ) {
        let environment = Environment(variables.clone());
        if let Ok(confidential) = Confidential::new(environment, token.clone()) {
            let secret = record().secret(&id(), "n", &confidential);
            for (place, (_, value)) in variables.iter().enumerate() {
                let encoded = secret["data"][variable_key(place)].as_str().unwrap();
                prop_assert_eq!(&STANDARD.decode(encoded).unwrap(), value.as_bytes());
            }
            prop_assert_eq!(secret["data"].as_object().unwrap().len(), variables.len() + usize::from(token.is_some()));
        }
    }
}
