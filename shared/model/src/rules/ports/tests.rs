use serde_json::{Value, json};

use super::RULE;
use crate::{
    audit::audit,
    policy::{Policy, Profile},
    request::Template,
    rules::Occasion,
    testing::{apply, apply_on, hardened, pod},
};

fn listed(ports: &Value) -> Value {
    let mut pod = pod(json!({ "containers": [{ "name": "a" }] }));
    pod["metadata"]["annotations"] = json!({ "cofferdam.dev/ports": ports });
    pod
}

fn declared(many: usize) -> Value {
    let ports: Vec<Value> = (1..=many).map(|number| json!({ "containerPort": number })).collect();
    pod(json!({ "containers": [{ "name": "a", "image": "r.example/a:1", "ports": ports }] }))
}

fn says(pod: &Value) -> Option<String> {
    match apply(&RULE, pod) {
        Ok(applied) => {
            assert!(applied.changes.is_empty() && applied.warnings.is_empty());
            None
        }
        Err(refusal) => Some(refusal.reasons[0].to_string()),
    }
}

#[test]
fn ports_that_can_be_told_are_left_as_they_are() {
    for ports in ["", "3000", "3000/tcp, 4000/UDP", "80,80/tcp"] {
        assert_eq!(says(&listed(&json!(ports))), None, "{ports}");
    }
    assert_eq!(says(&listed(&json!(null))), None);
    assert_eq!(says(&declared(0)), None);
    assert_eq!(says(&declared(32)), None);
}

#[test]
fn what_is_no_port_is_refused_and_not_repeated() {
    let field = "metadata.annotations[cofferdam.dev/ports]";
    let how = "write numbers from 1 to 65535, such as `3000/tcp,4000/udp` (ports)";
    let said = says(&listed(&json!("3000,s3cret"))).unwrap();
    assert_eq!(said, format!("{field}: part 2 of the list is no port; {how}"));
    let said = says(&listed(&json!("3000/s3cret"))).unwrap();
    assert!(said.starts_with(&format!("{field}: part 1 of the list is of a protocol that is not published")), "{said}");
    assert_eq!(says(&listed(&json!(3000))).unwrap(), format!("{field}: must be a string (ports)"));
}

#[test]
fn more_ports_than_are_published_are_refused_unless_the_annotation_chooses() {
    let message = "names more than 32 ports; list those to publish in the annotation cofferdam.dev/ports (ports)";
    assert_eq!(says(&declared(33)).unwrap(), format!("spec.containers: {message}"));
    let mut chosen = declared(33);
    chosen["metadata"]["annotations"] = json!({ "cofferdam.dev/ports": "1" });
    assert_eq!(says(&chosen), None);
    let all: Vec<String> = (1..=33).map(|port| port.to_string()).collect();
    let field = "metadata.annotations[cofferdam.dev/ports]";
    assert_eq!(says(&listed(&json!(all.join(",")))).unwrap(), format!("{field}: {message}"));
}

#[test]
fn a_template_is_told_and_a_container_for_debugging_is_not() {
    let wrong = listed(&json!("http"));
    let on = |occasion| apply_on(occasion, &RULE, &wrong, &Profile::default());
    assert!(on(Occasion::Template(Template::RunsForever)).is_err());
    assert!(on(Occasion::Debugging).is_ok());
}

#[test]
fn a_pod_that_lives_is_not_found_unhardened_by_ports_that_were_changed_since() {
    let mut pod = hardened(&declared(1)).pod;
    pod["metadata"]["annotations"]["cofferdam.dev/ports"] = json!("http");
    assert_eq!(audit(&pod, &Policy::built_in()), []);
}
