//! `kubectl debug`: the containers that it adds to a running session are hardened, and nothing else is touched.

use anyhow::ensure;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::kubectl::Answer;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::session::{namespace, status};

/// A session that runs, to be debugged.
fn running(name: &str) -> TestNamespace {
    let namespace = namespace(name, Sessions::Enforced);
    namespace.run(["run", "target", &format!("--image={FIXTURE}"), "--", "listen", "--port", "9000"]).unwrap();
    namespace.ready("target").unwrap();
    namespace
}

fn debug(namespace: &TestNamespace, container: &str, profile: &str) -> Answer {
    let (container, profile) = (format!("--container={container}"), format!("--profile={profile}"));
    let image = format!("--image={FIXTURE}");
    let arguments = ["debug", "target", &image, &container, &profile, "--arguments-only", "--", "status"];
    let answer = namespace.ask(arguments, "").unwrap();
    assert!(answer.success, "{}", answer.stderr);
    answer
}

/// Waits until a container for debugging has ended well; returns what it said of itself.
fn said(namespace: &TestNamespace, container: &str) -> Value {
    until(&format!("container {container} has ended"), PATIENCE, || {
        let pod = namespace.json(["get", "pod", "target"])?;
        let statuses = pod["status"]["ephemeralContainerStatuses"].as_array().cloned().unwrap_or_default();
        let ended =
            statuses.iter().any(|status| status["name"] == container && status["state"]["terminated"]["exitCode"] == 0);
        ensure!(ended, "{statuses:?}");
        Ok(())
    })
    .unwrap();
    status(namespace, "target", container)
}

fn assert_confined(status: &Value) {
    assert_eq!(status["uid"], 1000);
    for set in ["effective", "permitted", "inheritable", "bounding", "ambient"] {
        assert_eq!(status["capabilities"][set], "0000000000000000", "{set} capabilities");
    }
    assert_eq!((&status["seccomp"], &status["noNewPrivileges"]), (&json!(2), &json!(true)));
    assert_eq!(status["rootReadOnly"], true);
    assert_eq!(status["serviceAccountToken"], false);
}

#[test]
fn b28_a_container_for_debugging_is_hardened_and_runs_and_its_neighbours_stay_as_they_were() {
    let namespace = running("debugged");
    let before = namespace.json(["get", "pod", "target"]).unwrap();
    debug(&namespace, "first", "restricted");
    assert_confined(&said(&namespace, "first"));
    let between = namespace.json(["get", "pod", "target"]).unwrap();
    debug(&namespace, "second", "general");
    assert_confined(&said(&namespace, "second"));
    let after = namespace.json(["get", "pod", "target"]).unwrap();

    let spec = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        spec["ephemeralContainers"].take();
        spec
    };
    assert_eq!(spec(&before)["containers"], spec(&after)["containers"]);
    assert_eq!(spec(&between), spec(&after));
    assert_eq!(between["spec"]["ephemeralContainers"][0], after["spec"]["ephemeralContainers"][0]);
    assert_eq!(before["metadata"]["annotations"], after["metadata"]["annotations"]);
    assert_eq!(before["metadata"]["labels"], after["metadata"]["labels"]);
}

#[test]
fn a_privileged_container_for_debugging_is_tightened_and_its_creator_is_told() {
    let namespace = running("debugged-sysadmin");
    let answer = debug(&namespace, "admin", "sysadmin");
    let privileged = "spec.ephemeralContainers[0].securityContext.privileged: true, now false (privilege)";
    assert!(answer.warnings().contains(&privileged), "{}", answer.stderr);
    assert_confined(&said(&namespace, "admin"));
}
