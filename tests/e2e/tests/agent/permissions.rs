//! What the agents really asked the API server for, and what `docs/permissions.md` says that they may.

use std::collections::BTreeSet;

use anyhow::ensure;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::permissions::{Right, documented};
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;

/// Who they are.
const AGENT: &str = "system:serviceaccount:cofferdam-system:cofferdam-agent";

/// Rights that no request shows here, and why they are needed all the same: group, resource, verb.
const NOT_SEEN: [(&str, &str, &str); 0] = [];

/// Of the agents of a cluster on which everything has happened; makes one more session.
pub(crate) fn what_is_asked_for_is_documented_and_the_other_way_round(stage: &Stage, namespace: &TestNamespace) {
    finished_sessions_are_deleted(namespace);
    let audit = stage.cluster.audit().unwrap();
    let mut asked = BTreeSet::new();
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
        assert_ne!(event.code(), Some(403), "{event:?}");
        asked.insert((about.api_group.clone(), resource, event.verb.clone()));
    }
    let documented = documented();
    let beyond: Vec<&Right> = asked.difference(&documented).collect();
    assert!(beyond.is_empty(), "asked for, and not documented: {beyond:?}");
    let unseen: BTreeSet<Right> = documented.difference(&asked).cloned().collect();
    let known = NOT_SEEN.map(|(group, resource, verb)| (group.to_owned(), resource.to_owned(), verb.to_owned()));
    assert_eq!(unseen, BTreeSet::from(known), "documented, and asked for by nobody");
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
