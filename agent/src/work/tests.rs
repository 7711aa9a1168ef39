use std::ops::Range;

use cofferdam_model::policy::Policy;
use cofferdam_model::ports::Ports;
use cofferdam_model::session::SessionId;
use serde_json::json;

use super::*;
use crate::desired::testing::session;
use crate::layer::Layer;
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
async fn a_session_is_told_to_wait_for_the_network_policy_of_its_namespace_and_published_once_that_is_there() {
    let (api, session) = (testing::Api::default(), session("53/udp"));
    let crew = api.crew();
    let mut ground = Ground::default();
    ground.is_known = true;
    crew.world.ground.store(Arc::new(ground));
    crew.world.protected("another", true);
    crew.begin(session.uid.clone(), crew.world.pod(testing::seen(&session)).unwrap());
    api.until(&["PATCH pods/run-2abc"]).await;
    assert_eq!(api.asked(), ["PATCH pods/run-2abc"]);
    crew.world.protected(&session.namespace, true);
    api.until(&["POST services/s-2abc", "PATCH endpointslices/s-2abc"]).await;
}

#[tokio::test]
async fn on_a_lost_node_what_ended_goes_out_of_service_and_nothing_is_told_once_the_elected_agent_speaks_for_it() {
    let (api, crew, mut session) = published().await;
    api.asked();
    crew.world.node_lost(true);
    let told = |reason: &str| session::Condition {
        type_: cofferdam_model::keys::ROUTE_REACHABLE.to_owned(),
        status: "Unknown".to_owned(),
        reason: reason.to_owned(),
        message: String::new(),
    };
    let seen = |session: &Session, version| Seen { resource_version: version, ..testing::seen(session) };
    // Nobody speaks for it while too many seem lost.
    session.ports = Ports::parse("54/udp");
    crew.world.pod(seen(&session, 100));
    api.until(&["PATCH pods/run-2abc"]).await;
    api.asked();
    session.told.conditions = vec![told("NodeLost")];
    session.phase = Phase::Finished;
    crew.world.pod(seen(&session, 200));
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

#[tokio::test]
async fn d14_of_a_session_whose_start_failed_nothing_stays() {
    let (api, session) = (testing::Api::default(), Session { phase: Phase::Starting, ..session("53/udp") });
    let crew = api.crew();
    let mut ground = Ground::default();
    ground.is_known = true;
    crew.world.ground.store(Arc::new(ground));
    crew.world.protected(&session.namespace, true);
    crew.begin(session.uid.clone(), crew.world.pod(testing::seen(&session)).unwrap());
    api.until(&["POST services/s-2abc", "PATCH endpointslices/s-2abc"]).await;
    let fetch = json!([{"state": {"terminated": {"exitCode": 10, "finishedAt": "1970-01-01T00:16:40Z"}}}]);
    let pod = json!({"metadata": {}, "status": {"phase": "Failed", "initContainerStatuses": fetch}});
    let Seen { session: Session { phase, .. }, progress, .. } =
        Seen::read(&pod, Membership::Enforced, &Policy::built_in()).unwrap();
    let failed = testing::seen(&Session { phase, ..session });
    crew.world.pod(Seen { progress, resource_version: 1, ..failed });
    api.until(&["DELETE endpointslices/s-2abc", "DELETE services/s-2abc", "DELETE pods/run-2abc"]).await;
}

#[tokio::test]
async fn d29_an_agent_that_begins_changes_nothing_of_what_it_finds() {
    let (api, crew, mut session) = published().await;
    crew.stop.abort();
    crew.finished().await;
    let mut pod = json!(null);
    api.edit("pods/run-2abc", |told| pod = told.clone());
    session.told = session::Told::read(&pod);
    let (there, next) = (api.snapshot(&session).live, api.crew());
    let wake = next.world.pod(testing::seen(&session)).unwrap();
    for live in &there {
        next.world.object(live.kind, &live.object);
    }
    api.asked();
    next.begin(session.uid.clone(), wake);
    // Once another is published and told of, it would have been written too.
    rush(&api, &next, 1, 0..0).await;
    api.until(&["PATCH pods/run-a0"]).await;
    assert_eq!(api.asked(), ["POST services/s-a0", "PATCH endpointslices/s-a0", "PATCH pods/run-a0"]);
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

#[tokio::test(start_paused = true)]
async fn what_leads_to_a_session_does_not_wait_for_what_is_told_of_others_or_for_its_own_turn_to_be_told() {
    let api = testing::Api::default();
    let crew = api.crew();
    // As many as can be told of without an answer, and one that waits behind them.
    let most = turns::TOLD + turns::SLOW;
    let mut sessions = rush(&api, &crew, most + 1, 0..most + 1).await;
    let all: Vec<String> = sessions[..most].iter().map(|one| format!("PATCH pods/{}", one.name)).collect();
    api.until(&all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    api.asked();
    let last = sessions.last_mut().unwrap();
    let id = last.id.clone().unwrap();
    let slice = format!("PATCH endpointslices/s-{id}");
    last.ports = Ports::parse("54/udp");
    crew.world.pod(testing::seen(last));
    api.until(&[&slice]).await;
    last.phase = Phase::Finished;
    crew.world.pod(testing::seen(last));
    api.until(&[&format!("DELETE services/s-{id}")]).await;
    let asked = api.asked();
    assert!(!asked.iter().any(|write| write.starts_with("PATCH pods/")), "{asked:?}");
}

/// Waits until that holds; longer than a minute nothing would take.
async fn until_it_holds(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_turn_is_in_the_queue_and_nobody_is_once_all_have_had_theirs() {
    let api = testing::Api::default();
    let crew = api.crew();
    let most = turns::TOLD + turns::SLOW;
    let sessions = rush(&api, &crew, most + 2, 0..most + 2).await;
    until_it_holds(|| crew.metrics.depth(Queue::Tell) == 2).await;
    api.answer_all();
    let all: Vec<String> = sessions.iter().map(|one| format!("PATCH pods/{}", one.name)).collect();
    api.until(&all.iter().map(String::as_str).collect::<Vec<_>>()).await;
    until_it_holds(|| crew.metrics.depth(Queue::Tell) == 0 && crew.metrics.depth(Queue::Publish) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn writes_that_get_no_answer_hold_up_nobody_elses() {
    let api = testing::Api::default();
    let crew = api.crew();
    let sessions = rush(&api, &crew, turns::TOLD + 1, 0..turns::TOLD).await;
    // Long before the first of them is given up.
    let begun = tokio::time::Instant::now();
    api.until(&[&format!("PATCH pods/{}", sessions[turns::TOLD].name)]).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_to_be_told_is_not_when_it_holds_no_more_by_its_turn() {
    let api = testing::Api::default();
    let crew = api.crew();
    let sessions = rush(&api, &crew, turns::TOLD + 2, 0..turns::TOLD).await;
    let [.., gone, last] = &sessions[..] else { unreachable!() };
    crew.world.pod_gone(&gone.uid);
    api.until(&[&format!("PATCH pods/{}", last.name)]).await;
    let asked = api.asked();
    assert!(!asked.contains(&format!("PATCH pods/{}", gone.name)), "{asked:?}");
}

#[tokio::test]
async fn work_rests_after_whatever_is_refused() {
    for write in ["POST services/s-2abc", "PATCH endpointslices/s-2abc", "PATCH pods/run-2abc", "DELETE pods/run-2abc"]
    {
        let (api, mut session) = (testing::Api::default(), session("53/udp"));
        let crew = api.crew();
        let mut ground = Ground::default();
        ground.is_known = true;
        crew.world.ground.store(Arc::new(ground));
        crew.world.protected(&session.namespace, true);
        api.refuse(write);
        let mut seen = testing::seen(&session);
        if write.starts_with("DELETE") {
            session.phase = Phase::Finished;
            seen = testing::seen(&session);
            seen.progress.ended = Some(0);
        }
        crew.begin(session.uid.clone(), crew.world.pod(seen).unwrap());
        api.until(&[write]).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
            crew.world.wake_everyone();
        }
        // Once, and again after pauses that grow; never each time that it is woken.
        let times = api.asked().iter().filter(|asked| *asked == write).count();
        assert!(times < 20, "{write} {times} times");
    }
}

#[tokio::test]
async fn who_waits_for_an_id_asks_no_more_until_its_holder_ends() {
    let (api, crew, holder) = published().await;
    api.asked();
    let waits = Session { name: "run-other".to_owned(), uid: "uid-other".to_owned(), ..holder.clone() };
    crew.begin(waits.uid.clone(), crew.world.pod(testing::seen(&waits)).unwrap());
    api.until(&["POST services/s-2abc", "PATCH pods/run-other"]).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
        crew.world.wake_everyone();
    }
    assert!(api.reads() < 20, "{} times", api.reads());
    let mut ended = testing::seen(&Session { phase: Phase::Finished, ..holder });
    ended.resource_version = 100;
    crew.world.pod(ended);
    // At once: nothing tells the time here but the end of the holder.
    api.until(&["POST services/s-2abc", "PATCH endpointslices/s-2abc"]).await;
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
    let knows = |ground: &Ground| ground.is_settled(world.snapshot("u").unwrap().are_routes_known);
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

#[tokio::test]
async fn a_pod_that_ended_is_deleted_also_while_nobody_knows_the_routes() {
    let (api, mut session) = (testing::Api::default(), session("3000"));
    let crew = api.crew();
    let mut ground = Ground::default();
    (ground.is_known, ground.layer) = (true, Ok(crate::desired::testing::gateway(true)));
    assert!(!ground.is_settled(false));
    crew.world.ground.store(Arc::new(ground));
    session.phase = Phase::Finished;
    let mut ended = testing::seen(&session);
    ended.progress.ended = Some(0);
    crew.begin(session.uid.clone(), crew.world.pod(ended).unwrap());
    api.until(&["DELETE pods/run-2abc"]).await;
}
