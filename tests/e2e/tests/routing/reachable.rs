//! A pod that somebody makes with `kubectl run --port` has an address that works, and is Ready when it does: in a namespace of
//! sessions, and elsewhere by the label of a session alone.

use anyhow::ensure;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{PATIENCE, Sessions};
use cofferdam_e2e::routing::{DOMAIN, condition, endpoints, events, host, told};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::shared::{door, sessions, stage, who_answers};

#[test]
fn a_pod_with_a_port_is_ready_when_its_address_works() {
    let namespace = sessions("reachable");
    let image = format!("--image={FIXTURE}");
    namespace.run(["run", "web", &image, "--port=3000", "--", "listen", "--port", "3000", "--http"]).unwrap();
    namespace.run(["wait", "pod/web", "--for=condition=Ready", "--timeout=120s"]).unwrap();
    let pod = namespace.json(["get", "pod", "web"]).unwrap();
    for (name, wanted) in [
        ("Hardened", "True/Hardened"),
        ("PortsReachable", "True/AllReachable"),
        ("RouteProgrammed", "True/Programmed"),
        ("RouteReachable", "True/Reachable"),
    ] {
        // Ready waits for one of them; the others may be told a moment later.
        if condition(&pod, name) != wanted {
            told(&namespace, "web", name, wanted).unwrap();
        }
    }
    let host = host(&namespace, "web", 3000).unwrap();
    assert_eq!(door().get(&host).unwrap().status, 200);
    let pod = namespace.json(["get", "pod", "web"]).unwrap();
    let endpoints = endpoints(&pod).unwrap();
    assert_eq!(endpoints["forPorts"], "3000/tcp");
    assert_eq!(endpoints["ports"][0]["url"], format!("http://{host}/"));
    assert_eq!(endpoints["ports"][0]["address"], json!({"state": "reachable", "identity": "proved"}));
    let wide = namespace.run(["get", "pods", "--output=wide"]).unwrap();
    assert!(wide.contains("READINESS GATES") && wide.contains("1/1"), "{wide}");
    let events = until("the events of its start", PATIENCE, || {
        let events = events(&stage().kubectl, namespace.name(), "web")?;
        ensure!(["Published", "Reachable"].iter().all(|wanted| events.iter().any(|e| e == wanted)), "{events:?}");
        Ok(events)
    })
    .unwrap();
    let mut distinct = events.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), events.len(), "an event came twice: {events:?}");
}

#[test]
fn a_pod_with_the_label_alone_has_an_address_too_and_its_neighbour_has_nothing() {
    let namespace = stage().namespace("label-alone", Sessions::None);
    let image = format!("--image={FIXTURE}");
    let run = |pod: &str, more: &[&str], port: &str| {
        let program = ["--", "listen", "--port", port, "--http"];
        namespace.run([&["run", pod, &image, "--port=3000"], more, &program[..]].concat()).unwrap();
    };
    let session = ["--labels=cofferdam.dev/session="];
    run("bystander", &[], "3000");
    run("web", &session, "3000");
    run("deaf", &session, "3001");
    namespace.ready("web").unwrap();
    let web = namespace.json(["get", "pod", "web"]).unwrap();
    assert_eq!(condition(&web, "RouteReachable"), "True/Reachable");
    let id = web["metadata"]["labels"]["cofferdam.dev/session"].as_str().unwrap();
    assert!(!id.is_empty(), "the id is ours");
    let name = host(&namespace, "web", 3000).unwrap();
    assert!(name.starts_with(&format!("3000-{id}--")) && name.ends_with(DOMAIN), "{name}");
    assert_eq!(who_answers(&name).unwrap(), "web");

    // The others of its namespace are let alone.
    let network = namespace.json(["get", "networkpolicy", "cofferdam-sessions"]).unwrap();
    let selected = json!({"matchExpressions": [{"key": "cofferdam.dev/session", "operator": "Exists"}]});
    assert_eq!(network["spec"]["podSelector"], selected);
    namespace.ready("bystander").unwrap();
    let bystander = namespace.json(["get", "pod", "bystander"]).unwrap();
    for name in ["Hardened", "PortsReachable", "RouteProgrammed", "RouteReachable"] {
        assert_eq!(condition(&bystander, name), "");
    }
    assert!(endpoints(&bystander).is_err(), "{bystander}");
    let services = namespace.json(["get", "services"]).unwrap();
    let mut owners: Vec<&str> = services["items"].as_array().unwrap().iter().filter_map(owner).collect();
    owners.sort_unstable();
    assert_eq!(owners, ["deaf", "web"]);

    // Whose containers all run, and whose address does not work, is not Ready.
    let deaf = told(&namespace, "deaf", "RouteReachable", "False/BadGateway").unwrap();
    let is = |type_: &str| {
        let mut all = deaf["status"]["conditions"].as_array().into_iter().flatten();
        all.find(|condition| condition["type"] == type_).map(|condition| condition["status"].clone())
    };
    assert_eq!((is("ContainersReady"), is("Ready")), (Some(json!("True")), Some(json!("False"))));
}

/// The name of the pod that an object belongs to.
fn owner(object: &Value) -> Option<&str> {
    object["metadata"]["ownerReferences"][0]["name"].as_str()
}
