//! What the agents really asked the API server for, and what `docs/permissions.md` says that they may.

use std::collections::BTreeSet;

use anyhow::ensure;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::permissions::{self, Program, Right};
use cofferdam_e2e::routing::told;
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use serde_json::json;

use crate::session::works;

/// What a cluster of one node with a gateway has no use for, and which of the other clusters shows that agents ask for it.
const ELSEWHERE: [(&str, [&str; 3]); 3] = [
    ("layers", ["networking.k8s.io", "ingresses", "patch"]),
    ("layers", ["networking.k8s.io", "ingresses", "delete"]),
    ("nodes", ["", "nodes", "get"]),
];

/// Why a right that no request showed is needed all the same; none for one that is not.
fn why_unseen((group, resource, verb): &Right) -> Option<&'static str> {
    if ELSEWHERE.iter().any(|(_, right)| *right == [group.as_str(), resource, verb]) {
        return Some("another cluster shows it");
    }
    match (group.as_str(), resource.as_str(), verb.as_str()) {
        ("", "pods", "get") => Some("asked for by name only where a pod of another node has an id"),
        (_, "endpointslices" | "httproutes" | "ingresses" | "networkpolicies", "create") => {
            Some("a server-side apply that creates needs it, and is logged as a patch")
        }
        (_, "networkpolicies", "delete") => Some("only minutes after the last session of a namespace"),
        _ => None,
    }
}

/// Of the agents of a cluster on which everything has happened: they asked for nothing that is not documented, were not
/// refused for good, and asked for what [`ELSEWHERE`] says that this cluster shows. Gives all that they asked for.
pub(crate) fn what_is_asked_for_is_documented(stage: &Stage, place: &str) -> BTreeSet<Right> {
    // The last of it may only just be happening.
    until("all that this cluster shows is asked for", PATIENCE, || {
        let (asked, wrong) = permissions::asked(Program::Agents, &stage.cluster.audit()?);
        assert!(wrong.is_empty(), "{wrong:#?}");
        for (_, right) in ELSEWHERE.iter().filter(|(shows, _)| *shows == place) {
            let [group, resource, verb] = right.map(str::to_owned);
            ensure!(asked.contains(&(group, resource, verb)), "{right:?} is asked for by nobody: {asked:?}");
        }
        Ok(asked)
    })
    .unwrap()
}

/// Of the agents of a cluster on which everything has happened; makes more sessions, for what happens seldom.
pub(crate) fn what_is_asked_for_is_documented_and_the_other_way_round(stage: &Stage, namespace: &TestNamespace) {
    finished_sessions_are_deleted(namespace);
    an_id_that_is_taken_is_looked_at(namespace);
    a_service_that_was_changed_is_applied_again(namespace);
    a_lease_that_was_deleted_is_made_again(stage);
    let asked = what_is_asked_for_is_documented(stage, "restarts");
    let unseen = permissions::unseen(Program::Agents, &asked, why_unseen);
    assert!(unseen.is_empty(), "documented, and asked for by nobody: {unseen:?}");
}

fn an_id_that_is_taken_is_looked_at(namespace: &TestNamespace) {
    let label = "--labels=cofferdam.dev/session=wanted";
    for pod in ["holder", "waiter"] {
        let image = format!("--image={FIXTURE}");
        let program = ["listen", "--port", "3000", "--http"];
        namespace.run([&["run", pod, &image, "--port=3000", label, "--"], &program[..]].concat()).unwrap();
        if pod == "holder" {
            works(namespace, pod);
        }
    }
    told(namespace, "waiter", "RouteProgrammed", "False/HostTaken").unwrap();
    namespace.run(["delete", "pod", "waiter", "--wait=false"]).unwrap();
}

fn a_service_that_was_changed_is_applied_again(namespace: &TestNamespace) {
    let look = || namespace.json(["get", "service", "s-wanted"]);
    let before = look().unwrap();
    let patch = json!([{"op": "replace", "path": "/spec/ports/0/name", "value": "another"}]).to_string();
    namespace.run(["patch", "service", "s-wanted", "--type=json", "--patch", &patch]).unwrap();
    until("the Service is as it was", PATIENCE, || {
        let now = look()?;
        ensure!(now["spec"] == before["spec"], "it is {}", now["spec"]);
        ensure!(now["metadata"]["uid"] == before["metadata"]["uid"], "it was made anew");
        Ok(())
    })
    .unwrap();
}

fn a_lease_that_was_deleted_is_made_again(stage: &Stage) {
    let holder = ["get", "lease/cofferdam-agent", "--output=jsonpath={.spec.holderIdentity}"];
    let before = stage.system(&holder).unwrap();
    stage.system(&["delete", "lease/cofferdam-agent"]).unwrap();
    until("the one agent has the Lease again", PATIENCE, || {
        let now = stage.system(&holder)?;
        ensure!(now == before, "it is held by {now:?}");
        Ok(())
    })
    .unwrap();
}

fn finished_sessions_are_deleted(namespace: &TestNamespace) {
    let image = format!("--image={FIXTURE}");
    let program = ["listen", "--port", "3000", "then", "exit", "0", "--after", "1s"];
    namespace.run([&["run", "short", &image, "--port=3000", "--"], &program[..]].concat()).unwrap();
    until("the finished session is deleted", PATIENCE, || {
        let left = namespace.run(["get", "pod", "short", "--ignore-not-found", "--output=name"])?;
        ensure!(left.is_empty(), "{left} is there");
        Ok(())
    })
    .unwrap();
}
