//! `kubectl cofferdam`: the program under the plugin's name, and a kubectl of ours that answers what a cluster would.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{Run, program, run, run_command};

/// Runs the plugin beside a kubectl that answers with `answer`, and writes down how it was asked.
fn plugin(arguments: &[&str], answer: &Value) -> (Run, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    symlink(program(), path("kubectl-cofferdam")).unwrap();
    // Nothing is a kubectl that fails.
    let answer = if answer.is_null() { String::new() } else { answer.to_string() };
    std::fs::write(path("answer.json"), answer).unwrap();
    let script = "#!/bin/sh\nhere=$(dirname \"$0\")\necho \"$@\" > \"$here/asked\"\n\
                  if [ -s \"$here/answer.json\" ]; then cat \"$here/answer.json\"; else exit 1; fi\n";
    std::fs::write(path("kubectl"), script).unwrap();
    std::fs::set_permissions(path("kubectl"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let run = run_command(Command::new(path("kubectl-cofferdam")).args(arguments).env("PATH", search), "");
    let asked = std::fs::read_to_string(path("asked")).unwrap_or_default();
    (run, asked.trim().to_owned())
}

/// A pod as it would be in the cluster.
fn hardened() -> Value {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web", "namespace": "team", "labels": { "cofferdam.dev/session": "abc" } },
        "spec": { "containers": [{ "name": "web", "image": "nginx", "securityContext": { "privileged": true } }] },
    });
    let run = run(&["harden", "--output=json", "-"], &pod.to_string());
    let mut pod: Value = serde_json::from_str(&run.out).unwrap();
    pod["status"] = json!({ "phase": "Running" });
    pod
}

#[test]
fn explain_says_which_rule_changed_what_and_why() {
    let (run, asked) = plugin(&["explain", "web", "--namespace=team", "--context=c"], &hardened());
    assert_eq!(run.code, 0, "{}", run.notes);
    assert_eq!(asked, "--namespace=team --context=c get pod --output=json -- web");
    assert!(run.out.starts_with("Pod web is session abc.\nProfile default, policy "), "{}", run.out);
    let (stricter, filled) = run.out.split_once("Not asked for, and filled in or taken away:").unwrap();
    assert!(stricter.contains("spec.containers[0].securityContext.privileged: true -> false"), "{stricter}");
    assert!(stricter.contains("privilege: no container is privileged"), "{stricter}");
    assert!(filled.contains("spec.securityContext.runAsNonRoot: true"), "{filled}");
}

#[test]
fn explain_tells_what_was_added_from_what_was_taken_away() {
    let token = json!({ "name": "kube-api-access-abcde", "projected": { "defaultMode": 420, "sources": [
        { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
        { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
        { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": {
            "apiVersion": "v1", "fieldPath": "metadata.namespace" } }] } },
    ] } });
    let mount = json!({ "name": "kube-api-access-abcde", "readOnly": true,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web", "labels": { "cofferdam.dev/session": "abc" } },
        "spec": { "volumes": [token], "containers": [{ "name": "web", "image": "nginx", "volumeMounts": [mount] }] },
    });
    let hardened = run(&["harden", "--output=json", "-"], &pod.to_string());
    let (run, _) = plugin(&["explain", "web"], &serde_json::from_str(&hardened.out).unwrap());
    let (_, token) = run.out.split_once("\n  service-account-token: ").unwrap();
    assert!(token.contains("\n    spec.volumes[0]: removed\n"), "{}", run.out);
    assert!(token.contains("\n    spec.containers[0].volumeMounts[0]: removed\n"), "{}", run.out);
    let (_, scratch) = run.out.split_once("\n  scratch: ").unwrap();
    assert!(scratch.contains(" at /tmp\n") && scratch.contains(": added cofferdam-"), "{}", run.out);
}

#[test]
fn explain_says_what_the_server_copied_from_a_limit_beside_the_limit() {
    let resources = json!({ "limits": { "memory": "64Gi" }, "requests": { "memory": "64Gi" } });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "web", "labels": { "cofferdam.dev/session": "abc" } },
        "spec": { "containers": [{ "name": "web", "image": "nginx", "resources": resources }] },
    });
    let hardened = run(&["harden", "--output=json", "-"], &pod.to_string());
    let (run, _) = plugin(&["explain", "web"], &serde_json::from_str(&hardened.out).unwrap());
    let (stricter, filled) = run.out.split_once("Not asked for, and filled in or taken away:").unwrap();
    for of in ["limits", "requests"] {
        let line = format!("spec.containers[0].resources.{of}.memory: 64Gi -> 512Mi\n");
        assert!(stricter.contains(&line), "{}", run.out);
    }
    assert!(filled.contains(".resources.requests.cpu: 50m"), "{}", run.out);
}

#[test]
fn explain_counts_what_the_annotation_has_no_room_for() {
    let mut pod = hardened();
    pod["metadata"]["annotations"]["cofferdam.dev/changes"] = json!(r#"[{"more":3}]"#);
    let (run, _) = plugin(&["explain", "web"], &pod);
    assert!(run.out.ends_with("and 3 more, for which the annotation has no room.\n"), "{}", run.out);
}

#[test]
fn explain_says_why_a_pod_was_not_hardened() {
    let plain = json!({ "metadata": { "name": "x" } });
    let slipped = json!({ "metadata": { "name": "x", "labels": { "cofferdam.dev/session": "x" } } });
    for (pod, words) in
        [(plain, "it is no session, or was made before its namespace was labelled"), (slipped, "was not asked")]
    {
        let (run, _) = plugin(&["explain", "x"], &pod);
        assert!(run.code == 0 && run.out.contains(words), "{}", run.out);
        assert!(run.out.contains("condition cofferdam.dev/Hardened, if it has one,"), "{}", run.out);
    }
}

#[test]
fn nothing_that_an_author_wrote_reaches_the_terminal_raw() {
    let mut pod = hardened();
    pod["metadata"]["annotations"]["cofferdam.dev/hardened"] = json!(r#"{"profile":"\u001b[31mred"}"#);
    pod["metadata"]["annotations"]["cofferdam.dev/changes"] = json!("token=tok-123");
    let (run, _) = plugin(&["explain", "web"], &pod);
    assert!(!run.out.contains('\u{1b}') && !run.out.contains("tok-123"), "{}", run.out);
}

#[test]
fn list_shows_sessions_in_a_table() {
    let (run, asked) = plugin(&["list", "-A"], &json!({ "items": [hardened(), { "metadata": { "name": "odd" } }] }));
    assert_eq!(asked, "get pods --selector cofferdam.dev/session --output=json --all-namespaces");
    let lines: Vec<Vec<&str>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAMESPACE", "POD", "SESSION", "PROFILE", "STATUS", "HARDENED", "TIGHTENED"]);
    assert_eq!(lines[1], ["team", "web", "abc", "default", "Running", "yes", "1"]);
    assert_eq!(lines[2], ["odd", "no"]);
    assert_eq!(plugin(&["list"], &json!({ "items": [] })).0.out, "No sessions found.\n");
}

#[test]
fn a_kubectl_that_fails_is_exit_2_in_one_line() {
    let (run, _) = plugin(&["explain", "x"], &Value::Null);
    assert_eq!(run.code, 2);
    let (run, _) = plugin(&["explain"], &json!({}));
    assert_eq!(run.code, 2);
}

#[test]
fn the_plugin_hardens_files_as_well() {
    let (run, asked) = plugin(&["harden", "--check", "/dev/null"], &json!({}));
    assert_eq!((run.code, asked.as_str()), (0, ""), "{}", run.notes);
}
