use cofferdam_model::endpoints::Identity::{Proved, Unproved};
use cofferdam_model::keys;
use cofferdam_model::policy::{PublicUrl, Scheme};
use serde_json::{Value, json};

use super::*;
use crate::desired::testing::{gateway, ingress, routing, session};
use crate::probe::{Closed, Failure};
use crate::session::{Phase, Told};

mod properties;

const NOW: &str = "2026-01-01T00:00:00Z";

/// Facts with nothing known yet.
fn facts<'a>(session: &'a Session, routing: &'a Routing, layer: &'a Layer) -> Facts<'a> {
    let (verdicts, probes) = (BTreeMap::new(), BTreeMap::new());
    Facts { session, routing, layer: Ok(layer), hindrance: None, verdicts, probes }
}

fn programmed() -> Verdict {
    Verdict::Programmed { is_weak: false }
}

fn all_well() -> Observation {
    Observation { listening: Some(Ok(())), address: Some(Ok(Proved)), so_far: None }
}

/// The reasons, in the order of the conditions.
fn words(report: &Report) -> [&str; 4] {
    let mut words = [""; 4];
    for (word, condition) in words.iter_mut().zip(&report.conditions) {
        *word = condition.reason.as_str();
    }
    words
}

fn message(report: &Report, type_: ConditionType) -> &str {
    let condition = report.conditions.iter().find(|condition| condition.type_ == type_);
    condition.map_or("", |condition| &condition.message)
}

fn annotation(report: &Report) -> Value {
    serde_json::from_str(&report.endpoints.to_string()).unwrap_or_default()
}

#[test]
fn all_four_conditions_are_there_after_the_first_look() {
    let (session, routing, layer) = (session("3000,4000/udp"), routing(), gateway(true));
    let report = report(&facts(&session, &routing, &layer));
    let told = report.told();
    let told = told.conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str(), c.reason.as_str()));
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("cofferdam.dev/Hardened", "True", "Hardened"),
            ("cofferdam.dev/PortsReachable", "Unknown", "Checking"),
            ("cofferdam.dev/RouteProgrammed", "Unknown", "Pending"),
            ("cofferdam.dev/RouteReachable", "Unknown", "Pending"),
        ]
    );
    assert_eq!(
        annotation(&report),
        json!({
            "v": 1,
            "forPorts": "3000/tcp,4000/udp",
            "ports": [
                {
                    "port": 3000, "protocol": "tcp",
                    "host": "3000-2abc.sessions.example.test",
                    "url": "https://3000-2abc.sessions.example.test/",
                    "route": { "state": "pending", "reason": "Pending: The route has not been made yet." },
                    "listening": { "state": "checking", "reason": "Checking: It is being dialled." },
                    "address": { "state": "pending", "reason": "Pending: The route has not been made yet." },
                },
                { "port": 4000, "protocol": "udp" },
            ],
        })
    );
}

#[test]
fn a_session_that_works_says_so_in_few_words() {
    let (session, layer) = (session("3000"), gateway(true));
    let routing = Routing { public_url: PublicUrl { scheme: Scheme::Http, port: Some(8080) }, ..routing() };
    let mut facts = facts(&session, &routing, &layer);
    facts.verdicts.insert(3000, programmed());
    facts.probes.insert(3000, all_well());
    let report = report(&facts);
    assert_eq!(words(&report), ["Hardened", "AllReachable", "Programmed", "Reachable"]);
    assert!(report.conditions.iter().all(|condition| condition.reason.status() == Status::True));
    assert_eq!(
        annotation(&report)["ports"][0],
        json!({
            "port": 3000, "protocol": "tcp",
            "host": "3000-2abc.sessions.example.test", "url": "http://3000-2abc.sessions.example.test:8080/",
            "route": { "state": "programmed" },
            "listening": { "state": "reachable" },
            "address": { "state": "reachable", "identity": "proved" },
        })
    );
}

#[test]
fn what_is_weaker_is_called_weaker() {
    let (session, routing, layer) = (session("3000"), routing(), ingress());
    let mut facts = facts(&session, &routing, &layer);
    facts.verdicts.insert(3000, Verdict::Programmed { is_weak: true });
    facts.probes.insert(3000, Observation { address: Some(Ok(Unproved)), ..all_well() });
    let report = report(&facts);
    assert_eq!(words(&report), ["Hardened", "AllReachable", "AddressAssigned", "ReachableUnproved"]);
    let port = &annotation(&report)["ports"][0];
    assert_eq!(port["address"], json!({ "state": "reachable", "identity": "unproved" }));
    assert!(port["route"]["reason"].as_str().is_some_and(|reason| reason.starts_with("AddressAssigned: ")));
}

#[test]
fn a_condition_is_the_worst_of_all_ports_and_names_them() {
    let (session, routing, layer) = (session("3000,3001,3002,3003"), routing(), gateway(true));
    let mut facts = facts(&session, &routing, &layer);
    let closed = |closed| Observation { listening: Some(Err(closed)), address: None, so_far: None };
    for (port, observation) in [
        (3000, all_well()),
        (3001, closed(Closed::Refused)),
        (3002, closed(Closed::TimedOut)),
        (3003, closed(Closed::Refused)),
    ] {
        facts.verdicts.insert(port, programmed());
        facts.probes.insert(port, observation);
    }
    facts.verdicts.insert(
        3002,
        Verdict::Refused { reason: Reason::RefusedByController, message: "NotAllowedByListeners: no.".to_owned() },
    );
    let report = report(&facts);
    assert_eq!(words(&report), ["Hardened", "TimedOut", "RefusedByController", "NotProgrammed"]);
    assert_eq!(
        message(&report, ConditionType::PortsReachable),
        "3002: Nobody answers: a network policy drops what agents send, or the pod hangs. 3001, 3003: Nothing listens \
         there at the pod's address, or a network policy answers in its place; who listens on 127.0.0.1 cannot be reached from \
         outside."
    );
    assert_eq!(message(&report, ConditionType::RouteProgrammed), "3002: NotAllowedByListeners: no.");
    let port = &annotation(&report)["ports"][2];
    assert_eq!(port["route"]["reason"], "RefusedByController: NotAllowedByListeners: no.");
    assert_eq!(port["route"]["state"], "unprogrammed");
    assert_eq!(annotation(&report)["ports"][0]["address"]["state"], "reachable");
}

#[test]
fn b138_programmed_and_reachable_are_two_facts() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    let mut facts = facts(&session, &routing, &layer);
    let refused = Verdict::Refused { reason: Reason::GatewayNotProgrammed, message: "AddressNotAssigned".to_owned() };
    for (verdict, address, expected) in [
        (refused.clone(), Some(Ok(Proved)), ["GatewayNotProgrammed", "Reachable"]),
        (refused.clone(), None, ["GatewayNotProgrammed", "NotProgrammed"]),
        (refused, Some(Err(Failure::NotRouted(404))), ["GatewayNotProgrammed", "NotRouted"]),
        // Case B132.
        (Verdict::Pending("x".to_owned()), Some(Ok(Proved)), ["Pending", "Reachable"]),
        (Verdict::Unreadable("x".to_owned()), Some(Ok(Proved)), ["StatusUnreadable", "Reachable"]),
        (programmed(), None, ["Programmed", "Pending"]),
        (programmed(), Some(Err(Failure::NotRouted(404))), ["Programmed", "NotRouted"]),
    ] {
        facts.verdicts.insert(3000, verdict);
        facts.probes.insert(3000, Observation { listening: Some(Ok(())), address, so_far: None });
        assert_eq!(words(&report(&facts))[2..], expected);
    }
}

#[test]
fn an_address_that_does_not_work_says_how() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    let mut facts = facts(&session, &routing, &layer);
    facts.verdicts.insert(3000, programmed());
    for (failure, word, says) in [
        (Failure::NoAnswer("refuses the connection"), "NoAnswer", "3000: The gateway refuses the connection."),
        (
            Failure::NotRouted(404),
            "NotRouted",
            "3000: The gateway answers 404 for 3000-2abc.sessions.example.test, and not by this session's route.",
        ),
        (
            Failure::BadGateway(503),
            "BadGateway",
            "3000: The gateway answers 503 for 3000-2abc.sessions.example.test, and the pod itself does not: it does not \
             reach the pod, or what answers there is no HTTP.",
        ),
        (
            Failure::TlsFailed("the certificate has expired"),
            "TLSFailed",
            "3000: No TLS comes about with the gateway: the certificate has expired.",
        ),
        (
            Failure::NoProbeAddress,
            "NoProbeAddress",
            "3000: The status names no address that could be probed; `routing.probe.address` in the policy can.",
        ),
    ] {
        facts.probes.insert(3000, Observation { listening: Some(Ok(())), address: Some(Err(failure)), so_far: None });
        let report = report(&facts);
        assert_eq!(words(&report)[3], word);
        assert_eq!(message(&report, ConditionType::RouteReachable), says);
        let address = &annotation(&report)["ports"][0]["address"];
        assert_eq!((&address["state"], &address["identity"]), (&json!("unreachable"), &Value::Null));
    }
}

#[test]
fn a_session_that_slipped_through_lists_every_finding_and_shows_no_address() {
    let finding = |field: &str| cofferdam_model::Reason {
        rule: "host",
        field: field.to_owned(),
        message: "remove it".to_owned(),
    };
    let findings = vec![finding("spec.hostPID"), finding("spec.hostIPC")];
    let (session, routing, layer) = (Session { findings, ..session("3000") }, routing(), gateway(true));
    let mut facts = facts(&session, &routing, &layer);
    facts.verdicts.insert(3000, programmed());
    facts.probes.insert(3000, all_well());
    let told = report(&facts);
    assert_eq!(words(&told), ["SlippedThrough", "NotHardened", "NotHardened", "NotHardened"]);
    assert_eq!(
        message(&told, ConditionType::Hardened),
        "spec.hostPID: remove it (host); spec.hostIPC: remove it (host)"
    );
    let port = &annotation(&told)["ports"][0];
    assert_eq!((&port["url"], &port["address"]["state"]), (&Value::Null, &json!("unreachable")));

    let nameless = Session { id: None, findings: Vec::new(), ..session.clone() };
    assert_eq!(words(&report(&Facts { session: &nameless, ..facts }))[0], "SlippedThrough");
}

#[test]
fn what_the_pod_itself_says_comes_before_what_its_ports_do() {
    let all = |session: Session| {
        let (routing, layer) = (routing(), gateway(true));
        let mut facts = facts(&session, &routing, &layer);
        facts.verdicts.insert(3000, programmed());
        facts.probes.insert(3000, all_well());
        words(&report(&facts)).map(str::to_owned)
    };
    let session = || session("3000");
    for (session, expected) in [
        (Session { phase: Phase::Finished, ..session() }, ["Finished"; 3]),
        // Case B145.
        (Session { phase: Phase::Leaving, ..session() }, ["Finished"; 3]),
        (Session { address: None, ..session() }, ["NoAddress"; 3]),
        (crate::desired::testing::session("3000/sctp"), ["PortsInvalid"; 3]),
        (crate::desired::testing::session(""), ["NothingToDial", "NothingToRoute", "NothingToRoute"]),
        (crate::desired::testing::session("53/udp"), ["NothingToDial", "NothingToRoute", "NothingToRoute"]),
        (Session { phase: Phase::Starting, ..session() }, ["AllReachable", "Programmed", "Reachable"]),
    ] {
        assert_eq!(all(session)[1..], expected);
    }
    // Nothing to route is known at once.
    let early = Session { address: None, ..crate::desired::testing::session("") };
    assert_eq!(all(early)[1..], ["NothingToDial", "NothingToRoute", "NothingToRoute"]);
}

#[test]
fn what_was_found_so_far_is_said_while_a_program_may_still_begin() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    let mut facts = facts(&session, &routing, &layer);
    for (so_far, says) in [
        (None, "3000: It is being dialled."),
        (Some(Closed::Refused), "3000: Refused so far; a program that starts is waited for, for 30 s."),
        (Some(Closed::TimedOut), "3000: Nobody has answered so far; a program that starts is waited for, for 30 s."),
    ] {
        facts.probes.insert(3000, Observation { so_far, ..Observation::default() });
        let told = report(&facts);
        assert_eq!((words(&told)[1], message(&told, ConditionType::PortsReachable)), ("Checking", says));
    }
}

#[test]
fn of_a_pod_that_waits_for_its_containers_it_is_said_where_to_look() {
    let (routing, layer) = (routing(), gateway(true));
    let waiting = Session { phase: Phase::Starting, ..session("3000") };
    let mut facts = facts(&waiting, &routing, &layer);
    facts.verdicts.insert(3000, programmed());
    let told = report(&facts);
    assert_eq!(words(&told), ["Hardened", "NotStarted", "Programmed", "NotStarted"]);
    for type_ in [ConditionType::PortsReachable, ConditionType::RouteReachable] {
        let says = "3000: Not every container of the pod runs yet; kubectl describe pod says why.";
        assert_eq!(message(&told, type_), says);
    }
    // What a gateway says for itself stands.
    facts
        .probes
        .insert(3000, Observation { listening: None, address: Some(Err(Failure::NotRouted(404))), so_far: None });
    assert_eq!(words(&report(&facts))[3], "NotRouted");
    facts.probes.clear();
    facts.verdicts.insert(3000, Verdict::Refused { reason: Reason::Unclaimed, message: "no".to_owned() });
    assert_eq!(words(&report(&facts))[3], "NotProgrammed");
}

#[test]
fn rte_17_l16_where_nothing_routes_no_address_is_shown() {
    let (session, routing) = (session("3000"), Routing::default());
    let mut facts = facts(&session, &routing, &Layer::Off);
    facts.probes.insert(3000, Observation { listening: Some(Ok(())), address: None, so_far: None });
    let told = report(&facts);
    assert_eq!(words(&told), ["Hardened", "AllReachable", "NothingToRoute", "NothingToRoute"]);
    assert_eq!(
        annotation(&told)["ports"][0],
        json!({ "port": 3000, "protocol": "tcp", "listening": { "state": "reachable" } })
    );

    let error = LayerError::Ambiguous("set something".to_owned());
    let told = report(&Facts { layer: Err(&error), routing: &crate::desired::testing::routing(), ..facts });
    assert_eq!(words(&told), ["Hardened", "AllReachable", "RoutingAmbiguous", "RoutingAmbiguous"]);
    assert_eq!(message(&told, ConditionType::RouteReachable), "No route is made: set something.");
    let port = &annotation(&told)["ports"][0];
    assert_eq!((&port["host"], &port["route"]["state"]), (&Value::Null, &json!("unprogrammed")));
}

#[test]
fn b121_a_name_that_is_taken_shows_no_address_of_anothers() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    for hindrance in [Hindrance::HostTaken { pod: Some("run-other".to_owned()) }, Hindrance::NameTaken] {
        let mut facts = facts(&session, &routing, &layer);
        facts.probes.insert(3000, all_well());
        facts.hindrance = Some(hindrance);
        let report = report(&facts);
        assert_eq!(words(&report)[1..], ["AllReachable", "HostTaken", "HostTaken"]);
        assert_eq!(annotation(&report)["ports"][0]["host"], Value::Null);
    }
}

#[test]
fn rte_16_what_cannot_be_published_is_told_of_every_tcp_port_and_the_session_goes_on() {
    let (session, routing, layer) = (session("3000,3001,53/udp"), routing(), gateway(true));
    let mut facts = facts(&session, &routing, &layer);
    for port in [3000, 3001] {
        facts.probes.insert(port, Observation { listening: Some(Ok(())), address: None, so_far: None });
    }
    facts.hindrance = Some(Hindrance::PublishFailed("services/s-2abc: a quota refuses it".to_owned()));
    let report = report(&facts);
    assert_eq!(words(&report), ["Hardened", "AllReachable", "PublishFailed", "PublishFailed"]);
    let ports = &annotation(&report)["ports"];
    for port in [&ports[0], &ports[1]] {
        let why = "PublishFailed: services/s-2abc: a quota refuses it";
        assert_eq!(port["route"], json!({ "state": "unprogrammed", "reason": why }));
        assert_eq!(port["listening"], json!({ "state": "reachable" }));
    }
    assert_eq!(ports[2], json!({ "port": 53, "protocol": "udp" }));
}

#[test]
fn d23_no_address_is_told_to_work_before_its_route_is_made() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    let mut facts = facts(&session, &routing, &layer);
    facts.probes.insert(3000, Observation { listening: Some(Ok(())), address: None, so_far: None });
    let before = report(&facts);
    assert_eq!(words(&before), ["Hardened", "AllReachable", "Pending", "Pending"]);
    let port = &annotation(&before)["ports"][0];
    assert_eq!((&port["route"]["state"], &port["address"]["state"]), (&json!("pending"), &json!("pending")));
    // That the layer has taken it does not mean that it works.
    facts.verdicts.insert(3000, programmed());
    assert_eq!(words(&report(&facts)), ["Hardened", "AllReachable", "Programmed", "Pending"]);
    facts.probes.insert(3000, all_well());
    assert_eq!(words(&report(&facts)), ["Hardened", "AllReachable", "Programmed", "Reachable"]);
}

/// One of each. A new one does not compile before it is among them.
fn hindrances() -> Vec<Hindrance> {
    let finalizers = vec!["example.com/keep".to_owned(), "other".to_owned()];
    let all = vec![
        Hindrance::HostTaken { pod: Some("run-other".to_owned()) },
        Hindrance::HostTaken { pod: None },
        Hindrance::NameTaken,
        Hindrance::WaitingForNetworkPolicy,
        Hindrance::PublishFailed("services: a quota refuses it".to_owned()),
        Hindrance::Terminating { object: "services/s-2abc".to_owned(), finalizers },
        Hindrance::PublishDelayed("services/s-2abc is undone by somebody".to_owned()),
    ];
    for one in &all {
        match one {
            Hindrance::HostTaken { .. }
            | Hindrance::NameTaken
            | Hindrance::WaitingForNetworkPolicy
            | Hindrance::PublishFailed(_)
            | Hindrance::Terminating { .. }
            | Hindrance::PublishDelayed(_) => {}
        }
    }
    all
}

#[test]
fn with_no_hindrance_all_is_told_to_be_well() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    let words_of = |hindrance: &Hindrance| match hindrance {
        Hindrance::HostTaken { .. } | Hindrance::NameTaken => ("HostTaken", Status::False),
        Hindrance::WaitingForNetworkPolicy => ("WaitingForNetworkPolicy", Status::Unknown),
        Hindrance::PublishFailed(_) => ("PublishFailed", Status::False),
        Hindrance::Terminating { .. } => ("Terminating", Status::False),
        Hindrance::PublishDelayed(_) => ("PublishDelayed", Status::False),
    };
    for hindrance in hindrances() {
        let (word, status) = words_of(&hindrance);
        for address in [None, Some(Ok(Proved)), Some(Err(Failure::NotRouted(404)))] {
            let mut facts = facts(&session, &routing, &layer);
            facts.verdicts.insert(3000, programmed());
            facts.hindrance = Some(hindrance.clone());
            facts.probes.insert(3000, Observation { listening: Some(Ok(())), address, so_far: None });
            let report = report(&facts);
            assert_eq!(words(&report)[1..], ["AllReachable", word, word]);
            assert!(report.conditions[2..].iter().all(|condition| condition.reason.status() == status), "{report:?}");
            let port = &annotation(&report)["ports"][0];
            assert!(port["address"]["state"] != "reachable" && port["route"]["state"] != "programmed", "{port}");
            assert_eq!(port["address"]["identity"], Value::Null);
        }
    }
    // A name that is taken is told even where there is nothing to route, and keeps no pod from being ready.
    let (udp, facts) = (crate::desired::testing::session("53/udp"), facts(&session, &routing, &layer));
    let told = report(&Facts { session: &udp, hindrance: Some(Hindrance::NameTaken), ..facts });
    assert_eq!(words(&told)[2..], ["HostTaken", "NothingToRoute"]);
}

#[test]
fn whoever_has_the_name_is_named_as_far_as_that_is_known() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    for (hindrance, begins) in [
        (Hindrance::HostTaken { pod: Some("run-other".to_owned()) }, "Pod run-other of this namespace has "),
        (Hindrance::HostTaken { pod: None }, "Service s-2abc was made for another pod "),
        (Hindrance::NameTaken, "Service s-2abc is there, and is not Cofferdam's."),
    ] {
        let report = report(&Facts { hindrance: Some(hindrance), ..facts(&session, &routing, &layer) });
        let says = message(&report, ConditionType::RouteProgrammed);
        assert!(says.starts_with(begins), "{says}");
    }
}

#[test]
fn what_is_being_deleted_is_named_with_what_keeps_it() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    let told = |finalizers: &[&str]| {
        let finalizers = finalizers.iter().map(|&name| name.to_owned()).collect();
        let hindrance = Some(Hindrance::Terminating { object: "httproutes/s-2abc-3000".to_owned(), finalizers });
        let report = report(&Facts { hindrance, ..facts(&session, &routing, &layer) });
        message(&report, ConditionType::RouteProgrammed).to_owned()
    };
    assert_eq!(
        told(&["example.com/keep", "o\u{202e}ther\nline"]),
        "httproutes/s-2abc-3000 is being deleted, and kept by finalizers example.com/keep, other line; it is made anew once it \
         is gone."
    );
    assert_eq!(told(&[]), "httproutes/s-2abc-3000 is being deleted; it is made anew once it is gone.");
}

#[test]
fn long_reasons_are_cut() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    let mut facts = facts(&session, &routing, &layer);
    facts.verdicts.insert(3000, Verdict::Refused { reason: Reason::RefusedByController, message: "ü".repeat(9000) });
    let report = report(&facts);
    let reason = annotation(&report)["ports"][0]["route"]["reason"].as_str().unwrap_or_default().to_owned();
    assert!(reason.len() <= 256 && reason.ends_with('…'), "{reason}");
    let told = message(&report, ConditionType::RouteProgrammed);
    assert!(told.len() <= 8192 && told.ends_with('…'), "{} bytes", told.len());
}

#[test]
fn a_patch_writes_what_differs_and_keeps_a_transitions_time() {
    let (session, routing, layer) = (session("3000"), routing(), gateway(true));
    let mut facts = facts(&session, &routing, &layer);
    let first = report(&facts);
    let everything = patch(&Told::default(), &first, NOW).unwrap_or_default();
    let conditions = everything["status"]["conditions"].as_array().cloned().unwrap_or_default();
    assert_eq!(conditions.len(), 4);
    assert!(conditions.iter().all(|condition| condition["lastTransitionTime"] == NOW));
    assert_eq!(everything["metadata"]["annotations"][keys::ENDPOINTS], json!(first.endpoints.to_string()));

    let told = first.told();
    assert_eq!(patch(&told, &first, NOW), None, "a settled session costs no write");

    // Another reason of the same status: no transition.
    facts.verdicts.insert(3000, Verdict::Unreadable("x".to_owned()));
    let second = report(&facts);
    let changed = patch(&told, &second, NOW).unwrap_or_default();
    assert_eq!(
        changed["status"]["conditions"][0],
        json!({
            "type": "cofferdam.dev/RouteProgrammed", "status": "Unknown", "reason": "StatusUnreadable", "message": "3000: x",
        })
    );
    facts.verdicts.insert(3000, programmed());
    let changed = patch(&told, &report(&facts), NOW).unwrap_or_default();
    assert_eq!(changed["status"]["conditions"][0]["lastTransitionTime"], NOW);

    // The annotation alone, where somebody removed it; nothing of the status then.
    let without = Told { endpoints: None, ..told };
    assert_eq!(
        patch(&without, &first, NOW),
        Some(json!({ "metadata": { "annotations": { keys::ENDPOINTS: first.endpoints.to_string() } } }))
    );
}

#[test]
fn every_reason_stands_once_and_names_its_conditions() {
    let mut words: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Reason::ALL.len());
    // The least of all ports is the worst: no `Unknown` before a `False`, no `True` before an `Unknown`.
    assert!(Reason::ALL.is_sorted_by_key(|reason| reason.status()) && Reason::ALL.is_sorted());
    for reason in Reason::ALL {
        assert!(!reason.of().is_empty() && reason.meaning().ends_with('.') && reason.check().ends_with('.'));
    }
}

#[test]
fn of_what_is_no_session_any_more_nothing_is_wanted_so_its_pod_is_ready() {
    let (routing, layer) = (routing(), gateway(true));
    let mut released = session("");
    released.phase = Phase::Released;
    let mut facts = facts(&released, &routing, &layer);
    facts.probes.insert(3000, all_well());
    facts.hindrance = Some(Hindrance::NameTaken);
    let report = report(&facts);
    assert_eq!(words(&report), ["Hardened", "NothingToDial", "NothingToRoute", "NothingToRoute"]);
    assert_eq!(annotation(&report)["ports"], json!([]));
}
