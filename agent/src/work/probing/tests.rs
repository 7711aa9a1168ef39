use cofferdam_model::policy::Policy;
use serde_json::json;

use super::*;
use crate::desired::testing::{NODE, gateway, session};
use crate::desired::{Proof, desired};
use crate::session::Session;
use crate::work::testing::Api;

const FOUND: &str = r#"{"v":1,"forPorts":"3000/tcp,3000/udp","ports":[
    {"port":3000,"protocol":"tcp","host":"3000-2abc.sessions.example.test",
     "listening":{"state":"reachable"},"address":{"state":"reachable","identity":"proved"}},
    {"port":3000,"protocol":"udp"}]}"#;

/// The layer, a session of which an agent has found that all of it works, and its objects.
fn scene() -> (Ground, Session, Api) {
    let policy = "profiles: {default: {}}\nrouting: {baseDomain: sessions.example.test, homeNamespace: sess}";
    let mut ground = Ground::default();
    ground.policy = Arc::new(Policy::parse("policy.yaml", policy).unwrap());
    ground.layer = Ok(gateway(true));
    let (api, mut session) = (Api::default(), session("3000,3000/udp"));
    session.told.endpoints = Some(FOUND.to_owned());
    let ports = session.ports.clone().unwrap();
    let proof = |_| Proof { probe: "a".repeat(32), proof: "b".repeat(32) };
    for mut wanted in desired(&session, &ports, &gateway(true), ground.policy.routing(), NODE, &proof) {
        wanted.object["metadata"]["uid"] = json!(format!("{:?}", wanted.kind));
        api.put(&format!("{}/{}", wanted.kind.plural(), wanted.name), wanted.object);
    }
    (ground, session, api)
}

fn works() -> Observation {
    Observation { listening: Some(Ok(())), address: Some(Ok(Identity::Proved)), so_far: None }
}

fn of_port(ground: &Ground, session: &Session, api: &Api) -> Observation {
    let known = inherited(&api.snapshot(session), ground).remove(&3000).unwrap_or_default();
    assert!(!known.was_unreachable);
    known.seen
}

#[test]
fn what_was_found_out_holds_for_the_address_and_the_route_that_it_is_about() {
    let (ground, session, api) = scene();
    assert_eq!(of_port(&ground, &session, &api), works());

    let moved = Session { address: Some([10, 244, 1, 9].into()), ..session.clone() };
    assert_eq!(of_port(&ground, &moved, &api), Observation::default(), "the pod has another address");
    let another = Session { uid: "other".to_owned(), ..session.clone() };
    assert_eq!(of_port(&ground, &another, &api), Observation::default());
    let mut lost = api.snapshot(&session);
    lost.is_node_lost = true;
    assert_eq!(inherited(&lost, &ground), BTreeMap::new());

    let only_listens = Observation { address: None, ..works() };
    let mut elsewhere = session.clone();
    elsewhere.told.endpoints = Some(FOUND.replace("sessions.example.test", "example.test"));
    assert_eq!(of_port(&ground, &elsewhere, &api), only_listens, "the host is another");
    api.edit("httproutes/s-2abc-3000", |route| route["spec"]["rules"] = json!([]));
    assert_eq!(of_port(&ground, &session, &api), only_listens, "the route gets another proof");
    api.remove("httproutes/s-2abc-3000");
    assert_eq!(of_port(&ground, &session, &api), only_listens, "the route is made anew");
    api.edit("endpointslices/s-2abc", |slice| slice["endpoints"] = json!([]));
    assert_eq!(of_port(&ground, &session, &api), Observation::default(), "the node was lost meanwhile");
}

#[test]
fn what_did_not_work_is_not_waited_for_again_as_far_as_somebody_has_asked_it() {
    let (ground, session, api) = scene();
    let told = |session: &Session, listening: &str, address: &str| {
        let state = |reason: &str| json!({"state": "unreachable", "reason": reason});
        let mut found: serde_json::Value = serde_json::from_str(FOUND).unwrap();
        found["ports"][0]["listening"] = state(listening);
        found["ports"][0]["address"] = state(address);
        let mut session = session.clone();
        session.told.endpoints = Some(found.to_string());
        let known = inherited(&api.snapshot(&session), &ground).remove(&3000).unwrap_or_default();
        assert_eq!(known.seen, Observation { listening: known.seen.listening, ..Observation::default() });
        (known.seen.listening, known.was_unreachable)
    };
    let bad = (Some(Err(Closed::Refused)), true);
    for (listening, address, expected) in [
        ("Refused: Nothing listens there.", "BadGateway: The gateway answers 503.", bad),
        ("TimedOut: x", "NoAnswer: x", (Some(Err(Closed::TimedOut)), true)),
        ("Unreachable: x", "NotRouted", (Some(Err(Closed::Unreachable)), true)),
        ("SlippedThrough: x", "PublishFailed: x", (None, false)),
        ("PortsInvalid: x", "NotProgrammed: x", (None, false)),
        ("", "Unheard-of: x", (None, false)),
    ] {
        assert_eq!(told(&session, listening, address), expected, "{listening} {address}");
    }
    let told = |session: &Session| told(session, "Refused: x", "BadGateway: x");
    let starting = Session { phase: Phase::Starting, ..session.clone() };
    assert_eq!(told(&starting), (None, false), "it begins anew");
    let moved = Session { address: Some([10, 244, 1, 9].into()), ..session.clone() };
    assert_eq!(told(&moved), (None, false));
    api.edit("httproutes/s-2abc-3000", |route| route["spec"]["rules"] = json!([]));
    assert_eq!(told(&session), (bad.0, false), "the route gets another proof");
    api.remove("httproutes/s-2abc-3000");
    assert_eq!(told(&session), (bad.0, false), "the route is made anew");
}

#[tokio::test]
async fn what_was_found_out_is_believed_once() {
    let (ground, session, api) = scene();
    let (crew, snapshot) = (api.crew(), api.snapshot(&session));
    let begin = || {
        let mut probes = Probes::new(Arc::new(Notify::new()));
        probes.inherit(&snapshot, &ground);
        probes
    };
    let set = |probes: &mut Probes, address: [u8; 4]| {
        let moved = Session { address: Some(address.into()), ..session.clone() };
        let aims = aims(&api.snapshot(&moved), &ground, &Publisher::default());
        probes.set(&crew.prober, 3, aims);
        probes.inherit(&snapshot, &ground);
        probes.seen()[&3000].clone()
    };
    let (here, there) = ([10, 244, 1, 2], [10, 244, 1, 9]);
    let mut probes = begin();
    assert_eq!(set(&mut probes, here), works());
    assert_eq!(set(&mut probes, there), Observation::default());
    assert_eq!(set(&mut probes, here), Observation::default(), "the pod has had another address");
    let mut probes = begin();
    probes.stop();
    assert_eq!(set(&mut probes, here), Observation::default(), "the node was lost");
}
