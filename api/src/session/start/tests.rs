use std::sync::mpsc;

use cofferdam_model::session::SessionId;
use serde_json::json;

use super::*;
use crate::session::stop::stop;
use crate::session::testing::{Api, Creation};

const UNTRUSTED: &str = "Internal error occurred: failed calling webhook \"enforced.cofferdam.dev\": failed to call webhook: \
                         Post \"https://w.n.svc:443/mutate/enforced?timeout=3s\": tls: failed to verify certificate: x509: \
                         certificate signed by unknown authority";

const NO_HOST_NETWORK: &str =
    "admission webhook \"enforced.cofferdam.dev\" denied the request: Cofferdam refuses this pod: spec.x: no (host)";

fn id() -> SessionId {
    SessionId::parse("abc234").unwrap()
}

fn objects() -> Objects {
    Objects {
        id: id(),
        secret: json!({"metadata": {"name": "s-abc234"}, "data": {"env-0": "aHVudGVyMg=="}}),
        pod: json!({"metadata": {"name": "run-abc234"}}),
    }
}

fn mark(api: &Api) -> Option<Mark> {
    api.object("secrets/s-abc234").as_ref().and_then(Mark::read)
}

#[tokio::test(start_paused = true)]
async fn d19_a_session_is_its_secret_and_its_pod_and_one_goes_with_the_other() {
    let api = Api::default();
    assert_eq!(make(&api.home(), &objects()).await, Outcome::Submitted);
    assert_eq!(api.asked()[..2], ["POST secrets", "POST pods"], "whatever becomes of the pod, the Secret tells of it");
    let secret = api.object("secrets/s-abc234").unwrap();
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "run-abc234", "uid": "uid of pods/run-abc234"}]);
    assert_eq!((&secret["metadata"]["ownerReferences"], &secret["data"]["env-0"]), (&owner, &json!("aHVudGVyMg==")));
}

#[tokio::test(start_paused = true)]
async fn b95_a_webhook_that_is_not_trusted_yet_is_waited_for_and_not_for_ever() {
    let api = Api::default();
    api.creations((0..5).map(|_| Creation::Refused(500, UNTRUSTED)));
    assert_eq!(make(&api.home(), &objects()).await, Outcome::Submitted);
    let (api, begun) = (Api::default(), Instant::now());
    api.creations((0..1000).map(|_| Creation::Refused(500, UNTRUSTED)));
    let Outcome::Refused(message) = make(&api.home(), &objects()).await else { panic!("it is not to be made") };
    assert!(message.starts_with("create: what checks pods before they run does not answer"), "{message}");
    assert!(begun.elapsed() <= PATIENCE && begun.elapsed() + LONGEST_PAUSE >= PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(
        mark(&api).map(|mark| matches!(mark, Mark::Refused { message: told, .. } if told == message)),
        Some(true)
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_refused_is_a_session_that_failed_and_that_is_kept() {
    let api = Api::default();
    api.creations([Creation::Refused(403, NO_HOST_NETWORK)]);
    let Outcome::Refused(message) = make(&api.home(), &objects()).await else { panic!("it is refused") };
    assert!(message.starts_with("create: Cofferdam refuses this pod: spec.x: no (host)"), "{message}");
    assert_eq!(api.asked().iter().filter(|asked| *asked == "POST pods").count(), 1, "nothing would change it");
    let secret = api.object("secrets/s-abc234").unwrap();
    assert_eq!((&secret["data"], mark(&api).is_some()), (&Value::Null, true));
}

#[tokio::test(start_paused = true)]
async fn what_was_made_and_not_told_is_found() {
    let api = Api::default();
    api.creations([Creation::MadeUnanswered]);
    assert_eq!(make(&api.home(), &objects()).await, Outcome::Submitted);
    assert_eq!(
        api.object("secrets/s-abc234").unwrap()["metadata"]["ownerReferences"][0]["uid"],
        "uid of pods/run-abc234"
    );
    let api = Api::default();
    assert_eq!(make(&api.home(), &objects()).await, Outcome::Submitted);
    let again = make(&api.home(), &objects()).await;
    assert!(matches!(again, Outcome::NotMade(_)), "an id that is taken is somebody else's: {again:?}");
}

#[tokio::test(start_paused = true)]
async fn ses_09_a_session_that_is_stopped_while_its_pod_is_made_has_none() {
    let api = Api::default();
    let stopped = Mark::Stopped { at: Timestamp::UNIX_EPOCH };
    let patch = stopped.on_secret();
    api.creations([Creation::After(Box::new(move |api| api.merge("secrets/s-abc234", &patch)))]);
    assert_eq!(make(&api.home(), &objects()).await, Outcome::Stopped);
    assert_eq!((api.object("pods/run-abc234"), mark(&api)), (None, Some(stopped)));
    let secret = api.object("secrets/s-abc234").unwrap();
    assert_eq!(secret["metadata"]["ownerReferences"], Value::Null, "it would go with the pod");
}

#[tokio::test(start_paused = true)]
async fn d07_who_stops_a_session_marks_it_first_and_its_secret_is_kept_without_values() {
    let (api, at) = (Api::default(), Timestamp::UNIX_EPOCH);
    make(&api.home(), &objects()).await;
    let before = api.asked().len();
    stop(&api.home(), &id(), at).await.unwrap();
    let asked = api.asked();
    assert_eq!(asked[before], "PATCH pods/run-abc234");
    assert_eq!(asked.last().map(String::as_str), Some("DELETE pods/run-abc234"));
    let secret = api.object("secrets/s-abc234").unwrap();
    assert_eq!(mark(&api), Some(Mark::Stopped { at }));
    assert_eq!((&secret["metadata"]["ownerReferences"], &secret["data"]), (&Value::Null, &Value::Null));
    // Once more, and of one that nobody knows: nothing happens.
    stop(&api.home(), &id(), Timestamp::MAX).await.unwrap();
    assert_eq!(mark(&api), Some(Mark::Stopped { at }));
    stop(&api.home(), &SessionId::parse("nobody").unwrap(), at).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn l23_who_asks_is_answered_after_a_second_and_told_the_rest_later() {
    let api = Api::default();
    api.creations((0..5).map(|_| Creation::Refused(500, UNTRUSTED)));
    let (told, telling) = mpsc::channel();
    let begun = Instant::now();
    let home = api.home();
    begin(async move { make(&home, &objects()).await }, move |outcome| told.send(outcome).unwrap()).await;
    assert_eq!((begun.elapsed(), telling.try_recv().is_err()), (ANSWER, true));
    tokio::time::sleep(PATIENCE).await;
    assert_eq!(telling.try_recv(), Ok(Outcome::Submitted));
}

#[tokio::test(start_paused = true)]
async fn b36_a_pod_that_nobody_has_hardened_is_not_left_and_the_session_failed() {
    let api = Api::default();
    api.creations([Creation::Unhardened]);
    let Outcome::Refused(message) = make(&api.home(), &objects()).await else { panic!("it is no session") };
    assert!(message.starts_with("create: pods in the namespace of sessions are not hardened"), "{message}");
    assert_eq!(api.object("pods/run-abc234"), None);
    assert!(matches!(mark(&api), Some(Mark::Refused { .. })));
}

#[tokio::test(start_paused = true)]
async fn d07_a_stop_beats_a_refusal_whichever_is_noted_first() {
    let stopped = Mark::Stopped { at: Timestamp::UNIX_EPOCH };
    let (api, patch) = (Api::default(), stopped.on_secret());
    let stops = Creation::After(Box::new(move |api| api.merge("secrets/s-abc234", &patch)));
    api.creations([stops, Creation::Refused(403, NO_HOST_NETWORK)]);
    assert_eq!(make(&api.home(), &objects()).await, Outcome::Stopped);
    assert_eq!(mark(&api), Some(stopped.clone()));
    let api = Api::default();
    api.creations([Creation::Refused(403, NO_HOST_NETWORK)]);
    assert!(matches!(make(&api.home(), &objects()).await, Outcome::Refused(_)));
    stop(&api.home(), &id(), Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(mark(&api), Some(stopped), "after a restart the same is told");
}
