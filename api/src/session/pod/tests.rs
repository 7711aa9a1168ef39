use std::collections::BTreeSet;

use cofferdam_model::policy::Policy;
use cofferdam_model::rules::is_entry;
use cofferdam_model::{Operation, Request, Scope, User, Verdict, audit, harden};
use proptest::prelude::*;

use super::*;
use crate::session::record::Confidential;
use crate::wire::Environment;

const SHA256: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn id() -> SessionId {
    SessionId::parse("abc234").unwrap()
}

fn full<'a>(id: &'a SessionId, ports: &'a Ports) -> SessionPod<'a> {
    SessionPod {
        id,
        namespace: "cofferdam-sessions",
        profile: "default",
        image: "registry.example.com/node:1.2.3",
        pull_policy: PullPolicy::Missing,
        command: vec![],
        entry: Some("src/main.js"),
        body: Some(Body {
            url: "http://cofferdam-bodies.cofferdam-system.svc:8063/bodies/abc234",
            sha256: SHA256,
            has_token: true,
        }),
        variables: vec!["A", "B"],
        ports,
        io: Io::Tty,
        finished_grace_seconds: 14_400,
    }
}

fn port(port: u16, protocol: PortProtocol) -> Port {
    Port { port, protocol }
}

#[test]
fn pod_07_to_09_a_pod_says_what_runs_and_where_its_parts_come_from() {
    let (id, ports) = (id(), Ports::parse("3000/tcp,3000/udp").unwrap());
    assert_eq!(
        full(&id, &ports).object(),
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "run-abc234",
                "namespace": "cofferdam-sessions",
                "labels": {
                    "cofferdam.dev/session": "abc234",
                    "cofferdam.dev/profile": "default",
                    "app.kubernetes.io/managed-by": "cofferdam-api",
                },
                "annotations": {
                    "cofferdam.dev/body-url": "http://cofferdam-bodies.cofferdam-system.svc:8063/bodies/abc234",
                    "cofferdam.dev/body-sha256": SHA256,
                    "cofferdam.dev/body-token-secret": "s-abc234",
                    "cofferdam.dev/entry": "src/main.js",
                    "cofferdam.dev/ports": "3000/tcp,3000/udp",
                    "cofferdam.dev/finished-grace-seconds": "14400",
                },
            },
            "spec": {
                "containers": [{
                    "name": "session",
                    "image": "registry.example.com/node:1.2.3",
                    "imagePullPolicy": "IfNotPresent",
                    "stdin": true,
                    "stdinOnce": false,
                    "tty": true,
                    "env": [
                        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s-abc234", "key": "env-0"}}},
                        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s-abc234", "key": "env-1"}}},
                    ],
                    "ports": [
                        {"containerPort": 3000, "protocol": "TCP"},
                        {"containerPort": 3000, "protocol": "UDP"},
                    ],
                }],
            },
        })
    );
}

#[test]
fn hrd_12_a_pod_has_no_field_that_hardens_it_and_the_webhook_warns_of_none() {
    let (id, ports) = (id(), Ports::parse("3000").unwrap());
    let mut request = full(&id, &ports);
    request.command = vec!["node".to_owned()];
    let pod = request.object();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(keys(&pod["spec"]), BTreeSet::from(["containers".to_owned()]));
    let allowed = ["name", "image", "imagePullPolicy", "command", "stdin", "stdinOnce", "tty", "env", "ports"];
    assert_eq!(keys(&pod["spec"]["containers"][0]), allowed.map(str::to_owned).into());
    let policy = Policy::built_in();
    let admission = Request {
        uid: Some("705ab4f5-6393-11e8-b7cc-42010a800002"),
        namespace: "cofferdam-sessions",
        scope: Scope::Enforced,
        user: User::UNKNOWN,
        operation: Operation::Create,
        pod: &pod,
    };
    let Verdict::Hardened(hardened) = harden(&admission, &policy) else { panic!("it is no pod to refuse") };
    assert_eq!(hardened.warnings, Vec::<String>::new());
    assert_eq!(audit(&hardened.pod, &policy), []);
    assert_eq!(hardened.pod["spec"]["initContainers"][0]["name"], "cofferdam-fetch");
    assert_eq!(hardened.pod["spec"]["restartPolicy"], "Never");
}

#[test]
fn d10_no_value_and_no_token_is_in_a_pod() {
    let environment = Environment(vec![("KEY".to_owned(), "hunter2".to_owned())]);
    let confidential = Confidential::new(environment, Some("t0k3n".to_owned())).unwrap();
    let (id, ports) = (id(), Ports::default());
    let pod = SessionPod { variables: confidential.names().collect(), ..full(&id, &ports) }.object().to_string();
    assert!(pod.contains("KEY") && !pod.contains("hunter2") && !pod.contains("t0k3n"), "{pod}");
}

#[test]
fn pod_06_an_app_of_the_operators_has_no_body_and_no_command() {
    let (id, ports) = (id(), Ports::default());
    let pod = SessionPod { body: None, entry: None, pull_policy: PullPolicy::Always, ..full(&id, &ports) }.object();
    let annotations = pod["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(annotations.keys().collect::<Vec<_>>(), [keys::FINISHED_GRACE, keys::PORTS]);
    let container = &pod["spec"]["containers"][0];
    assert_eq!((&container["command"], &container["imagePullPolicy"]), (&Value::Null, &json!("Always")));
    assert_eq!(Ports::of(&pod), Ok(Ports::default()));
}

#[test]
fn pod_05_a_command_has_places_for_the_entry_and_the_inspector() {
    let parts = |parts: &[&str]| parts.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
    let command = Command::new(
        parts(&["telo", "run", "$(INSPECT)", "--file=$(ENTRY)", "$(HOME)"]),
        parts(&["--inspect", "0.0.0.0:9230", "--no-open"]),
    );
    assert_eq!(
        command.of("/app/a.yaml", true),
        ["telo", "run", "--inspect", "0.0.0.0:9230", "--no-open", "--file=/app/a.yaml", "$(HOME)"]
    );
    assert_eq!(command.of("/app/$(INSPECT)", false), ["telo", "run", "--file=/app/$$(INSPECT)", "$(HOME)"]);
}

#[test]
fn d13_a_port_that_is_listed_twice_is_one_and_tcp_and_udp_are_two() {
    use PortProtocol::{Tcp, Udp};
    let listed = [port(4000, Udp), port(3000, Tcp), port(4000, Tcp), port(3000, Tcp)];
    assert_eq!(ports(&listed).unwrap().to_string(), "3000/tcp,4000/tcp,4000/udp");
    assert_eq!(ports(&[]), Ok(Ports::default()));
    assert_eq!(ports(&[port(0, Tcp)]), Err(PortsError::NotAPort { part: 1 }));
    let many: Vec<Port> = (1..=33).map(|number| port(number, Tcp)).collect();
    assert_eq!(ports(&many), Err(PortsError::TooMany));
}

#[test]
fn d13_a_program_that_serves_the_inspectors_port_keeps_it() {
    let of = |text| Ports::parse(text).unwrap();
    assert!(inspects(true, &of("3000/tcp,9230/udp")));
    assert!(!inspects(true, &of("9230/tcp")));
    assert!(!inspects(false, &of("")));
}

proptest! {
    #[test]
    fn d17_an_entry_that_a_pod_may_name_is_never_refused_by_the_webhook(entry in "[ -~ä]{1,12}(/[ -~]{1,6})?") {
        let (id, ports) = (id(), Ports::default());
        let pod = SessionPod { entry: Some(&entry), ..full(&id, &ports) }.object();
        let policy = Policy::built_in();
        let admission = Request {
            uid: None,
            namespace: "cofferdam-sessions",
            scope: Scope::Enforced,
            user: User::UNKNOWN,
            operation: Operation::Create,
            pod: &pod,
        };
        let is_refused = matches!(harden(&admission, &policy), Verdict::Refused(_));
        prop_assert_eq!(is_refused, !is_entry(&entry));
    }
}
