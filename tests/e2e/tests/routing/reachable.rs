//! A pod that somebody makes with `kubectl run --port` has an address that works, and is Ready when it does.

use anyhow::ensure;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::routing::{condition, endpoints, events, host, told};
use cofferdam_e2e::wait::until;
use serde_json::json;

use crate::shared::{door, sessions, stage};

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
