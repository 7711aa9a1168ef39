//! Many sessions at once, many clients, and such as take nothing: on a cluster of its own, since they take all the places that
//! an API has. One test at a time, for the same reason.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::{Barrier, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use anyhow::ensure;
use cofferdam_e2e::api;
use cofferdam_e2e::images::SHELL;
use cofferdam_e2e::install::{SESSIONS, SYSTEM};
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::stage::{Stage, value};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::client::{Answer, Client, head, status};
use crate::installed;
use crate::sessions::kind;

/// How many places an API has that is not told otherwise.
const PLACES: usize = 32;

/// So many are begun at a time, and so many wait for that; whoever comes beyond is sent away.
const TURNS: usize = 8 + 64;

/// What is kept of a terminal.
const KEPT: usize = 5_000_000;

/// As the policy that ships, but that one machine has room for as many sessions as there may be.
const POLICY: &str = "
profiles:
  default: {resources: {requests: {cpu: 5m, memory: 16Mi, ephemeral-storage: 8Mi}}}
  app: {}
  workspace: {}
";

/// The API, for one test.
struct Load {
    stage: &'static Stage,
    client: Client,
    _turn: MutexGuard<'static, ()>,
}

/// A session that was promised.
struct Made {
    /// Whose request it was of those that were sent at once.
    number: usize,
    id: String,
    token: String,
}

impl Load {
    fn begin() -> Self {
        static STAGE: OnceLock<Stage> = OnceLock::new();
        static TURN: Mutex<()> = Mutex::new(());
        // One that failed before has nothing to do with it.
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let stage = STAGE.get_or_init(|| api::start("e2e-api-load", Some(POLICY), &[]).unwrap());
        Self { stage, client: installed::client(stage), _turn: turn }
    }

    fn create(&self, script: &str) -> Answer {
        self.client.ask(
            "POST",
            "/v1/sessions",
            &json!({
                "bundle": {"entryRelativePath": "main.sh", "files": [{"relativePath": "main.sh", "contents": script}]},
                "env": {},
                "config": {"image": SHELL, "pullPolicy": "missing"},
            }),
        )
    }

    /// Asks for that many sessions at the same time: those that were promised, and how others were refused.
    fn at_once(&self, count: usize, script: impl Fn(usize) -> String + Sync) -> (Vec<Made>, Vec<Answer>) {
        let together = Barrier::new(count);
        let answers = each(0..count, |number| {
            together.wait();
            (number, self.create(&script(number)))
        });
        let (made, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(_, answer)| answer.status == 201);
        let made = made.into_iter().map(|(number, answer)| Made::of(number, &answer)).collect();
        (made, refused.into_iter().map(|(_, answer)| answer).collect())
    }

    fn stop(&self, made: &[Made]) {
        each(made, |one| {
            let path = format!("/v1/sessions/{}", one.id);
            assert_eq!(self.client.ask("DELETE", &path, &Value::Null).status, 204);
        });
    }

    /// The names of all pods that the API has made and that are not on their way out.
    fn pods(&self) -> BTreeSet<String> {
        let (of, ours) = (format!("--namespace={SESSIONS}"), "--selector=app.kubernetes.io/managed-by=cofferdam-api");
        let pods = self.stage.kubectl.json([of.as_str(), "get", "pods", ours]).unwrap();
        let pods = pods["items"].as_array().unwrap().iter();
        let there = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        there.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// How many streams of a kind are open.
    fn open(&self, stream: &str) -> usize {
        let pod = api::pod(self.stage, api::API).unwrap();
        let metrics = self.stage.answer(pod["metadata"]["name"].as_str().unwrap(), "/metrics").unwrap();
        let sample = format!("cofferdam_api_open_streams{{stream=\"{stream}\"}}");
        value(&metrics, &sample).unwrap().parse().unwrap()
    }

    /// The API is the one that it was, and far from what it may use (defect D15).
    fn is_well(&self) {
        let pod = api::pod(self.stage, api::API).unwrap();
        let container = &pod["status"]["containerStatuses"][0];
        assert_eq!(container["restartCount"], 0, "{container}");
        let memory = self.stage.cluster.memory(SYSTEM, pod["metadata"]["name"].as_str().unwrap(), "api").unwrap();
        eprintln!("the API's memory: {} of {} MiB at most", memory.peak >> 20, memory.limit >> 20);
        assert!(memory.peak < memory.limit / 10 * 9, "{memory:?}");
    }
}

impl Made {
    fn of(number: usize, answer: &Answer) -> Self {
        let (id, token) = answer.session();
        Self { number, id, token }
    }
}

/// Does something for each at the same time.
fn each<I: Send, T: Send>(items: impl IntoIterator<Item = I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || work(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn names(made: &[Made]) -> BTreeSet<String> {
    made.iter().map(|one| format!("run-{}", one.id)).collect()
}

#[test]
fn d15_of_fifty_sessions_at_once_as_many_as_there_are_places_run_and_fill_their_replays() {
    let load = Load::begin();
    // More than is kept of it, and then who it is.
    let script =
        |number| format!("head -c {} /dev/zero | tr '\\0' x; echo; echo \"I am {number}.\"; read line", KEPT + 999_999);
    let (made, refused) = load.at_once(50, script);
    assert_eq!((made.len(), names(&made).len()), (PLACES, PLACES), "{refused:?}");
    for answer in &refused {
        assert_eq!((answer.status, &answer.body["error"]), (409, &json!("too_many_sessions")), "{answer:?}");
    }
    each(&made, |one| {
        let events = load.client.events(&one.id, &one.token, |event| !matches!(kind(event), "" | "starting"));
        assert_eq!(kind(events.last().unwrap()), "running", "{events:#?}");
    });
    assert_eq!(load.pods(), names(&made), "each has one pod, and there is no other");
    each(&made, |one| load.client.terminal(&one.id, &one.token).until(&format!("I am {}.", one.number)));
    // All at the same time once more, now that the beginning of each is not kept any more.
    each(&made, |one| {
        let mut terminal = load.client.terminal(&one.id, &one.token);
        terminal.until(&format!("I am {}.", one.number));
        assert_eq!(terminal.gaps, 1);
        assert!((KEPT / 2..=KEPT).contains(&terminal.text.len()), "{} bytes are kept", terminal.text.len());
    });
    load.is_well();
    load.stop(&made);
}

#[test]
fn a_client_that_never_reads_is_cut_off_and_others_are_served() {
    let load = Load::begin();
    let script = "while :; do head -c 999999 /dev/zero | tr '\\0' x; sleep 0.1; done";
    let made = Made::of(0, &load.create(script));
    let mut events = load.client.send(
        "GET",
        &format!("/v1/sessions/{}/events?access_token={}", made.id, made.token),
        "Connection: close\r\n",
        "",
    );
    load.client.events(&made.id, &made.token, |event| kind(event) == "running");
    let mut silent = load.client.ask_for_terminal(&made.id, &made.token, 0);
    until("the terminal is open", PATIENCE, || {
        ensure!(load.open("io") == 1);
        Ok(())
    })
    .unwrap();

    let mut other = load.client.terminal(&made.id, &made.token);
    while other.text.len() < 2 * KEPT {
        assert!(other.frame());
    }
    drop(other);
    until("the terminal that nobody reads is closed", PATIENCE, || {
        ensure!(load.open("io") == 0);
        Ok(())
    })
    .unwrap();
    // What is on the way comes, and then it is over: it was not closed as one that has all.
    let mut bytes = vec![0; 64 * 1024];
    while silent.read(&mut bytes).is_ok_and(|length| length > 0) {}
    load.is_well();

    // Of the events there is nothing that it did not take.
    assert_eq!(load.open("events"), 1);
    load.stop(std::slice::from_ref(&made));
    assert_eq!(status(&head(&mut events)), 200);
    let mut text = String::new();
    let _ = events.read_to_string(&mut text);
    let ids: Vec<u64> = text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect();
    assert!(ids.iter().copied().eq(1..=ids.len() as u64) && text.contains("\"stopped\""), "{text}");
}

#[test]
fn a_client_that_comes_back_a_hundred_times_gets_each_event_and_each_byte_once() {
    const TIMES: usize = 100;
    let load = Load::begin();
    let script =
        "(i=0; while :; do echo \"line $i\"; i=$((i+1)); sleep 0.02; done) & read line; kill $!; wait; echo the end";
    let made = Made::of(0, &load.create(script));

    // While the session goes on: one frame at a time.
    let (mut text, mut last) = (String::new(), 0);
    for _ in 0..TIMES {
        let mut terminal = load.client.terminal_after(&made.id, &made.token, last);
        while terminal.text.is_empty() {
            assert!(terminal.frame());
        }
        assert_eq!(terminal.gaps, 0);
        text.push_str(&terminal.text);
        last = terminal.last;
    }
    let mut terminal = load.client.terminal_after(&made.id, &made.token, last);
    terminal.write("stop\r");
    while terminal.frame() {}
    text.push_str(&terminal.text);
    assert!(text.contains("the end"), "{text}");
    let mut whole = load.client.terminal(&made.id, &made.token);
    while whole.frame() {}
    assert_eq!(text, whole.text);
    let lines = text.lines().filter_map(|line| line.strip_prefix("line ")?.parse::<usize>().ok());
    assert!(lines.clone().eq(0..lines.count()), "{text}");

    // Of its events, when they have ended: one at a time, again and again.
    let all: Vec<_> = load.client.events_after(&made.id, &made.token, 0).collect();
    assert_eq!(kind(&all.last().unwrap().1), "exited", "{all:#?}");
    let mut place = 0;
    for _ in 0..TIMES {
        let next = load.client.events_after(&made.id, &made.token, place as u64).next();
        assert_eq!(next.as_ref(), all.get(place));
        assert!(next.is_none_or(|(id, _)| id == Some(place as u64 + 1)));
        place = (place + 1) % (all.len() + 1);
    }
}

#[test]
fn d04_what_programs_write_while_they_are_attached_to_comes_once_and_in_its_order() {
    let load = Load::begin();
    // Some write much at once, others little for as long as it takes.
    let script = |number: usize| {
        let (lines, pause) = if number.is_multiple_of(2) { (40_000, ":") } else { (200, "sleep 0.01") };
        format!(
            "i=0; while [ $i -lt {lines} ]; do echo \"line $i\"; i=$((i+1)); {pause}; done; echo \"$i lines\"; read line"
        )
    };
    let (made, refused) = load.at_once(16, script);
    assert!(refused.is_empty(), "{refused:?}");
    each(&made, |one| {
        let mut terminal = load.client.terminal(&one.id, &one.token);
        terminal.until(" lines\r\n");
        let mut lines: Vec<_> = terminal.text.trim_end().split("\r\n").collect();
        let count: usize = lines.pop().unwrap().trim_end_matches(" lines").parse().unwrap();
        let wrong = lines.iter().enumerate().find(|(number, line)| **line != format!("line {number}"));
        assert_eq!((wrong, lines.len()), (None, count), "of session {}", one.number);
    });
    load.stop(&made);
}

#[test]
fn who_asks_when_too_much_is_begun_is_told_to_come_again_and_what_was_promised_is_made() {
    let load = Load::begin();
    // Nothing is begun that fast that it is over before all have asked.
    load.stage.cluster.pause_api_server().unwrap();
    let (made, refused) = load.at_once(TURNS + 48, |number| format!("echo \"I am {number}.\"; read line"));
    load.stage.cluster.resume_api_server().unwrap();
    assert_eq!((made.len(), names(&made).len()), (PLACES, PLACES), "{refused:?}");
    let (full, overloaded): (Vec<_>, Vec<_>) = refused.iter().partition(|answer| answer.status == 409);
    assert!(full.iter().all(|answer| answer.body["error"] == "too_many_sessions"), "{full:?}");
    assert!(!overloaded.is_empty());
    for answer in overloaded {
        assert_eq!((answer.status, &answer.body["error"]), (503, &json!("overloaded")), "{answer:?}");
        assert!(answer.head.to_lowercase().contains("\r\nretry-after: 1\r\n"), "{answer:?}");
    }
    until("all that was promised is made", PATIENCE, || {
        ensure!(load.pods() == names(&made));
        Ok(())
    })
    .unwrap();
    each(&made, |one| {
        let session = load.client.ask("GET", &format!("/v1/sessions/{}", one.id), &Value::Null);
        assert!(matches!(session.body["status"]["kind"].as_str(), Some("starting" | "running")), "{session:?}");
    });
    load.stop(&made);
    load.is_well();
}
