use cofferdam_model::endpoints::{
    Address, AddressState, Endpoint as Port, Endpoints, ListeningState, RouteState, State,
};
use cofferdam_model::keys;
use cofferdam_model::ports::Protocol;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::session::record::{App, Record};
use crate::wire::{Io, Mode};

/// A story, and its clock.
struct Told {
    story: Story,
    record: Record,
    now: Instant,
}

impl Told {
    fn new() -> Self {
        let record = Record {
            created_at: "2026-11-30T18:00:00Z".parse().unwrap(),
            mode: Mode::Run,
            inspect: false,
            image: None,
            stream_token: None,
            apps: vec![App { name: "web".to_owned(), io: Io::Tty, ports: vec![] }],
        };
        let now = Instant::now();
        Self { story: Story::new(now), record, now }
    }

    fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    fn turn(&mut self, pod: Sighting<'_>, is_stopped: bool) -> Turn {
        self.story.turn(&Facts { record: &self.record, pod, is_stopped, refused: None }, self.now)
    }

    /// What is told of a pod that is there, each event in a few words.
    fn of(&mut self, pod: &Value) -> Vec<String> {
        self.turn(Sighting::There(pod), false).events.iter().map(short).collect()
    }
}

fn short(event: &Event) -> String {
    let where_ = |endpoints: &[Endpoint]| {
        let each = endpoints.iter().map(|endpoint| format!(" {}@{}", endpoint.port, endpoint.host));
        each.collect::<Vec<_>>().concat()
    };
    match event {
        Event::Status { status: Status::Running { endpoints } } => {
            format!("running{}", where_(endpoints.as_deref().unwrap_or_default()))
        }
        Event::Status { status: Status::Failed { message } } => format!("failed {message}"),
        Event::Status { status } => format!("{status:?}").to_lowercase(),
        Event::Progress { app, message, .. } => {
            format!("{}{message}", app.as_deref().map(|_| "* ").unwrap_or_default())
        }
        Event::Reachability { app, port, state } => format!("{app} {port} {state:?}"),
        Event::Route { host, port, state, reason, .. } => {
            format!("{port} {host} {state:?}{}", reason.as_deref().unwrap_or_default())
        }
        Event::Endpoints { added, removed, .. } => format!("endpoints +{} -{}", where_(added), where_(removed)),
        other => panic!("{other:?}"),
    }
}

fn pod(status: &Value) -> Value {
    json!({"metadata": {"annotations": {}}, "spec": {"restartPolicy": "Never"}, "status": status})
}

fn waits(reason: &str) -> Value {
    pod(
        &json!({"phase": "Pending", "containerStatuses": [{"name": "session", "state": {"waiting": {"reason": reason}}}]}),
    )
}

fn running(ports: &str) -> Value {
    let mut pod = pod(&json!({"phase": "Running"}));
    pod["metadata"]["annotations"][keys::PORTS] = json!(ports);
    pod
}

fn ended(code: i32) -> Value {
    pod(&json!({"phase": "Succeeded",
        "containerStatuses": [{"name": "session", "state": {"terminated": {"exitCode": code, "reason": "Completed"}}}]}))
}

/// A TCP port that has a route.
fn routed(number: u16, route: RouteState, listening: ListeningState, address: AddressState) -> Port {
    let host = format!("{number}-a.example.com");
    Port {
        port: number,
        protocol: Protocol::Tcp,
        url: Some(format!("https://{host}")),
        host: Some(host),
        route: Some(State { state: route, reason: None }),
        listening: Some(State { state: listening, reason: None }),
        address: Some(Address { state: address, identity: None, reason: Some("NotRouted: by another".to_owned()) }),
    }
}

fn fresh(number: u16) -> Port {
    routed(number, RouteState::Pending, ListeningState::Checking, AddressState::Pending)
}

fn udp(number: u16) -> Port {
    Port {
        protocol: Protocol::Udp,
        host: None,
        url: None,
        route: None,
        listening: None,
        address: None,
        ..fresh(number)
    }
}

/// The pod with what the agent knows of these ports.
fn with(mut pod: Value, ports: &[Port]) -> Value {
    let asked = Ports::of(&pod).unwrap().to_string();
    pod["metadata"]["annotations"][keys::ENDPOINTS] = json!(Endpoints::new(asked, ports.to_vec()).to_string());
    pod
}

#[test]
fn contract_1_12_the_way_to_a_program_that_runs() {
    let mut told = Told::new();
    let awaited = told.turn(Sighting::Awaited, false);
    assert_eq!(awaited.events.iter().map(short).collect::<Vec<_>>(), ["starting", "Scheduling"]);
    assert_eq!(awaited.again, Some(told.now + START));
    assert_eq!(told.of(&pod(&json!({"phase": "Pending"}))), Vec::<String>::new(), "the same text is not told again");
    assert_eq!(told.of(&waits("PodInitializing")), ["Delivering application"]);
    assert_eq!(told.of(&waits("ContainerCreating")), ["Creating container"]);
    assert_eq!(told.of(&running("")), ["running"], "without ports all is known");
    assert_eq!(told.of(&waits("ContainerCreating")), Vec::<String>::new(), "what ran does not start");
    let last = told.turn(Sighting::There(&ended(0)), false);
    assert_eq!(last.events, [Event::Status { status: Status::Exited { code: 0 } }]);
    assert_eq!(last.ended, Some(Ended { status: Status::Exited { code: 0 }, at: None, leaves_pod: false }));
}

#[test]
fn d04_a_program_that_was_never_seen_running_has_exited_all_the_same() {
    let mut told = Told::new();
    told.turn(Sighting::Awaited, false);
    assert_eq!(told.of(&ended(7)), ["exited { code: 7 }"]);
}

#[test]
fn d05_an_image_that_cannot_be_pulled_is_waited_for_and_no_longer_than_it_is_worth() {
    let mut told = Told::new();
    assert_eq!(told.of(&waits("ErrImagePull")), ["starting", "Pulling image"]);
    // A kubelet flickers between the two.
    assert_eq!(told.after(20).of(&waits("ImagePullBackOff")), Vec::<String>::new());
    let turn = told.after(9).turn(Sighting::There(&waits("ErrImagePull")), false);
    assert_eq!((turn.events, turn.again), (vec![], Some(told.now + Duration::from_secs(1))));
    let turn = told.after(1).turn(Sighting::There(&waits("ImagePullBackOff")), false);
    assert_eq!(
        turn.events.iter().map(short).collect::<Vec<_>>(),
        ["failed start: ImagePullBackOff: the image could not be pulled"]
    );
    assert!(turn.ended.unwrap().leaves_pod, "somebody has to delete it");
}

#[test]
fn d05_what_passes_begins_anew_and_what_never_passes_is_told_at_once() {
    let mut told = Told::new();
    told.of(&waits("CreateContainerConfigError"));
    told.after(9).of(&waits("ContainerCreating"));
    told.after(9).of(&waits("CreateContainerConfigError"));
    assert_eq!(told.after(9).of(&waits("CreateContainerConfigError")), Vec::<String>::new());
    let message = "failed start: CreateContainerConfigError: its container cannot be made; ask the operator where trying again \
                   does not help";
    assert_eq!(told.after(1).of(&waits("CreateContainerConfigError")), [message]);
    let events = Told::new().of(&waits("InvalidImageName"));
    assert_eq!(events, ["starting", "failed start: InvalidImageName: that is no name of an image"]);
}

#[test]
fn ses_10_what_does_not_start_in_time_has_failed_with_what_it_waited_for() {
    let unscheduled = pod(&json!({"phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}));
    let mut told = Told::new();
    assert_eq!(told.of(&unscheduled), ["starting", "Unschedulable"]);
    assert_eq!(told.after(119).of(&unscheduled), Vec::<String>::new());
    let message = "failed start: Unschedulable: no node has room for it, or none may run it; try again later";
    assert_eq!(told.after(1).of(&unscheduled), [message]);
    let mut told = Told::new();
    told.of(&waits("ContainerCreating"));
    let turn = told.after(120).turn(Sighting::There(&waits("ContainerCreating")), false);
    let message = "failed start: the program did not run within 120 s: Creating container";
    assert_eq!(turn.events.iter().map(short).collect::<Vec<_>>(), [message]);
    assert!(turn.ended.unwrap().leaves_pod);
}

#[test]
fn d07_what_is_stopped_while_it_starts_has_not_failed() {
    let mut told = Told::new();
    told.of(&waits("ErrImagePull"));
    let turn = told.after(30).turn(Sighting::There(&waits("ErrImagePull")), true);
    assert_eq!(turn.events, [Event::Status { status: Status::Stopped }]);
}

#[test]
fn d23_a_program_runs_when_its_addresses_are_known() {
    let mut told = Told::new();
    let pod = running("3000,4000/udp");
    assert_eq!(told.of(&pod), Vec::<String>::new());
    let known = with(pod, &[fresh(3000), udp(4000)]);
    let expected = ["running 3000@3000-a.example.com 4000@", "web 3000 Checking", "3000 3000-a.example.com Pending"];
    assert_eq!(told.after(2).of(&known), expected);
    assert_eq!(told.of(&known), Vec::<String>::new());
}

#[test]
fn d23_addresses_that_do_not_come_are_told_of_later() {
    let mut told = Told::new();
    let pod = running("3000");
    assert_eq!(told.turn(Sighting::There(&pod), false).again, Some(told.now + ADDRESSES));
    let told_without = ["running 3000@", "The program runs; its addresses are not known yet"];
    assert_eq!(told.after(3).of(&pod), told_without);
    assert_eq!(told.after(9).of(&pod), Vec::<String>::new());
    // What is said of other ports says nothing of these.
    let other = with(running("4000"), &[fresh(4000)]);
    let mut stale = pod.clone();
    stale["metadata"]["annotations"][keys::ENDPOINTS] = other["metadata"]["annotations"][keys::ENDPOINTS].clone();
    assert_eq!(told.of(&stale), Vec::<String>::new());
    let expected = ["running 3000@3000-a.example.com", "web 3000 Checking", "3000 3000-a.example.com Pending"];
    assert_eq!(told.of(&with(pod, &[fresh(3000)])), expected);
}

#[test]
fn rte_17_where_nothing_routes_no_address_is_told_and_running_once() {
    let mut told = Told::new();
    let pod = running("3000");
    told.turn(Sighting::There(&pod), false);
    told.after(3).of(&pod);
    let unrouted = Port { host: None, url: None, route: None, address: None, ..fresh(3000) };
    assert_eq!(told.of(&with(pod, &[unrouted])), ["web 3000 Checking"]);
}

#[test]
fn d22_each_change_of_a_port_is_told_for_itself_and_for_ever() {
    let mut told = Told::new();
    let pod = running("3000");
    told.of(&with(pod.clone(), &[fresh(3000)]));
    let mut of = |route, listening, address| told.of(&with(pod.clone(), &[routed(3000, route, listening, address)]));
    assert_eq!(
        of(RouteState::Programmed, ListeningState::Reachable, AddressState::Reachable),
        ["web 3000 Reachable", "3000 3000-a.example.com Programmed", "* Port 3000 answers at 3000-a.example.com"]
    );
    assert_eq!(
        of(RouteState::Programmed, ListeningState::Unreachable, AddressState::Unreachable),
        ["web 3000 Unreachable", "* Port 3000 does not answer at 3000-a.example.com: NotRouted: by another"]
    );
    assert_eq!(
        of(RouteState::Unprogrammed, ListeningState::Reachable, AddressState::Reachable),
        ["web 3000 Reachable", "3000 3000-a.example.com Unprogrammed", "* Port 3000 answers at 3000-a.example.com"]
    );
    let mut refused = routed(3000, RouteState::Unprogrammed, ListeningState::Reachable, AddressState::Reachable);
    refused.route = Some(State { state: RouteState::Unprogrammed, reason: Some("Unclaimed: by nobody".to_owned()) });
    assert_eq!(told.of(&with(pod, &[refused])), ["3000 3000-a.example.com UnprogrammedUnclaimed: by nobody"]);
}

#[test]
fn rte_19_ports_that_come_and_go_are_told_as_a_change() {
    let mut told = Told::new();
    told.of(&with(running("3000,5000"), &[fresh(3000), fresh(5000)]));
    let changed = running("3000,4000");
    assert_eq!(told.of(&changed), Vec::<String>::new(), "the agent has not looked yet");
    assert_eq!(
        told.of(&with(changed, &[fresh(3000), fresh(4000)])),
        [
            "endpoints + 4000@4000-a.example.com - 5000@5000-a.example.com",
            "web 4000 Checking",
            "4000 4000-a.example.com Pending"
        ]
    );
    let Status::Running { endpoints: Some(endpoints) } = told.story.status() else { panic!("it runs") };
    assert_eq!(endpoints.iter().map(|endpoint| endpoint.port).collect::<Vec<_>>(), [3000, 4000]);
}

#[test]
fn b145_of_a_pod_that_is_being_deleted_nothing_new_is_told() {
    let mut told = Told::new();
    let pod = running("3000");
    told.of(&with(pod.clone(), &[fresh(3000)]));
    let mut leaving =
        with(pod, &[routed(3000, RouteState::Programmed, ListeningState::Reachable, AddressState::Reachable)]);
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-30T18:30:00Z");
    assert_eq!(told.of(&leaving), ["Ending"]);
    assert_eq!(told.of(&leaving), Vec::<String>::new());
    let gone = told.turn(Sighting::Gone(Some(&leaving)), false);
    let message = "failed the pod was deleted while the program ran";
    assert_eq!(gone.events.iter().map(short).collect::<Vec<_>>(), [message]);
}

#[test]
fn d29_of_a_session_that_is_found_while_it_goes_a_status_comes_first() {
    let mut leaving = running("3000");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-11-30T18:30:00Z");
    let mut told = Told::new();
    assert_eq!(told.of(&leaving), ["starting", "Ending"]);
    assert_eq!(told.of(&leaving), Vec::<String>::new());
}

#[test]
fn d29_a_session_that_is_found_is_told_from_where_it_is() {
    let mut told = Told::new();
    let known = with(
        running("3000"),
        &[routed(3000, RouteState::Programmed, ListeningState::Reachable, AddressState::Reachable)],
    );
    assert_eq!(
        told.of(&known),
        [
            "running 3000@3000-a.example.com",
            "web 3000 Reachable",
            "3000 3000-a.example.com Programmed",
            "* Port 3000 answers at 3000-a.example.com"
        ]
    );
}

fn some_pod() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(pod(&json!({"phase": "Pending"}))),
        prop::sample::select(vec!["ContainerCreating", "ErrImagePull", "CreateContainerError"]).prop_map(waits),
        Just(running("3000")),
        Just(running("")),
        Just(with(running("3000"), &[fresh(3000)])),
        Just(with(running("3000,4000"), &[fresh(3000), fresh(4000)])),
        (0..3).prop_map(ended),
        Just(pod(&json!({"phase": "Failed"}))),
    ]
}

proptest! {
    #[test]
    fn d07_whatever_happens_there_is_one_final_status_and_it_is_the_last_event(
        steps in prop::collection::vec((0..4, some_pod(), any::<bool>(), 0_u64..40), 1..40),
    ) {
        let mut told = Told::new();
        let mut all = Vec::new();
        let mut ends = 0;
        for (sighting, pod, is_stopped, seconds) in steps {
            let sighting = match sighting {
                0 => Sighting::Awaited,
                1 => Sighting::Gone(Some(&pod)),
                _ => Sighting::There(&pod),
            };
            let turn = told.after(seconds).turn(sighting, is_stopped);
            prop_assert!(turn.again.is_none_or(|again| again > told.now), "no turn asks for itself at once");
            ends += usize::from(turn.ended.is_some());
            if let Some(ended) = &turn.ended {
                prop_assert_eq!(turn.events.last(), Some(&Event::Status { status: ended.status.clone() }));
            }
            all.extend(turn.events);
        }
        let is_final = |event: &Event| matches!(event, Event::Status { status } if status.is_final());
        prop_assert_eq!(all.iter().filter(|event| is_final(event)).count(), ends);
        prop_assert!(ends <= 1);
        prop_assert!(ends == 0 || all.last().is_some_and(is_final), "nothing follows it");
        let starting = Event::Status { status: Status::Starting };
        let from_start = all.iter().rposition(|event| *event == starting).unwrap_or(0);
        let running = all.iter().position(|event| matches!(event, Event::Status { status: Status::Running { .. } }));
        prop_assert!(running.is_none_or(|running| from_start <= running), "what ran does not start again");
    }
}
