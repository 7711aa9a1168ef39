//! Whatever the facts are.

use cofferdam_model::endpoints::Endpoints;
use cofferdam_model::endpoints::Identity::{Proved, Unproved};
use cofferdam_model::keys;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::{NOW, facts, hindrances, programmed};
use crate::desired::testing::{gateway, ingress, routing, session};
use crate::probe::{Closed, Failure};
use crate::session::{self, Phase, Told};

fn an_observation() -> impl Strategy<Value = Observation> {
    let listening = prop::sample::select(vec![
        None,
        Some(Ok(())),
        Some(Err(Closed::Refused)),
        Some(Err(Closed::TimedOut)),
        Some(Err(Closed::Unreachable)),
    ]);
    let address = prop::sample::select(vec![
        None,
        Some(Ok(Proved)),
        Some(Ok(Unproved)),
        Some(Err(Failure::NoAnswer("does not answer"))),
        Some(Err(Failure::NotRouted(404))),
        Some(Err(Failure::BadGateway(502))),
        Some(Err(Failure::TlsFailed("why"))),
        Some(Err(Failure::NoProbeAddress)),
    ]);
    let so_far =
        prop::sample::select(vec![None, Some(Closed::Refused), Some(Closed::TimedOut), Some(Closed::Unreachable)]);
    (listening, so_far, address).prop_map(|(listening, so_far, address)| Observation { listening, so_far, address })
}

fn a_verdict() -> impl Strategy<Value = Verdict> {
    let refused = |reason| Verdict::Refused { reason, message: "said".to_owned() };
    prop::sample::select(vec![
        programmed(),
        Verdict::Programmed { is_weak: true },
        Verdict::Pending("waits".to_owned()),
        Verdict::Unreadable("cannot read".to_owned()),
        refused(Reason::Unclaimed),
        refused(Reason::RefusedByController),
        refused(Reason::GatewayMissing),
        refused(Reason::GatewayNotProgrammed),
        refused(Reason::BackendNotResolved),
    ])
}

fn a_hindrance() -> impl Strategy<Value = Option<Hindrance>> {
    prop::option::of(prop::sample::select(hindrances()))
}

fn a_session() -> impl Strategy<Value = Session> {
    let ports = prop::sample::select(vec!["3000", "3000,3001", "3000,53/udp", "53/udp", "", "x"]);
    let phase =
        prop::sample::select(vec![Phase::Starting, Phase::Running, Phase::Running, Phase::Finished, Phase::Leaving]);
    (ports, phase, prop::bool::weighted(0.8)).prop_map(|(ports, phase, has_address)| {
        let session = session(ports);
        Session { phase, address: session.address.filter(|_| has_address), ..session }
    })
}

type Known = (BTreeMap<u16, Verdict>, BTreeMap<u16, Observation>);

fn known() -> impl Strategy<Value = Known> {
    let port = || prop::sample::select(vec![3000, 3001, 9999]);
    let verdicts = prop::collection::btree_map(port(), a_verdict(), 0..3);
    let probes = prop::collection::btree_map(port(), an_observation(), 0..3);
    (verdicts, probes)
}

/// What a pod says after a patch.
fn patched(told: &Told, patch: &Value) -> Told {
    let mut told = told.clone();
    for condition in patch["status"]["conditions"].as_array().into_iter().flatten() {
        let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
        let written = session::Condition {
            type_: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
        };
        told.conditions.retain(|before| before.type_ != written.type_);
        told.conditions.push(written);
    }
    if let Some(text) = patch["metadata"]["annotations"][keys::ENDPOINTS].as_str() {
        told.endpoints = Some(text.to_owned());
    }
    told
}

proptest! {
    #[test]
    fn whatever_the_facts_a_report_is_in_the_closed_words_and_agrees_with_itself(
        session in a_session(),
        layer in prop::sample::select(vec![
            Ok(gateway(true)), Ok(ingress()), Ok(Layer::Off),
            Err(LayerError::Ambiguous("x".to_owned())), Err(LayerError::Invalid("x".to_owned())),
        ]),
        hindrance in a_hindrance(),
        (verdicts, probes) in known(),
    ) {
        let routing = routing();
        let is_hindered = hindrance.is_some();
        let facts = Facts { session: &session, routing: &routing, layer: layer.as_ref(), hindrance, verdicts, probes };
        let told = report(&facts);
        for (condition, type_) in told.conditions.iter().zip(ConditionType::ALL) {
            prop_assert_eq!(condition.type_, type_);
            prop_assert!(condition.reason.of().contains(&type_), "{condition:?}");
            prop_assert!(!condition.message.is_empty());
            let is_of_routes = matches!(type_, ConditionType::RouteProgrammed | ConditionType::RouteReachable);
            let is_well = condition.reason.status() == Status::True && condition.reason != Reason::NothingToRoute;
            prop_assert!(!(is_hindered && is_of_routes && is_well), "{:?} in spite of a hindrance", condition);
        }
        let endpoints = Endpoints::parse(&told.endpoints.to_string());
        prop_assert!(endpoints.is_some(), "{}", told.endpoints);
        for port in endpoints.into_iter().flat_map(|endpoints| endpoints.ports) {
            let states = json!([port.route, port.listening, port.address]);
            for (state, condition) in states.as_array().into_iter().flatten().zip([2, 1, 3]) {
                let is_well = ["programmed", "reachable"].map(Some).contains(&state["state"].as_str());
                let status = told.conditions[condition].reason.status();
                prop_assert!(state.is_null() || is_well || status != Status::True, "{} and {:?}", state, status);
                let length = state["reason"].as_str().unwrap_or_default().chars().count();
                prop_assert!(length <= 256);
            }
        }
        let before = Told::default();
        let patch_of_all = patch(&before, &told, NOW).unwrap_or_default();
        prop_assert_eq!(patch(&patched(&before, &patch_of_all), &told, NOW), None);
    }

    #[test]
    fn from_any_report_a_patch_leads_to_any_other(
        one in known(), other in known(), first in a_session(), second in a_session(),
    ) {
        let (routing, layer) = (routing(), gateway(true));
        let report_of = |session: &Session, (verdicts, probes): Known| {
            report(&Facts { verdicts, probes, ..facts(session, &routing, &layer) })
        };
        let (before, after) = (report_of(&first, one), report_of(&second, other));
        let told = before.told();
        let told = patch(&told, &after, NOW).map_or(told.clone(), |patch| patched(&told, &patch));
        prop_assert_eq!(patch(&told, &after, NOW), None);
        prop_assert_eq!(told.conditions.len(), 4);
    }
}
