//! Who has an id: one pod in a namespace, and one in every namespace.

use anyhow::{Result, ensure};
use cofferdam_e2e::install::SESSIONS;
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::routing::{DOMAIN, condition, endpoints, events, message, told};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::shared::{create, on, reachable, sessions, stage, web, who_answers};

/// A pod of this name that wants the id `shared`.
fn wants_shared(name: &str) -> Value {
    let mut pod = web(name);
    pod["metadata"]["labels"]["cofferdam.dev/session"] = json!("shared");
    pod
}

/// Waits until a pod is told that `holder` has its id, and sees that it is not published.
fn waits_for(namespace: &TestNamespace, pod: &str, holder: &str) {
    let found = until(&format!("{pod} waits for {holder}"), PATIENCE, || {
        let found = namespace.json(["get", "pod", pod])?;
        let (is, words) = (condition(&found, "RouteReachable"), message(&found, "RouteReachable"));
        ensure!(is == "False/HostTaken" && words.contains(&format!("Pod {holder} ")), "it is {is:?}: {words}");
        Ok(found)
    })
    .unwrap();
    assert_eq!(condition(&found, "RouteProgrammed"), "False/HostTaken");
    let port = endpoints(&found).unwrap()["ports"][0].clone();
    assert!(port["host"].is_null() && port["url"].is_null(), "another's address: {port}");
}

/// The pod that has the id.
fn holder(namespace: &TestNamespace) -> Result<String> {
    namespace.run(["get", "service", "s-shared", "--output=jsonpath={.metadata.ownerReferences[*].name}"])
}

/// Waits until one of two pods has the id and an address that works; gives it and the other one.
fn successor<'a>(namespace: &TestNamespace, pods: [&'a str; 2]) -> (&'a str, &'a str) {
    let name = until("another has the id", PATIENCE, || {
        let holder = holder(namespace)?;
        ensure!(pods.contains(&holder.as_str()), "it is {holder}");
        Ok(holder)
    })
    .unwrap();
    if name == pods[0] { (pods[0], pods[1]) } else { (pods[1], pods[0]) }
}

fn serves(namespace: &TestNamespace, pod: &str, host: &str) {
    assert_eq!(reachable(namespace, pod), host, "the host is the id's");
    until(&format!("{pod} answers"), PATIENCE, || {
        let who = who_answers(host)?;
        ensure!(who == pod, "it is {who}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn who_comes_second_waits_until_the_first_ends_wherever_it_runs() {
    let namespace = sessions("claims");
    create(&namespace, [on("node-1", wants_shared("first"))]);
    let host = reachable(&namespace, "first");
    create(&namespace, [on("node-1", wants_shared("near")), on("node-2", wants_shared("far"))]);
    for pod in ["near", "far"] {
        waits_for(&namespace, pod, "first");
        // Its port is its own.
        told(&namespace, pod, "PortsReachable", "True/AllReachable").unwrap();
    }
    assert_eq!(holder(&namespace).unwrap(), "first");
    serves(&namespace, "first", &host);

    namespace.run(["delete", "pod", "first", "--wait=false"]).unwrap();
    let (next, last) = successor(&namespace, ["near", "far"]);
    serves(&namespace, next, &host);
    waits_for(&namespace, last, next);

    // A pod that has ended, and is still there, has no use for the id either.
    let deadline = ["patch", "pod", next, "--patch={\"spec\": {\"activeDeadlineSeconds\": 1}}"];
    namespace.run(deadline).unwrap();
    namespace.failed(next).unwrap();
    serves(&namespace, last, &host);
    assert_eq!(holder(&namespace).unwrap(), last);
    // Agents leave each other's objects alone while they wait.
    for pod in ["near", "far"] {
        let events = events(&stage().kubectl, namespace.name(), pod).unwrap();
        assert!(!events.iter().any(|event| event == "PublishFailed"), "{pod}: {events:?}");
    }
}

#[test]
fn b121_one_id_in_two_namespaces_is_two_hosts_and_at_home_a_short_one() {
    let (one, other) = (sessions("hosts-one"), sessions("hosts-other"));
    for (namespace, pod) in [(&one, "a"), (&other, "b")] {
        create(namespace, [wants_shared(pod)]);
    }
    let hosts = [reachable(&one, "a"), reachable(&other, "b")];
    assert_ne!(hosts[0], hosts[1]);
    for (host, pod) in hosts.iter().zip(["a", "b"]) {
        assert!(host.starts_with("3000-shared--") && host.ends_with(DOMAIN), "{host}");
        assert_eq!(who_answers(host).unwrap(), pod);
    }
    // Others may use that namespace, so it is not made anew.
    let kubectl = &stage().kubectl;
    let home = ["--namespace", SESSIONS];
    kubectl.run([&home[..], &["delete", "pod/home", "--ignore-not-found"]].concat()).unwrap();
    kubectl.run_with([&home[..], &["create", "--filename=-"]].concat(), &wants_shared("home").to_string()).unwrap();
    let told = until("the pod at home is reachable", PATIENCE, || {
        let pod = kubectl.json([&home[..], &["get", "pod/home"]].concat())?;
        let is = condition(&pod, "RouteReachable");
        ensure!(is == "True/Reachable", "it is {is:?}: {}", message(&pod, "RouteReachable"));
        Ok(pod)
    });
    let answers = who_answers(&format!("3000-shared.{DOMAIN}"));
    kubectl.run([&home[..], &["delete", "pod/home", "--wait=false"]].concat()).unwrap();
    assert_eq!(endpoints(&told.unwrap()).unwrap()["ports"][0]["host"], format!("3000-shared.{DOMAIN}"));
    assert_eq!(answers.unwrap(), "home");
}
