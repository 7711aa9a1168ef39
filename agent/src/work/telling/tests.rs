use cofferdam_model::endpoints::Endpoints;

use super::*;
use crate::desired::testing::{ingress, objects, session};
use crate::reason::Status;
use crate::work::testing::{Api, seen};

fn report_of(reason: Reason) -> Report {
    let condition = Condition { type_: ConditionType::RouteReachable, reason, message: "m".to_owned() };
    Report { conditions: vec![condition], endpoints: Endpoints::new("3000/tcp".to_owned(), Vec::new()) }
}

#[tokio::test]
async fn a_status_that_flaps_is_written_slower_and_what_waits_has_its_moment() {
    let api = Api::default();
    let (crew, mut teller) = (api.crew(), Teller::default());
    let (up, down) = (report_of(Reason::Reachable), report_of(Reason::NotRouted));
    // The watch is never behind.
    let after = |told: &Report| {
        let session = Session { told: told.told(), ..session("3000") };
        Seen { resource_version: u64::MAX, ..seen(&session) }
    };
    for _ in 0..100 {
        for (told, report) in [(&down, &up), (&up, &down)] {
            let seen = after(told);
            if let (Some(news), _) = teller.news(&seen, report.clone(), Instant::now()) {
                teller.write(&crew, &seen, news).await;
            }
        }
    }
    let written = api.asked().len();
    assert!(written >= usize::try_from(FREE).unwrap_or_default(), "a start is told at once: {written}");
    assert!(written < 100, "{written} writes of 200 flaps");
    let (news, moment) = teller.news(&after(&up), down, Instant::now());
    assert!(news.is_none() && moment.is_some_and(|moment| moment <= Instant::now() + LONGEST_WAIT), "{moment:?}");
    // What flapped back is no write, and nothing waits.
    assert!(matches!(teller.news(&after(&up), up, Instant::now()), (None, None)));
}

#[test]
fn an_address_that_works_is_told_alone_and_what_fails_beside_it_too() {
    use ConditionType::{PortsReachable, RouteProgrammed, RouteReachable};
    let report = |reasons: [(ConditionType, Reason); 3]| {
        let condition = |(type_, reason)| Condition { type_, reason, message: "m".to_owned() };
        Report { conditions: reasons.map(condition).into(), endpoints: Endpoints::new(String::new(), Vec::new()) }
    };
    let told = |before: &Report, now: &Report| -> Vec<ConditionType> {
        steps(&before.told(), now).iter().map(|condition| condition.type_).collect()
    };
    let begun = report([
        (PortsReachable, Reason::Refused),
        (RouteProgrammed, Reason::Pending),
        (RouteReachable, Reason::NotProgrammed),
    ]);
    let done = report([
        (PortsReachable, Reason::AllReachable),
        (RouteProgrammed, Reason::Programmed),
        (RouteReachable, Reason::Reachable),
    ]);
    let half = report([
        (PortsReachable, Reason::AllReachable),
        (RouteProgrammed, Reason::Programmed),
        (RouteReachable, Reason::Checking),
    ]);
    let odd = report([
        (PortsReachable, Reason::TimedOut),
        (RouteProgrammed, Reason::Programmed),
        (RouteReachable, Reason::Reachable),
    ]);
    assert_eq!(told(&begun, &done), [RouteReachable]);
    assert_eq!(told(&begun, &half), [PortsReachable, RouteProgrammed, RouteReachable]);
    assert_eq!(told(&half, &done), [RouteReachable]);
    assert_eq!(told(&begun, &odd), [PortsReachable, RouteReachable]);
    assert_eq!(told(&done, &done), []);
    let without_route = report([
        (PortsReachable, Reason::AllReachable),
        (RouteProgrammed, Reason::NothingToRoute),
        (RouteReachable, Reason::NothingToRoute),
    ]);
    assert!(told(&begun, &without_route).contains(&PortsReachable), "no address says that it works");
}

#[test]
fn what_fails_is_a_warning_unless_another_condition_said_it_and_what_is_being_found_out_is_not_told() {
    let silent = [
        Reason::Finished,
        Reason::NotHardened,
        Reason::NotProgrammed,
        Reason::NothingToDial,
        Reason::NothingToRoute,
        Reason::Hardened,
    ];
    for reason in Reason::ALL {
        let expected = match reason.status() {
            _ if silent.contains(reason) => None,
            Status::Unknown => None,
            Status::False => Some(Tone::Warning),
            Status::True => Some(Tone::Normal),
        };
        let report = report_of(*reason);
        assert_eq!(note(&report.conditions[0], &report).map(|(tone, _)| tone), expected, "{reason:?}");
    }
}

#[test]
fn a_route_that_is_older_than_this_agent_is_overdue_and_nothing_is_waited_for() {
    let (api, layer) = (Api::default(), ingress());
    let session = session("3000");
    for wanted in objects(&session, &layer) {
        let mut object = wanted.object.clone();
        object["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
        api.put(&format!("{}/{}", wanted.kind.plural(), wanted.name), object);
    }
    api.edit("ingresses/s-2abc", |ingress| ingress["metadata"]["uid"] = json!("u"));
    let mut ground = Ground::default();
    ground.layer = Ok(layer);
    let (verdicts, next) = verdicts(&api.snapshot(&session), &ground, &Publisher::default(), |_| None, Instant::now());
    assert!(matches!(verdicts[&3000], Verdict::Refused { reason: Reason::Unclaimed, .. }), "{verdicts:?}");
    assert_eq!(next, None);
}

#[tokio::test]
async fn a_route_that_was_taken_has_its_time_again_when_the_layer_says_nothing_of_it_any_more() {
    let (api, layer) = (Api::default(), ingress());
    let session = session("3000");
    for wanted in objects(&session, &layer) {
        let mut object = wanted.object.clone();
        object["metadata"]["uid"] = json!("u");
        object["metadata"]["creationTimestamp"] = json!("2020-01-01T00:00:00Z");
        api.put(&format!("{}/{}", wanted.kind.plural(), wanted.name), object);
    }
    let mut ground = Ground::default();
    ground.layer = Ok(layer);
    let metrics = api.crew().metrics;
    let (mut teller, mut tally) = (Teller::default(), metrics.tally());
    let mut look = |api: &Api| {
        let snapshot = api.snapshot(&session);
        let (report, next) = teller.look(&snapshot, &ground, &Publisher::default(), BTreeMap::new(), &mut tally);
        let is = |condition: &&Condition| condition.type_ == ConditionType::RouteProgrammed;
        (report.conditions.iter().find(is).unwrap().reason, next.is_some())
    };
    api.edit("ingresses/s-2abc", |ingress| {
        ingress["status"]["loadBalancer"]["ingress"] = json!([{"ip": "10.0.0.1"}]);
    });
    assert_eq!(look(&api), (Reason::AddressAssigned, false));
    api.edit("ingresses/s-2abc", |ingress| ingress["status"] = json!({}));
    for _ in 0..2 {
        assert_eq!(look(&api), (Reason::Pending, true), "and is looked at again when its time is over");
    }
    let since = teller.waiting_again[&3000];
    teller.waiting_again.insert(3000, since.checked_sub(Duration::from_mins(1)).unwrap());
    let (report, _) = teller.look(&api.snapshot(&session), &ground, &Publisher::default(), BTreeMap::new(), &mut tally);
    let programmed = |condition: &&Condition| condition.type_ == ConditionType::RouteProgrammed;
    assert_eq!(report.conditions.iter().find(programmed).unwrap().reason, Reason::Unclaimed, "and not for ever");
}
