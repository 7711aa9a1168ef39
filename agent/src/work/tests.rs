use std::ops::Range;

use cofferdam_model::policy::Policy;
use cofferdam_model::ports::Ports;
use cofferdam_model::session::SessionId;
use serde_json::json;

use super::*;
use crate::desired::testing::session;
use crate::objects::Kind;
use crate::session::{self, Membership, Phase, Session};

mod stopping;

/// A session that is worked on, is published, and was told of.
async fn published() -> (testing::Api, Crew, Session) {
    let (api, session) = (testing::Api::default(), session("53/udp"));
    let crew = api.crew();
    let mut ground = Ground::default();
    ground.is_known = true;
    crew.world.ground.store(Arc::new(ground));
    crew.world.protected(&session.namespace, true);
    let wake = crew.world.pod(testing::seen(&session)).unwrap();
    crew.begin(session.uid.clone(), wake);
    api.until(&["POST services/s-2abc", "PATCH endpointslices/s-2abc", "PATCH pods/run-2abc"]).await;
    (api, crew, session)
}

#[tokio::test]
async fn a_session_is_published_and_told_of_without_anybody_waking_its_work() {
    published().await;
}

#[tokio::test]
async fn on_a_lost_node_what_ended_goes_out_of_service_and_nothing_is_told() {
    let (api, crew, mut session) = published().await;
    api.asked();
    crew.world.node_lost(true);
    session.phase = Phase::Finished;
    crew.world.pod(testing::seen(&session));
    api.until(&["DELETE endpointslices/s-2abc", "DELETE services/s-2abc"]).await;
    let asked = api.asked();
    assert!(asked.iter().all(|write| write.starts_with("DELETE ")), "{asked:?}");
}

#[tokio::test]
async fn what_leads_to_a_pod_that_ended_goes_before_the_pod() {
    let (api, crew, mut session) = published().await;
    session.phase = Phase::Finished;
    let mut ended = testing::seen(&session);
    (ended.resource_version, ended.progress.ended) = (1, Some(0));
    crew.world.pod(ended);
    api.until(&["DELETE pods/run-2abc"]).await;
    let asked = api.asked();
    let at = |write: &str| asked.iter().position(|asked| asked == write).unwrap();
    assert!(at("DELETE endpointslices/s-2abc") < at("DELETE services/s-2abc"), "{asked:?}");
    assert!(at("DELETE services/s-2abc") < at("DELETE pods/run-2abc"), "{asked:?}");
}

/// Sessions that are published one after the other; of those whose number is in `untold` the first news gets no answer.
async fn rush(api: &testing::Api, crew: &Crew, count: usize, untold: Range<usize>) -> Vec<Session> {
    let mut ground = Ground::default();
    ground.is_known = true;
    crew.world.ground.store(Arc::new(ground));
    let mut sessions = Vec::new();
    for number in 0..count {
        let id = format!("a{number}");
        let uid = format!("uid-{id}");
        let one = Session { name: format!("run-{id}"), id: SessionId::parse(&id).ok(), uid, ..session("53/udp") };
        if untold.contains(&number) {
            api.hold(&format!("PATCH pods/{}", one.name));
        }
        crew.world.protected(&one.namespace, true);
        crew.begin(one.uid.clone(), crew.world.pod(testing::seen(&one)).unwrap());
        api.until(&[&format!("POST services/s-{id}"), &format!("PATCH endpointslices/s-{id}")]).await;
        sessions.push(one);
    }
    sessions
}

#[tokio::test]
async fn what_leads_to_a_session_does_not_wait_for_what_is_told_of_others_or_for_its_own_turn_to_be_told() {
    let api = testing::Api::default();
    let crew = api.crew();
    let mut sessions = rush(&api, &crew, TOLD_AT_ONCE + 1, 0..TOLD_AT_ONCE + 1).await;
    let told = |asked: &[String]| asked.iter().filter(|write| write.starts_with("PATCH pods/")).count();
    let (last, id) = (sessions.last_mut().unwrap(), format!("a{TOLD_AT_ONCE}"));
    assert_eq!(told(&api.asked()), TOLD_AT_ONCE);
    // Nobody wakes it for a second attempt.
    let slice = format!("PATCH endpointslices/s-{id}");
    api.refuse(&slice);
    last.ports = Ports::parse("54/udp");
    crew.world.pod(testing::seen(last));
    for _ in 0..2 {
        api.until(&[&slice]).await;
        assert_eq!(told(&api.asked()), 0);
    }
    last.phase = Phase::Finished;
    crew.world.pod(testing::seen(last));
    api.until(&[&format!("DELETE services/s-{id}")]).await;
    assert_eq!(told(&api.asked()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_turn_to_tell_that_comes_while_a_session_is_published_is_the_next_ones() {
    let api = testing::Api::default();
    let crew = api.crew();
    // The first take all turns, the next ones wait before the last.
    let mut sessions = rush(&api, &crew, 2 * TOLD_AT_ONCE + 1, 0..TOLD_AT_ONCE).await;
    tokio::time::advance(Duration::from_secs(5)).await;
    api.asked();
    for one in &mut sessions[TOLD_AT_ONCE..2 * TOLD_AT_ONCE] {
        let slice = format!("PATCH endpointslices/s-{}", one.id.as_ref().unwrap());
        api.hold(&slice);
        one.ports = Ports::parse("54/udp");
        crew.world.pod(testing::seen(one));
        api.until(&[&slice]).await;
    }
    // The turns are free once the first have waited long enough for their answers, which is before the others have.
    api.until(&[&format!("PATCH pods/run-a{}", 2 * TOLD_AT_ONCE)]).await;
    let asked = api.asked();
    for one in &sessions[TOLD_AT_ONCE..2 * TOLD_AT_ONCE] {
        assert!(!asked.contains(&format!("PATCH pods/{}", one.name)), "{asked:?}");
    }
}

#[test]
fn a_lost_node_is_spoken_for_from_when_the_elected_agent_says_so() {
    let mut seen = testing::seen(&session("3000"));
    let condition = |reason: &str| session::Condition {
        type_: cofferdam_model::keys::ROUTE_REACHABLE.to_owned(),
        status: "Unknown".to_owned(),
        reason: reason.to_owned(),
        message: String::new(),
    };
    seen.session.told.conditions = vec![condition("AgentSilent")];
    assert!(!is_spoken_for(&seen));
    seen.session.told.conditions.push(condition("NodeLost"));
    assert!(is_spoken_for(&seen));
}

#[test]
fn an_agent_that_begins_waits_until_it_knows_the_layer_and_the_routes_that_are_there() {
    let world = World::new(Ground::default());
    let pod = json!({"metadata": {"namespace": "n", "name": "p", "uid": "u"}, "status": {"phase": "Running"}});
    let wake = world.pod(Seen::read(&pod, Membership::Enforced, &Policy::built_in()).unwrap()).unwrap();
    let knows = |ground: &Ground| has_looked_around(ground, &world.snapshot("u").unwrap());
    assert!(!knows(&Ground::default()), "of the layer nothing is known");
    let mut ground = Ground::default();
    ground.is_known = true;
    assert!(knows(&ground), "without a layer no route is waited for");
    let parent =
        cofferdam_model::policy::ParentGateway { name: "g".to_owned(), namespace: "n".to_owned(), listener: None };
    ground.layer = Ok(Layer::Gateway { version: "v1".to_owned(), parent, proof: true });
    let round = world.objects_begin();
    world.objects_listed(Kind::Service, round);
    assert!(!knows(&ground));
    world.objects_listed(Kind::HttpRoute, round);
    assert!(knows(&ground));
    drop(wake);
}

#[tokio::test]
async fn a_session_that_rests_takes_little() {
    let crew = testing::Api::default().crew();
    let work = Work::new(crew, "u".to_owned(), Arc::default());
    let (state, resting) = (size_of::<Work>(), size_of_val(&work.run()));
    assert!(resting < 3 * state, "{resting} bytes, of which {state} are its state");
}

#[test]
fn routes_that_nobody_may_list_are_not_waited_for() {
    let world = World::new(Ground::default());
    let pod = json!({"metadata": {"namespace": "n", "name": "p", "uid": "u"}, "status": {"phase": "Running"}});
    world.pod(Seen::read(&pod, Membership::Enforced, &Policy::built_in()).unwrap()).unwrap();
    // That the API server is slow says nothing of what there is.
    world.readable(Kind::HttpRoute, false);
    assert!(!world.snapshot("u").unwrap().are_routes_known);
    world.refused(Kind::HttpRoute);
    assert!(world.snapshot("u").unwrap().are_routes_known);
}
