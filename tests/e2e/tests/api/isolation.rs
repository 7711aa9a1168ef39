//! What a session reaches of the API: the port that bodies come from, and no other.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use cofferdam_e2e::api;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::install::SESSIONS;
use cofferdam_e2e::namespace::{PATIENCE, Sessions};
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use serde_json::Value;

use crate::installed;

/// Clients, bodies, metrics.
const PORTS: [u16; 3] = [8062, 8063, 8080];

#[test]
fn d09_a_session_reaches_the_port_of_bodies_and_no_other_of_the_api() {
    let stage = installed::shared();
    let pod = api::pod(stage, api::API).unwrap();
    let api = pod["status"]["podIP"].as_str().unwrap();
    let service = "cofferdam-api.cofferdam-system.svc.cluster.local";
    let all: Vec<String> = PORTS
        .iter()
        .map(|port| format!("{api}:{port}"))
        .chain(PORTS[..2].iter().map(|port| format!("{service}:{port}")))
        .collect();

    // Whatever a session does not reach is there, or nothing would be shown.
    let open = stage.namespace("bystanders", Sessions::None);
    run(stage, open.name(), "bystander");
    let by_others = reach(stage, open.name(), "bystander", &all).unwrap();
    assert!(by_others.values().all(|is_open| *is_open), "not open to pods that are no sessions: {by_others:?}");

    run(stage, SESSIONS, "prisoner");
    // The node's own program follows in its own time.
    let bodies = [format!("{api}:8063"), format!("{service}:8063")];
    let holds = until("a session reaches the port of bodies alone", PATIENCE, || {
        let reached = reach(stage, SESSIONS, "prisoner", &all)?;
        let open: Vec<&String> = reached.iter().filter(|(_, is_open)| **is_open).map(|(address, _)| address).collect();
        ensure!(open == bodies.iter().collect::<Vec<_>>(), "it reaches {open:?}");
        Ok(())
    });
    stage.kubectl.run(["--namespace", SESSIONS, "delete", "pod", "prisoner", "--wait=false"]).unwrap();
    holds.unwrap();
}

/// Makes a pod that lives on, and returns once it is Ready.
fn run(stage: &Stage, namespace: &str, pod: &str) {
    let within = ["--namespace", namespace];
    let image = format!("--image={FIXTURE}");
    stage.kubectl.run([&within[..], &["delete", "pod", pod, "--ignore-not-found"]].concat()).unwrap();
    stage.kubectl.run([&within[..], &["run", pod, &image, "--", "listen", "--port", "3000"]].concat()).unwrap();
    let ready = ["wait", "pod", pod, "--for=condition=Ready", "--timeout=3m"];
    stage.kubectl.run([&within[..], &ready].concat()).unwrap();
}

/// Which of these takes connections from a pod.
fn reach(stage: &Stage, namespace: &str, pod: &str, addresses: &[String]) -> Result<BTreeMap<String, bool>> {
    let words = ["--namespace", namespace, "exec", pod, "--", "/fixture", "reach", "--timeout", "2s"];
    let addresses = addresses.iter().map(String::as_str);
    let of = |line: &str| {
        let line: Value = serde_json::from_str(line)?;
        // A name that is not found is not reached for another reason.
        ensure!(line["outcome"]["failure"] != "unresolved", "{line}");
        let address = line["addr"].as_str().context("no address")?;
        Ok((address.to_owned(), line["outcome"]["ok"] == true))
    };
    stage.kubectl.run(words.into_iter().chain(addresses))?.lines().map(of).collect()
}
