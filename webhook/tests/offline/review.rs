//! `harden --review`: an `AdmissionReview` in, the server's answer out.

use base64::Engine as _;
use serde_json::{Value, json};

use crate::program::run;

fn review(pod: &Value) -> String {
    let resource = json!({ "group": "", "version": "v1", "resource": "pods" });
    let request = json!({
        "uid": "u-1", "resource": resource, "operation": "CREATE", "namespace": "team",
        "userInfo": { "username": "jane" }, "object": pod,
    });
    json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request }).to_string()
}

#[test]
fn any_answer_is_exit_0_and_names_the_request() {
    for (pod, allowed) in [
        (json!({ "metadata": {}, "spec": { "containers": [{ "name": "a" }] } }), true),
        (json!({ "metadata": {}, "spec": { "hostNetwork": true, "containers": [] } }), false),
        (json!(5), false),
    ] {
        let run = run(&["harden", "--review", "-"], &review(&pod));
        assert_eq!((run.code, run.notes.as_str()), (0, ""));
        let answer: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(answer["response"]["uid"], "u-1");
        assert_eq!(answer["response"]["allowed"], allowed, "{answer}");
        if let Some(patch) = answer["response"]["patch"].as_str() {
            let patch = base64::engine::general_purpose::STANDARD.decode(patch).unwrap();
            assert!(serde_json::from_slice::<json_patch::Patch>(&patch).is_ok());
        }
    }
}

#[test]
fn the_entry_decides_what_is_a_session() {
    let pod = json!({ "metadata": {}, "spec": { "containers": [{ "name": "a" }] } });
    let run = run(&["harden", "--review", "--entry=/mutate/labelled", "-"], &review(&pod));
    let answer: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(answer["response"], json!({ "uid": "u-1", "allowed": true }));
}

#[test]
fn what_cannot_be_answered_is_exit_2() {
    for input in ["", "{}", "{", r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#] {
        let run = run(&["harden", "--review", "-"], input);
        assert_eq!((run.code, run.out.as_str(), run.notes.lines().count()), (2, "", 1), "{}", run.notes);
    }
    let pod = json!({ "metadata": {}, "spec": { "containers": [] } });
    assert_eq!(run(&["harden", "--review", "--entry=/elsewhere", "-"], &review(&pod)).code, 2);
}
