//! What the agents really asked the API server for, and what `docs/permissions.md` says that they may.

use std::collections::BTreeSet;

use anyhow::ensure;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::permissions::{Program, Right, documented};
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;

/// Who they are.
const AGENT: &str = "system:serviceaccount:cofferdam-system:cofferdam-agent";

/// Why a right that no request showed is needed all the same; none for one that is not.
fn why_unseen((group, resource, verb): &Right) -> Option<&'static str> {
    match (group.as_str(), resource.as_str(), verb.as_str()) {
        ("coordination.k8s.io", "leases", "create") => Some("only if somebody deleted the Lease"),
        ("", "pods" | "nodes" | "services", "get") => {
            Some("asked for by name only in doubt: whose a claim is, and before an orphan is swept or a node given up")
        }
        (_, "endpointslices" | "httproutes" | "networkpolicies", "create") => {
            Some("a server-side apply that creates needs it, and is logged as a patch")
        }
        (_, "ingresses", "create" | "patch" | "delete") => Some("only where an ingress controller routes"),
        ("", "services", "patch") => Some("only what others changed is applied again"),
        (_, "networkpolicies", "delete") => Some("only minutes after the last session of a namespace"),
        _ => None,
    }
}

/// Of the agents of a cluster on which much has happened: they asked for nothing that is not documented, and were refused
/// nothing for good. Gives all that they asked for.
pub(crate) fn what_is_asked_for_is_documented(stage: &Stage) -> BTreeSet<Right> {
    let audit = stage.cluster.audit().unwrap();
    let (mut asked, mut refused) = (BTreeSet::new(), BTreeSet::new());
    for event in audit.iter().filter(|event| event.user.username == AGENT) {
        let Some(about) = &event.object_ref else {
            // Which kinds are served is for everybody to ask.
            assert!(event.verb == "get" && event.request_uri.starts_with("/api"), "{event:?}");
            continue;
        };
        let resource = match about.subresource.as_str() {
            "" => about.resource.clone(),
            subresource => format!("{}/{subresource}", about.resource),
        };
        let right = (about.api_group.clone(), resource, event.verb.clone());
        if event.code() == Some(403) {
            refused.insert(right)
        } else {
            asked.insert(right)
        };
    }
    // An API server that begins serves before it knows the roles; what was refused then was granted later.
    let never: Vec<&Right> = refused.difference(&asked).collect();
    assert!(never.is_empty(), "asked for, and never granted: {never:?}");
    let documented = documented(Program::Agents);
    let beyond: Vec<&Right> = asked.difference(&documented).collect();
    assert!(beyond.is_empty(), "asked for, and not documented: {beyond:?}");
    asked
}

/// Of the agents of a cluster on which everything has happened; makes one more session.
pub(crate) fn what_is_asked_for_is_documented_and_the_other_way_round(stage: &Stage, namespace: &TestNamespace) {
    finished_sessions_are_deleted(namespace);
    let asked = what_is_asked_for_is_documented(stage);
    let documented = documented(Program::Agents);
    let unseen: Vec<&Right> = documented.difference(&asked).filter(|right| why_unseen(right).is_none()).collect();
    assert!(unseen.is_empty(), "documented, and asked for by nobody: {unseen:?}");
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
