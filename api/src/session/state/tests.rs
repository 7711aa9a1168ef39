use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::session::record::App;
use crate::wire::{Io, Mode};

fn record() -> Record {
    Record {
        created_at: "2026-11-30T18:00:00Z".parse().unwrap(),
        mode: Mode::Run,
        inspect: false,
        image: None,
        stream_token: None,
        apps: vec![App { name: "app".to_owned(), io: Io::Tty, ports: vec![] }],
    }
}

fn pod(status: &Value) -> Value {
    json!({
        "metadata": {"name": "run-a"},
        "spec": {
            "restartPolicy": "Never",
            "initContainers": [{"name": "mesh", "restartPolicy": "Always"}, {"name": "cofferdam-fetch"}, {"name": "other"}],
            "containers": [{"name": "session"}],
        },
        "status": status,
    })
}

fn leaving(mut pod: Value) -> Value {
    pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T18:30:00Z");
    pod
}

fn facts<'a>(record: &'a Record, pod: Sighting<'a>) -> Facts<'a> {
    Facts { record, pod, is_stopped: false, refused: None }
}

fn state_of(pod: &Value) -> State {
    state(&facts(&record(), Sighting::There(pod)))
}

/// The final status of a pod with this status.
fn ended(status: &Value) -> Status {
    let pod = pod(status);
    match state_of(&pod) {
        State::Ended(ended) => ended.status,
        other => panic!("{other:?} of {pod}"),
    }
}

fn failed(message: &str) -> Status {
    Status::Failed { message: message.to_owned() }
}

/// The status of a pod whose program has terminated like this.
fn program(phase: &str, terminated: &Value) -> Value {
    json!({"phase": phase, "containerStatuses": [{"name": "session", "state": {"terminated": terminated}}]})
}

fn waiting_for(status: &Value, image: Option<&str>) -> Waiting {
    let record = Record { image: image.map(str::to_owned), ..record() };
    match state(&facts(&record, Sighting::There(&pod(status)))) {
        State::Starting(waiting) => waiting,
        other => panic!("{other:?}"),
    }
}

/// The status of a pod of which a container waits.
fn waits(list: &str, name: &str, waiting: &Value) -> Value {
    json!({"phase": "Pending", list: [{"name": name, "state": {"waiting": waiting}}]})
}

#[test]
fn contract_1_12_what_is_waited_for() {
    let init = |reason| waits("initContainerStatuses", "cofferdam-fetch", &json!({ "reason": reason }));
    let own = |reason| waits("containerStatuses", "session", &json!({ "reason": reason }));
    for (status, progress) in [
        (json!({}), "Scheduling"),
        (json!({"phase": "Pending"}), "Scheduling"),
        (own("ContainerCreating"), "Creating container"),
        (own("PodInitializing"), "Delivering application"),
        (own("ErrImagePull"), "Pulling image"),
        (own("ImagePullBackOff"), "Pulling image"),
        (own("CreateContainerConfigError"), "CreateContainerConfigError"),
        (own("Some-Runtime: https://u:p@h"), "Waiting"),
        (init("ErrImagePull"), "Pulling image"),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 node(s) had taint {secret}"}]}),
            "Unschedulable",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{"name": "cofferdam-fetch", "state": {"running": {}}}],
                "containerStatuses": [{"name": "session", "state": {"waiting": {"reason": "PodInitializing"}}}]}),
            "Delivering application",
        ),
    ] {
        assert_eq!(waiting_for(&status, None).progress, progress, "{status}");
    }
}

#[test]
fn d05_what_keeps_a_session_from_starting_has_a_kind_and_a_sentence() {
    let own = |reason, message| waits("containerStatuses", "session", &json!({"reason": reason, "message": message}));
    for (status, kind, sentence) in [
        (own("InvalidImageName", "x"), Block::Final, "start: InvalidImageName: that is no name of an image"),
        (
            own("ErrImageNeverPull", "x"),
            Block::Final,
            "start: ErrImageNeverPull: the node does not have the image, and it may not be pulled; choose another pull policy",
        ),
        (own("ErrImagePull", "manifest unknown"), Block::Pull, "start: ErrImagePull: the registry does not have it"),
        (
            own("ImagePullBackOff", "Back-off pulling image \"s3cret\": 401 Unauthorized"),
            Block::Pull,
            "start: ImagePullBackOff: the registry does not give it to us, or does not have it",
        ),
        (
            own("ErrImagePull", "toomanyrequests: x"),
            Block::Pull,
            "start: ErrImagePull: the registry gives no more images for now",
        ),
        (
            own("ErrImagePull", "HEAD request to http://r:4290/v2/a/manifests/sha256:401: 500 Internal Server Error"),
            Block::Pull,
            "start: ErrImagePull: the registry has a fault of its own; try again later",
        ),
        (
            own("ErrImagePull", "pulling r:4290/a:429 failed (401): no"),
            Block::Pull,
            "start: ErrImagePull: the registry does not give it to us, or does not have it",
        ),
        (
            own("ErrImagePull", "dial tcp: no such host"),
            Block::Pull,
            "start: ErrImagePull: the registry does not answer",
        ),
        (own("ErrImagePull", ""), Block::Pull, "start: ErrImagePull: the image could not be pulled"),
        (
            own("CreateContainerConfigError", "secret \"x\" not found"),
            Block::Container,
            "start: CreateContainerConfigError: its container cannot be made; ask the operator where trying again does not help",
        ),
        (
            own("NewReason", "s3cret"),
            Block::Container,
            "start: Blocked: its container cannot be made; ask the operator where trying again does not help",
        ),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "s3cret"}]}),
            Block::Node,
            "start: Unschedulable: no node has room for it, or none may run it; try again later",
        ),
    ] {
        let blocked = Blocked { kind, sentence: sentence.to_owned() };
        assert_eq!(waiting_for(&status, None).blocked, Some(blocked), "{status}");
    }
    for reason in ["ContainerCreating", "PodInitializing"] {
        assert_eq!(waiting_for(&own(reason, "x"), None).blocked, None);
    }
}

#[test]
fn d05_of_an_image_that_the_client_named_the_kubelets_words_are_told_without_what_may_be_secret() {
    let message =
        "failed to pull \"r.example.com/a:1\": Get \"https://t:s3cret@r.example.com/v2?sig=s3cret\":\n 403 Forbidden";
    let status = waits("containerStatuses", "session", &json!({"reason": "ErrImagePull", "message": message}));
    assert_eq!(
        waiting_for(&status, Some("r.example.com/a:1")).blocked.unwrap().sentence,
        "start: ErrImagePull: image r.example.com/a:1: the registry does not give it to us, or does not have it: failed to \
         pull \"r.example.com/a:1\": Get \"https://r.example.com/v2?…\": 403 Forbidden"
    );
    let sentence = waiting_for(&status, None).blocked.unwrap().sentence;
    assert!(!sentence.contains("r.example.com"), "the operator's image: {sentence}");
}

#[test]
fn b44_an_image_whose_user_is_a_name_is_told_at_once() {
    let message = "container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root";
    let reason = json!({"reason": "CreateContainerConfigError", "message": message});
    let waiting = waiting_for(&waits("containerStatuses", "session", &reason), None);
    assert_eq!(waiting.progress, "CreateContainerConfigError");
    let blocked = waiting.blocked.unwrap();
    assert_eq!(blocked.kind, Block::Final);
    assert_eq!(
        blocked.sentence,
        "start: CreateContainerConfigError: the image runs as root or names its user, and a session needs a number that is \
         not 0"
    );
}

#[test]
fn b147_an_init_container_that_fails_again_and_again_is_told_with_what_it_said() {
    let status = json!({"phase": "Pending", "initContainerStatuses": [{
        "name": "cofferdam-fetch",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 12, "reason": "Error", "message": "the digest differs"}},
    }]});
    let blocked = waiting_for(&status, None).blocked.unwrap();
    assert_eq!(blocked.kind, Block::Final);
    assert_eq!(blocked.sentence, "start: init container \"cofferdam-fetch\" Error (exit code 12): the digest differs");
    let again = json!({"phase": "Pending", "initContainerStatuses": [{
        "name": "cofferdam-fetch",
        "state": {"running": {}},
        "lastState": {"terminated": {"exitCode": 255, "reason": "Error"}},
    }]});
    assert_eq!(waiting_for(&again, None).blocked, None, "it runs again, as after a node's restart");
}

#[test]
fn d06_a_program_that_ends_by_itself_has_exited_whatever_its_code() {
    for (status, code) in [
        (program("Succeeded", &json!({"exitCode": 0, "reason": "Completed"})), 0),
        (json!({"phase": "Succeeded"}), 0),
        (program("Failed", &json!({"exitCode": 3, "reason": "Error"})), 3),
        (program("Failed", &json!({"exitCode": 137, "reason": "Error"})), 137),
        (program("Failed", &json!({"exitCode": 2})), 2),
        // Another container failed after it.
        (program("Failed", &json!({"exitCode": 0, "reason": "Completed"})), 0),
    ] {
        assert_eq!(ended(&status), Status::Exited { code }, "{status}");
    }
}

#[test]
fn d06_whatever_else_ends_a_program_is_a_failure_with_its_reason() {
    let container = |reason, code| program("Failed", &json!({"exitCode": code, "reason": reason, "message": "s3cret"}));
    let whole = |reason, message| {
        let mut status = program("Failed", &json!({"exitCode": 137, "reason": "Error"}));
        (status["reason"], status["message"]) = (json!(reason), json!(message));
        status
    };
    let deadline = "DeadlineExceeded: the session ran for as long as it may";
    for (status, message) in [
        (
            container("OOMKilled", 137),
            "container \"session\" OOMKilled (exit code 137): it used more memory than it may",
        ),
        (
            container("StartError", 128),
            "container \"session\" StartError (exit code 128): it could not be started; check that the image has what is to run",
        ),
        (
            container("ContainerCannotRun", 127),
            "container \"session\" ContainerCannotRun (exit code 127): it could not be started; check that the image has what \
             is to run",
        ),
        (
            container("ContainerStatusUnknown", 137),
            "container \"session\" ContainerStatusUnknown (exit code 137): its node lost track of it",
        ),
        (container("New s3cret", 9), "container \"session\" failed (exit code 9)"),
        (whole("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"), deadline),
        (whole("Evicted", "The node was low on resource: memory. "), "Evicted: its node ran out of memory"),
        (
            whole("Evicted", "The node was low on resource: ephemeral-storage. "),
            "Evicted: its node ran out of disk space or of processes",
        ),
        (
            whole("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. "),
            "Evicted: it wrote more to its disk than a session may",
        ),
        (whole("OutOfcpu", "s3cret"), "its node had no room left when it came; try again"),
        (whole("Terminated", "s3cret"), "Terminated: its node was shut down"),
    ] {
        assert_eq!(ended(&status), failed(message), "{status}");
    }
}

#[test]
fn d06_any_init_container_that_fails_is_a_failure_and_only_ours_is_quoted() {
    let init = |name, terminated: Value| {
        json!({"phase": "Failed",
            "initContainerStatuses": [
                {"name": "mesh", "state": {"terminated": {"exitCode": 143, "reason": "Error"}}},
                {"name": name, "state": {"terminated": terminated}},
            ],
            "containerStatuses": [{"name": "session", "state": {"waiting": {"reason": "PodInitializing"}}}]})
    };
    for (status, message) in [
        (
            init(
                "cofferdam-fetch",
                json!({"exitCode": 13, "reason": "Error", "message": "unsafe: http://h/x?token=s3cret"}),
            ),
            "init container \"cofferdam-fetch\" Error (exit code 13): unsafe: http://h/x?…",
        ),
        (init("cofferdam-fetch", json!({"exitCode": 2})), "init container \"cofferdam-fetch\" failed (exit code 2)"),
        (
            init("other", json!({"exitCode": 1, "reason": "Error", "message": "s3cret"})),
            "init container \"other\" Error (exit code 1)",
        ),
        (
            init("other", json!({"exitCode": 137, "reason": "OOMKilled"})),
            "init container \"other\" OOMKilled (exit code 137): it used more memory than it may",
        ),
        (
            init("other", json!({"exitCode": 0, "reason": "Completed"})),
            "the pod failed, and the cluster gives no reason that can be shown",
        ),
    ] {
        assert_eq!(ended(&status), failed(message), "{status}");
    }
}

#[test]
fn b149_a_pod_that_says_nothing_of_its_end_has_failed_by_the_best_known_cause() {
    assert_eq!(
        ended(&json!({"phase": "Failed"})),
        failed("the pod failed, and the cluster gives no reason that can be shown")
    );
    let disrupted = |reason, status| {
        json!({"phase": "Failed", "conditions": [
        {"type": "Ready", "status": "False"}, {"type": "DisruptionTarget", "status": status, "reason": reason}]})
    };
    for (reason, message) in [
        ("PreemptionByScheduler", "PreemptionByScheduler: something more important needed the room"),
        ("DeletionByTaintManager", "DeletionByTaintManager: its node was given up"),
        ("EvictionByEvictionAPI", "EvictionByEvictionAPI: its node was emptied"),
        ("New s3cret", "the cluster took the pod away"),
    ] {
        assert_eq!(ended(&disrupted(reason, "True")), failed(message));
    }
    let not = disrupted("PreemptionByScheduler", "False");
    assert_eq!(ended(&not), failed("the pod failed, and the cluster gives no reason that can be shown"));
    // Its program was killed for it.
    let mut killed = disrupted("EvictionByEvictionAPI", "True");
    killed["containerStatuses"] =
        json!([{"name": "session", "state": {"terminated": {"exitCode": 143, "reason": "Error"}}}]);
    assert_eq!(ended(&killed), failed("EvictionByEvictionAPI: its node was emptied"));
}

#[test]
fn l32_a_program_that_ended_behind_a_container_that_lives_on_has_ended_and_its_pod_is_to_be_deleted() {
    let mut status =
        program("Running", &json!({"exitCode": 3, "reason": "Error", "finishedAt": "2026-11-30T18:20:00Z"}));
    status["containerStatuses"].as_array_mut().unwrap().insert(0, json!({"name": "mesh", "state": {"running": {}}}));
    let is = |leaves_pod| {
        let at = Some("2026-11-30T18:20:00Z".parse().unwrap());
        State::Ended(Ended { status: Status::Exited { code: 3 }, at, leaves_pod })
    };
    assert_eq!(state_of(&pod(&status)), is(true));
    status["phase"] = json!("Failed");
    assert_eq!(state_of(&pod(&status)), is(false));
    status["phase"] = json!("Running");
    let mut restarted = pod(&status);
    restarted["spec"]["restartPolicy"] = json!("Always");
    assert_eq!(state_of(&restarted), State::Running, "it will run again");
    // And one that has not begun behind such a container does not run yet.
    status["containerStatuses"][1]["state"] = json!({"waiting": {"reason": "ImagePullBackOff"}});
    assert_eq!(waiting_for(&status, None).progress, "Pulling image");
}

#[test]
fn d14_a_pod_that_is_there_and_goes_on_is_left_by_every_end_but_a_stop_that_deletes_it() {
    let record = record();
    let running = pod(&json!({"phase": "Running"}));
    let going = leaving(running.clone());
    let (live, over) = (Sighting::There(&running), pod(&program("Failed", &json!({"exitCode": 1}))));
    for (what, sighting, refused, is_stopped, leaves_pod) in [
        ("it was given up, and not deleted yet", live, Some("create: no"), false, true),
        ("the same, stopped meanwhile", live, Some("create: no"), true, true),
        ("it was given up, and has ended", Sighting::There(&over), Some("create: no"), false, false),
        ("it was never made", Sighting::Awaited, Some("create: no"), false, false),
        ("it was stopped", Sighting::There(&going), None, true, false),
        ("it is gone", Sighting::Gone(Some(&running)), None, false, false),
    ] {
        let State::Ended(ended) = state(&Facts { record: &record, pod: sighting, is_stopped, refused }) else {
            panic!("{what}")
        };
        assert_eq!(ended.leaves_pod, leaves_pod, "{what}");
    }
}

#[test]
fn b145_a_pod_that_is_being_deleted_is_leaving_whatever_else_it_says() {
    let running = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    assert_eq!(state_of(&pod(&running)), State::Running);
    assert_eq!(state_of(&leaving(pod(&running))), State::Leaving);
    assert_eq!(state_of(&leaving(pod(&json!({"phase": "Pending"})))), State::Leaving);
    let killed = |code| leaving(pod(&program("Failed", &json!({"exitCode": code, "reason": "Error"}))));
    let status_of = |pod: &Value| match state_of(pod) {
        State::Ended(ended) => ended.status,
        other => panic!("{other:?}"),
    };
    for code in [137, 143] {
        let message = "the pod was deleted while the program ran";
        assert_eq!(status_of(&killed(code)), failed(message));
    }
    assert_eq!(status_of(&killed(1)), Status::Exited { code: 1 });
}

#[test]
fn contract_1_12_a_pod_that_is_gone() {
    let record = record();
    let gone = |last: Option<&Value>| match state(&facts(&record, Sighting::Gone(last))) {
        State::Ended(Ended { status, leaves_pod: false, .. }) => status,
        other => panic!("{other:?}"),
    };
    let pending = pod(&json!({"phase": "Pending"}));
    let running = pod(&json!({"phase": "Running"}));
    assert_eq!(gone(None), failed("start: the pod was deleted before the program ran"));
    assert_eq!(gone(Some(&pending)), failed("start: the pod was deleted before the program ran"));
    assert_eq!(gone(Some(&running)), failed("the pod was deleted while the program ran"));
    assert_eq!(gone(Some(&pod(&program("Succeeded", &json!({"exitCode": 0}))))), Status::Exited { code: 0 });
    let preempted = json!({"phase": "Running",
        "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]});
    let message = "PreemptionByScheduler: something more important needed the room";
    assert_eq!(gone(Some(&pod(&preempted))), failed(message));
}

#[test]
fn d07_stopped_beats_every_way_to_end_and_nothing_is_stopped_before_its_pod_goes() {
    let record = record();
    let of = |pod| match state(&Facts { is_stopped: true, ..facts(&record, pod) }) {
        State::Ended(ended) => Some(ended.status),
        _ => None,
    };
    let running = pod(&json!({"phase": "Running"}));
    let killed = pod(&program("Failed", &json!({"exitCode": 137, "reason": "Error"})));
    assert_eq!(of(Sighting::Awaited), None, "its pod may come yet");
    assert_eq!(of(Sighting::There(&running)), None, "its pod may stay yet");
    for pod in [
        Sighting::Gone(None),
        Sighting::Gone(Some(&running)),
        Sighting::There(&killed),
        Sighting::There(&leaving(running.clone())),
    ] {
        assert_eq!(of(pod), Some(Status::Stopped), "{pod:?}");
    }
    let refused = Facts { refused: Some("create: no"), ..facts(&record, Sighting::Awaited) };
    let status = |facts| match state(&facts) {
        State::Ended(ended) => ended.status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status(refused), failed("create: no"));
    assert_eq!(status(Facts { is_stopped: true, ..refused }), Status::Stopped);
}

/// Anything that a pod's status may hold, in its places and out of them.
fn anything() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "Pending",
            "Running",
            "Succeeded",
            "Failed",
            "Unknown",
            "Evicted",
            "DeadlineExceeded",
            "OOMKilled",
            "Error",
            "Completed",
            "ErrImagePull",
            "CrashLoopBackOff",
            "session",
            "cofferdam-fetch",
            "DisruptionTarget",
            "True",
        ])
        .prop_map(|word| json!(word)),
        "S3CRET[ -~]{0,4}".prop_map(|word| json!(word)),
        any::<i64>().prop_map(|number| json!(number)),
        Just(Value::Null),
    ];
    let key = prop::sample::select(vec![
        "phase",
        "reason",
        "message",
        "conditions",
        "type",
        "status",
        "containerStatuses",
        "initContainerStatuses",
        "name",
        "state",
        "lastState",
        "terminated",
        "waiting",
        "running",
        "exitCode",
        "finishedAt",
    ]);
    word.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| json!(all)),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|all| all.into_iter().collect::<Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_pod_says_nothing_panics_and_nothing_of_others_is_shown(status in anything(), is_leaving in any::<bool>()) {
        let mut pod = pod(&status);
        if is_leaving {
            pod = leaving(pod);
        }
        let record = record();
        for sighting in [Sighting::There(&pod), Sighting::Gone(Some(&pod))] {
            for is_stopped in [false, true] {
                let state = state(&Facts { is_stopped, ..facts(&record, sighting) });
                let shown = match &state {
                    State::Ended(Ended { status: Status::Failed { message }, .. }) => message.clone(),
                    State::Starting(Waiting { progress, blocked }) => {
                        format!("{progress}{}", blocked.as_ref().map(|blocked| blocked.sentence.as_str()).unwrap_or_default())
                    }
                    _ => String::new(),
                };
                prop_assert!(shown.chars().count() <= 2 * LONGEST && !shown.contains('\n'));
                prop_assert!(!shown.contains("S3CRET") || shown.contains("init container \"S3CRET") || shown.contains("fetch"));
                if let State::Ended(ended) = &state {
                    prop_assert!(ended.status.is_final());
                    prop_assert!(!is_stopped || ended.status == Status::Stopped);
                }
            }
        }
    }
}
