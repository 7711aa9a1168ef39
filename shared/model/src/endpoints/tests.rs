use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::*;
use crate::ports::MOST;

fn tcp() -> Endpoint {
    Endpoint {
        port: 3000,
        protocol: Protocol::Tcp,
        host: Some("3000-abc.example.com".to_owned()),
        url: Some("https://3000-abc.example.com/".to_owned()),
        route: Some(State { state: RouteState::Programmed, reason: None }),
        listening: Some(State {
            state: ListeningState::Unreachable,
            reason: Some("Refused: nothing listens".to_owned()),
        }),
        address: Some(Address { state: AddressState::Reachable, identity: Some(Identity::Proved), reason: None }),
    }
}

fn udp() -> Endpoint {
    Endpoint { port: 4000, protocol: Protocol::Udp, host: None, url: None, route: None, listening: None, address: None }
}

#[test]
fn the_annotation_is_as_it_is_promised() {
    let endpoints = Endpoints::new("3000/tcp,4000/udp".to_owned(), vec![tcp(), udp()]);
    let text = concat!(
        r#"{"v":1,"forPorts":"3000/tcp,4000/udp","ports":[{"port":3000,"protocol":"tcp","#,
        r#""host":"3000-abc.example.com","url":"https://3000-abc.example.com/","route":{"state":"programmed"},"#,
        r#""listening":{"state":"unreachable","reason":"Refused: nothing listens"},"#,
        r#""address":{"state":"reachable","identity":"proved"}},{"port":4000,"protocol":"udp"}]}"#,
    );
    assert_eq!(endpoints.to_string(), text);
    assert_eq!(Endpoints::parse(text), Some(endpoints));
}

#[test]
fn every_state_has_the_word_that_is_promised() {
    let word = |state: Value| state.as_str().unwrap().to_owned();
    let words = |states: [Value; 3]| states.map(word);
    let route = [RouteState::Pending, RouteState::Programmed, RouteState::Unprogrammed];
    assert_eq!(words(route.map(|state| json!(state))), ["pending", "programmed", "unprogrammed"]);
    let listening = [ListeningState::Checking, ListeningState::Reachable, ListeningState::Unreachable];
    assert_eq!(words(listening.map(|state| json!(state))), ["checking", "reachable", "unreachable"]);
    let address = [AddressState::Pending, AddressState::Reachable, AddressState::Unreachable];
    assert_eq!(words(address.map(|state| json!(state))), ["pending", "reachable", "unreachable"]);
    assert_eq!([Identity::Proved, Identity::Unproved].map(|who| word(json!(who))), ["proved", "unproved"]);
}

#[test]
fn what_is_of_another_format_is_nothing() {
    let good = r#"{"v":1,"forPorts":"","ports":[]}"#;
    assert!(Endpoints::parse(good).is_some());
    for (was, is) in [
        ("1", "2"),
        (r#""v":1,"#, ""),
        ("1", r#""1""#),
        (r#""forPorts":"""#, r#""forPorts":null"#),
        ("[]", "{}"),
        ("[]", r#"[{"port":0.5,"protocol":"tcp"}]"#),
        ("[]", r#"[{"port":65536,"protocol":"tcp"}]"#),
        ("[]", r#"[{"port":1,"protocol":"sctp"}]"#),
        ("[]", r#"[{"port":1,"protocol":"tcp","route":{"state":"fine"}}]"#),
        ("}", ""),
        ("{", "{]"),
    ] {
        let text = good.replacen(was, is, 1);
        assert_eq!(Endpoints::parse(&text), None, "{text}");
    }
    assert_eq!(Endpoints::parse(""), None);
}

#[test]
fn a_member_of_a_later_release_is_in_nobodys_way() {
    let text = r#"{"v":1,"forPorts":"","ports":[{"port":1,"protocol":"tcp","weather":{}}],"more":7}"#;
    assert_eq!(Endpoints::parse(text).map(|endpoints| endpoints.ports.len()), Some(1));
}

#[test]
fn a_reason_is_one_line_and_cut_between_characters() {
    let said = |reason: &str| {
        let endpoint =
            Endpoint { route: Some(State { state: RouteState::Pending, reason: Some(reason.to_owned()) }), ..udp() };
        let ports = Endpoints::new(String::new(), vec![endpoint]).ports;
        ports[0].route.as_ref().and_then(|route| route.reason.clone()).unwrap()
    };
    assert_eq!(said("Pending: soon"), "Pending: soon");
    assert_eq!(said(" a\n\tb\u{0}\u{2028}c\r\n"), "a b c");
    assert_eq!(said(&"a".repeat(256)), "a".repeat(256));
    assert_eq!(said(&"a".repeat(257)), format!("{}…", "a".repeat(253)));
    assert_eq!(said(&"é".repeat(129)), format!("{}…", "é".repeat(126)));
    assert_eq!(said(&"\"".repeat(129)), format!("{}…", "\"".repeat(126)));
}

/// Reasons in letters that JSON writes short and long, nearly all of them too long.
fn reason() -> impl Strategy<Value = Option<String>> {
    let reason = prop_oneof![
        9 => "[\"\\\\a\\n]{700}",
        9 => "[😀é\u{7f}]{700}",
        1 => any::<String>(),
    ];
    option::weighted(0.95, reason)
}

/// What is longest of all that can be said of a port.
fn endpoint() -> impl Strategy<Value = Endpoint> {
    let states = (
        select(vec![RouteState::Pending, RouteState::Unprogrammed]),
        select(vec![ListeningState::Checking, ListeningState::Unreachable]),
        select(vec![AddressState::Pending, AddressState::Unreachable]),
        select(vec![Identity::Proved, Identity::Unproved]),
    );
    (states, (reason(), reason(), reason())).prop_map(|((route, listening, address, identity), reasons)| Endpoint {
        port: u16::MAX,
        host: Some("a".repeat(253)),
        url: Some(format!("https://{}:65535/", "a".repeat(253))),
        route: Some(State { state: route, reason: reasons.0 }),
        listening: Some(State { state: listening, reason: reasons.1 }),
        address: Some(Address { state: address, identity: Some(identity), reason: reasons.2 }),
        ..tcp()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn whatever_is_said_of_32_ports_is_less_than_64_kib_and_reads_back(ports in vec(endpoint(), MOST)) {
        let for_ports = ["65535/tcp"; MOST].join(",");
        let endpoints = Endpoints::new(for_ports, ports);
        let text = endpoints.to_string();
        prop_assert!(text.len() < 64 * 1024, "{} bytes", text.len());
        prop_assert!(!text.contains(char::is_control));
        prop_assert_eq!(Endpoints::parse(&text), Some(endpoints));
    }
}
