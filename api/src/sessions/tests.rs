use cofferdam_model::ports::Ports;
use cofferdam_runtime::http::Budget;
use serde_json::{Value, json};

use super::*;
use crate::bodies::{Files, Limits};
use crate::session::hub::Next;
use crate::session::marks::Mark;
use crate::session::record::{App, Confidential};
use crate::session::testing::{Api, Creation};
use crate::wire::{Bundle, BundleFile, Encoding, Environment, Io, Mode, PullPolicy, Status};

const REFUSED: &str =
    "admission webhook \"enforced.cofferdam.dev\" denied the request: Cofferdam refuses this pod: spec.x: no (host)";

fn order_of(contents: &str) -> Order {
    let file =
        BundleFile { relative_path: "src/a.yaml".to_owned(), contents: contents.to_owned(), encoding: Encoding::Utf8 };
    let bundle = Bundle { entry_relative_path: "src/a.yaml".to_owned(), files: vec![file] };
    let environment = Environment(vec![("KEY".to_owned(), "hunter2".to_owned())]);
    let app = App { name: "app".to_owned(), io: Io::Tty, ports: vec![] };
    let created_at = Timestamp::now();
    let image = "runtime:1".to_owned();
    Order {
        record: Record {
            created_at,
            mode: Mode::Run,
            inspect: false,
            image: Some(image.clone()),
            stream_token: None,
            apps: vec![app],
        },
        kind: Kind::Run {
            entry: "src/a.yaml".to_owned(),
            parcel: Parcel {
                files: Files::of(bundle, Limits { max_bytes: 1 << 20, max_entries: 10 }).unwrap(),
                memory: Budget::new(1).share(),
            },
        },
        image,
        pull_policy: PullPolicy::Missing,
        confidential: Confidential::new(environment, None).unwrap(),
        ports: Ports::default(),
    }
}

fn order() -> Order {
    order_of("kind: App")
}

/// What the cluster has of a session.
fn seen(api: &Api, id: &SessionId) -> Seen {
    let object = |path: String| api.object(&path).map(Arc::new);
    Seen { pod: object(format!("pods/run-{id}")), secret: object(format!("secrets/s-{id}")) }
}

/// The informer tells what the cluster has of a session.
fn tell(sessions: &Sessions, api: &Api, id: &SessionId) {
    sessions.told(Told::Session(id.clone(), seen(api, id)));
}

fn pod_becomes(sessions: &Sessions, api: &Api, id: &SessionId, status: &Value) {
    api.merge(&format!("pods/run-{id}"), &json!({"status": status}));
    tell(sessions, api, id);
}

fn ended(code: i32) -> Value {
    let terminated = json!({"exitCode": code, "finishedAt": "2026-01-02T03:04:05Z"});
    let phase = if code == 0 { "Succeeded" } else { "Failed" };
    json!({"phase": phase, "containerStatuses": [{"name": "session", "state": {"terminated": terminated}}]})
}

/// Waits for what a task is about to do.
async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it does not come about");
}

fn status(sessions: &Sessions, id: &SessionId) -> Option<Status> {
    sessions.get(id).map(|session| session.status)
}

/// All that was told, by name and id, to the end.
async fn all_events(sessions: &Sessions, id: &SessionId) -> Vec<(u64, String)> {
    let mut events = sessions.find(id).unwrap().hub.events(0);
    let mut told = Vec::new();
    loop {
        match events.next().await {
            Next::Entry { id, entry } => {
                let event: Value = serde_json::from_slice(&entry.json).unwrap();
                let text = &event["status"]["kind"];
                told.push((id, text.as_str().unwrap_or(entry.name).to_owned()));
            }
            Next::Gap => told.push((0, "gap".to_owned())),
            Next::End => return told,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_told_from_its_beginning_to_its_end_and_forgotten_when_it_was_kept_for_long_enough() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 2);
    let id = sessions.create(order()).await.unwrap();
    assert_eq!((id.as_str().len(), sessions.count()), (12, (1, 0)));
    let pod = api.object(&format!("pods/run-{id}")).unwrap();
    let notes = &pod["metadata"]["annotations"];
    assert_eq!(notes["cofferdam.dev/body-url"], format!("http://api.test:8063/internal/bundles/{id}"));
    assert_eq!(notes["cofferdam.dev/entry"], "src/a.yaml");
    assert!(!pod.to_string().contains("hunter2"), "{pod}");
    pod_becomes(&sessions, &api, &id, &json!({"phase": "Running"}));
    until(|| matches!(status(&sessions, &id), Some(Status::Running { .. }))).await;
    pod_becomes(&sessions, &api, &id, &ended(3));
    until(|| status(&sessions, &id) == Some(Status::Exited { code: 3 })).await;
    assert_eq!(sessions.get(&id).unwrap().exited_at.as_deref(), Some("2026-01-02T03:04:05.000Z"));
    let told: Vec<_> = all_events(&sessions, &id).await;
    assert_eq!((told[0].clone(), told.last().unwrap().1.as_str()), ((1, "starting".to_owned()), "exited"));
    // Its end is kept, and then nothing of it is.
    let at = sessions.kept(&id).unwrap().ended().unwrap();
    sessions.sweep(at + retention::KEPT - Duration::from_secs(1)).await;
    assert!(sessions.get(&id).is_some() && api.object(&format!("pods/run-{id}")).is_some());
    sessions.sweep(at + retention::KEPT).await;
    assert_eq!((sessions.get(&id), seen(&api, &id)), (None, Seen::default()));
}

#[tokio::test(start_paused = true)]
async fn ses_04_what_goes_wrong_after_the_promise_is_told_by_the_events() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 4);
    api.creations([Creation::Refused(403, REFUSED)]);
    let id = sessions.create(order()).await.unwrap();
    until(|| sessions.count() == (0, 1)).await;
    let Some(Status::Failed { message }) = status(&sessions, &id) else { panic!("it is refused") };
    assert!(message.starts_with("create: Cofferdam refuses this pod"), "{message}");
    // More than the store may hold, and little of it can be packed.
    let noise: String = (0..30_000).map(|_| fastrand::alphanumeric()).collect();
    let id = sessions.create(order_of(&noise)).await.unwrap();
    until(|| sessions.count() == (0, 2)).await;
    let Some(Status::Failed { message }) = status(&sessions, &id) else { panic!("there is no room") };
    assert!(message.starts_with("create: the bodies that wait"), "{message}");
    assert_eq!(seen(&api, &id), Seen::default());
    assert_eq!(all_events(&sessions, &id).await.last().unwrap().1, "failed");
    let mut bytes = sessions.find(&id).unwrap().hub.bytes(0);
    assert_eq!(bytes.next().await, Next::End);
}

#[tokio::test(start_paused = true)]
async fn ses_08_who_is_stopped_is_told_as_stopped_and_is_kept() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 4);
    let id = sessions.create(order()).await.unwrap();
    pod_becomes(&sessions, &api, &id, &json!({"phase": "Running"}));
    sessions.stop(&id).await.unwrap();
    tell(&sessions, &api, &id);
    until(|| status(&sessions, &id) == Some(Status::Stopped)).await;
    assert_eq!(api.object(&format!("pods/run-{id}")), None);
    assert!(api.object(&format!("secrets/s-{id}")).is_some(), "it tells of the end after a restart");
    let asked = api.asked().len();
    sessions.stop(&id).await.unwrap();
    assert_eq!(api.asked().len(), asked, "it has ended");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_session_of_ours_is_not_touched() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 4);
    let home = api.home();
    home.cluster.create(&Home::pods(), "n", &json!({"metadata": {"name": "run-a"}})).await.unwrap();
    sessions.stop(&SessionId::parse("a").unwrap()).await.unwrap();
    sessions.stop(&SessionId::parse("b").unwrap()).await.unwrap();
    assert!(api.object("pods/run-a").is_some());
}

#[tokio::test(start_paused = true)]
async fn another_replicas_session_is_stopped_before_it_is_known() {
    let api = Api::default();
    let (sessions, other) = (Sessions::of_test(api.home(), 4), Sessions::of_test(api.home(), 4));
    let id = sessions.create(order()).await.unwrap();
    other.stop(&id).await.unwrap();
    assert_eq!(api.object(&format!("pods/run-{id}")), None);
}

#[tokio::test(start_paused = true)]
async fn ses_09_who_is_stopped_before_there_is_anything_of_it_has_no_pod() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 4);
    let (id, order) = (SessionId::parse("abcdefghijkl").unwrap(), order());
    let session = sessions.begin(&id, &order.record).unwrap();
    sessions.stop(&id).await.unwrap();
    let outcome = sessions.make(id.clone(), order, &session).await;
    assert_eq!(outcome, Outcome::Stopped);
    session.has_begun(outcome);
    until(|| status(&sessions, &id) == Some(Status::Stopped)).await;
    assert_eq!(api.object("pods/run-abcdefghijkl"), None);
}

#[tokio::test(start_paused = true)]
async fn ses_12_the_session_that_ended_first_makes_room_and_does_not_come_back() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 1);
    let first = sessions.create(order()).await.unwrap();
    tell(&sessions, &api, &first);
    assert_eq!(sessions.create(order()).await, Err(NotBegun::Full));
    pod_becomes(&sessions, &api, &first, &ended(0));
    until(|| sessions.count() == (0, 1)).await;
    let live = sessions.find(&first).unwrap();
    let second = sessions.create(order()).await.unwrap();
    assert!(live.hub.is_over() && sessions.find(&first).is_none() && sessions.find(&second).is_some());
    // It is told of while it goes.
    let leaving = seen(&api, &second);
    sessions.told(Told::Session(first.clone(), leaving));
    assert!(sessions.find(&first).is_none());
    until(|| seen(&api, &first) == Seen::default()).await;
    tell(&sessions, &api, &first);
    assert!(!sessions.knows(first.as_str()) && sessions.knows(second.as_str()));
}

#[tokio::test(start_paused = true)]
async fn d29_a_process_that_begins_goes_on_with_the_sessions_that_it_finds() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 4);
    let id = sessions.create(order()).await.unwrap();
    let made = Timestamp::now() - Duration::from_hours(1);
    api.merge(&format!("pods/run-{id}"), &json!({"metadata": {"creationTimestamp": made.to_string()}}));
    pod_becomes(&sessions, &api, &id, &json!({"phase": "Running"}));
    until(|| matches!(status(&sessions, &id), Some(Status::Running { .. }))).await;
    let last = sessions.find(&id).unwrap().hub.events(0).try_next();
    assert!(matches!(last, Some(Next::Entry { id: 1, .. })));
    drop(sessions);
    let asked = api.asked().len();

    let sessions = Sessions::of_test(api.home(), 4);
    tell(&sessions, &api, &id);
    assert_eq!(sessions.count(), (1, 0), "at once");
    let mut events = sessions.find(&id).unwrap().hub.events(1);
    assert_eq!(events.try_next(), Some(Next::Gap));
    let Some(Next::Entry { id: number, .. }) = events.try_next() else { panic!("nothing follows") };
    assert!((3_600_000..3_700_000).contains(&number), "{number}");
    assert!(api.asked()[asked..].iter().all(|asked| asked.starts_with("GET")), "nothing is changed");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_no_pod_tells_is_told_after_a_restart() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 4);
    let stopped = sessions.create(order()).await.unwrap();
    sessions.stop(&stopped).await.unwrap();
    api.creations([Creation::Refused(403, REFUSED)]);
    let refused = sessions.create(order()).await.unwrap();
    until(|| sessions.count().1 == 1).await;
    drop(sessions);
    let sessions = Sessions::of_test(api.home(), 4);
    for id in [&stopped, &refused] {
        tell(&sessions, &api, id);
    }
    assert_eq!(status(&sessions, &stopped), Some(Status::Stopped));
    let Some(Status::Failed { message }) = status(&sessions, &refused) else { panic!("it was refused") };
    assert!(message.starts_with("create: Cofferdam refuses this pod"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn d14_ses_10_a_session_that_does_not_start_in_time_fails_and_leaves_no_pod() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 4);
    let id = sessions.create(order()).await.unwrap();
    pod_becomes(&sessions, &api, &id, &json!({"phase": "Pending"}));
    tokio::time::sleep(Duration::from_secs(119)).await;
    assert_eq!(status(&sessions, &id), Some(Status::Starting));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(matches!(status(&sessions, &id), Some(Status::Failed { .. })));
    until(|| api.object(&format!("pods/run-{id}")).is_none()).await;
    let secret = api.object(&format!("secrets/s-{id}")).unwrap();
    assert!(matches!(Mark::read(&secret), Some(Mark::Refused { .. })), "{secret}");
}

#[tokio::test(start_paused = true)]
async fn d14_a_start_that_fails_when_its_process_is_gone_leaves_no_pod() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 4);
    let id = sessions.create(order()).await.unwrap();
    drop(sessions);
    let sessions = Sessions::of_test(api.home(), 4);
    pod_becomes(&sessions, &api, &id, &json!({"phase": "Pending"}));
    // It has its time again: nobody knows for how long nobody looked.
    tokio::time::sleep(Duration::from_secs(121)).await;
    until(|| matches!(status(&sessions, &id), Some(Status::Failed { .. }))).await;
    until(|| api.object(&format!("pods/run-{id}")).is_none()).await;
}

/// A session whose start broke off when there was a Secret of it, and no pod.
async fn broken_off(api: &Api) -> (Sessions, SessionId) {
    let (sessions, id) = (Sessions::of_test(api.home(), 4), SessionId::parse("abcdefghijkl").unwrap());
    let Order { record, confidential, .. } = order();
    let secret = record.secret(&id, "n", &confidential);
    api.home().cluster.create(&Home::secrets(), "n", &secret).await.unwrap();
    tell(&sessions, api, &id);
    (sessions, id)
}

#[tokio::test(start_paused = true)]
async fn what_a_start_left_half_done_is_swept() {
    let api = Api::default();
    let (sessions, id) = broken_off(&api).await;
    assert_eq!(status(&sessions, &id), Some(Status::Starting));
    sessions.sweep(Timestamp::now() + Duration::from_secs(301)).await;
    tell(&sessions, &api, &id);
    until(|| matches!(status(&sessions, &id), Some(Status::Failed { .. }))).await;
}

#[tokio::test(start_paused = true)]
async fn what_others_forgot_is_held_no_longer_than_there_is_room() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 1);
    let ids = ["a", "b", "c"].map(|id| SessionId::parse(id).unwrap());
    for id in &ids {
        let secret = order().record.secret(id, "n", &Confidential::default());
        let pod = json!({"metadata": {"name": format!("run-{id}")}, "status": ended(0)});
        let seen = Seen { pod: Some(Arc::new(pod)), secret: Some(Arc::new(secret)) };
        sessions.told(Told::Session(id.clone(), seen));
        sessions.told(Told::Session(id.clone(), Seen::default()));
    }
    assert_eq!(sessions.count(), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn l23_what_was_promised_and_is_not_made_yet_is_waited_for_at_the_end() {
    let api = Api::default();
    let sessions = Sessions::of_test(api.home(), 4);
    // It is made after some seconds, and promised after one.
    api.creations((0..5).map(|_| Creation::Refused(503, "")));
    let id = sessions.create(order()).await.unwrap();
    assert_eq!(api.object(&format!("pods/run-{id}")), None);
    sessions.settled().await;
    assert!(api.object(&format!("pods/run-{id}")).is_some());
}

#[test]
fn ses_05_ids_are_names_that_nobody_guesses() {
    let (one, other) = (new_id().unwrap(), new_id().unwrap());
    assert_ne!(one, other);
    assert!(
        one.as_str().len() == 12 && one.as_str().bytes().all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(&b))
    );
}

#[tokio::test(start_paused = true)]
async fn what_lives_is_not_ended_for_a_watch_that_is_late() {
    let api = Api::default();
    let (sessions, id) = broken_off(&api).await;
    let pod = json!({"metadata": {"name": format!("run-{id}")}, "status": {"phase": "Running"}});
    api.home().cluster.create(&Home::pods(), "n", &pod).await.unwrap();
    sessions.sweep(Timestamp::now() + Duration::from_secs(121)).await;
    let secret = api.object(&format!("secrets/s-{id}")).unwrap();
    assert_eq!((Mark::read(&secret), secret["metadata"]["ownerReferences"][0]["kind"].as_str()), (None, Some("Pod")));
    tell(&sessions, &api, &id);
    until(|| matches!(status(&sessions, &id), Some(Status::Running { .. }))).await;
}

#[tokio::test(start_paused = true)]
async fn d07_another_replicas_session_that_failed_is_not_stopped_afterwards() {
    let api = Api::default();
    let (sessions, other) = (Sessions::of_test(api.home(), 4), Sessions::of_test(api.home(), 4));
    api.creations([Creation::Refused(403, REFUSED)]);
    let id = sessions.create(order()).await.unwrap();
    other.stop(&id).await.unwrap();
    let secret = api.object(&format!("secrets/s-{id}")).unwrap();
    assert!(matches!(Mark::read(&secret), Some(Mark::Refused { .. })), "{secret}");
}
