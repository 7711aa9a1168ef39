//! What programs do, well or badly, and what is told of their ports and addresses.

use anyhow::ensure;
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::routing::{endpoints, message, told};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::shared::{create, door, objects, pod, reachable, sessions, web, who_answers};

/// What the annotation says of the only port of a pod.
fn only_port(pod: &Value) -> Value {
    let endpoints = endpoints(pod).unwrap();
    assert_eq!(endpoints["ports"].as_array().map(Vec::len), Some(1), "{endpoints}");
    endpoints["ports"][0].clone()
}

/// Whether the kubelet calls a pod Ready.
fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

#[test]
fn who_cannot_be_reached_is_told_so_and_what_to_check() {
    let namespace = sessions("unreachable");
    let all = ["loopback", "elsewhere", "silent", "garbage"];
    create(
        &namespace,
        [
            pod("loopback", "listen --port 3000 --http --address 127.0.0.1"),
            pod("elsewhere", "listen --port 8080 --http"),
            pod("silent", "listen --port 3000 --tcp silent"),
            pod("garbage", "listen --port 3000 --tcp garbage"),
        ],
    );
    for name in ["loopback", "elsewhere"] {
        let refused = told(&namespace, name, "PortsReachable", "False/Refused").unwrap();
        let words = message(&refused, "PortsReachable");
        assert!(words.starts_with("3000: ") && words.contains("127.0.0.1"), "{words}");
        assert_eq!(only_port(&refused)["listening"]["state"], "unreachable");
        told(&namespace, name, "RouteReachable", "False/BadGateway").unwrap();
    }
    let silent = told(&namespace, "silent", "RouteReachable", "False/NoAnswer").unwrap();
    assert!(message(&silent, "RouteReachable").contains("waiting for the program"), "{silent}");
    let garbage = told(&namespace, "garbage", "RouteReachable", "False/BadGateway").unwrap();
    assert!(message(&garbage, "RouteReachable").contains("no HTTP"), "{garbage}");
    for name in ["silent", "garbage"] {
        // Connections are all that it takes to listen.
        told(&namespace, name, "PortsReachable", "True/AllReachable").unwrap();
    }
    for name in all {
        let pod = told(&namespace, name, "RouteProgrammed", "True/Programmed").unwrap();
        assert!(!is_ready(&pod), "{name}");
        let port = only_port(&pod);
        assert_eq!(port["address"]["state"], "unreachable", "{name}: {port}");
        assert!(port["address"]["identity"].is_null() && port["address"]["reason"].is_string(), "{name}: {port}");
    }
}

#[test]
fn who_answers_in_a_way_of_its_own_is_reachable() {
    let namespace = sessions("own-ways");
    create(
        &namespace,
        [
            pod("slow", "listen --port 3000 --http --delay 1s"),
            pod("unavailable", "listen --port 3000 --http --status 503"),
            pod("mirror", "listen --port 3000 --http --echo-headers"),
            pod("boaster", "listen --port 3000 --http --header x-cofferdam-proof:believe-me"),
        ],
    );
    for (name, status) in [("slow", 200), ("unavailable", 503), ("mirror", 200), ("boaster", 200)] {
        let host = reachable(&namespace, name);
        let pod = told(&namespace, name, "PortsReachable", "True/AllReachable").unwrap();
        assert_eq!(only_port(&pod)["address"], json!({"state": "reachable", "identity": "proved"}), "{name}");
        assert_eq!(door().get(&host).unwrap().status, status, "{name}");
    }
}

#[test]
fn the_proof_is_for_the_one_probe_and_no_program_sees_or_says_it() {
    let namespace = sessions("proof");
    create(&namespace, [pod("mirror", "listen --port 3000 --http --echo-headers")]);
    let host = reachable(&namespace, "mirror");
    let route = namespace.json(["get", "httproute", "s-mirror-3000"]).unwrap();
    let text = |pointer: &str| route.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
    let probe = text("/spec/rules/0/matches/0/headers/0/value");
    let proof = text("/spec/rules/0/filters/1/responseHeaderModifier/set/0/value");
    let head = |headers: &str| door().ask("GET", &host, "/", headers).unwrap().head;
    assert!(head(&format!("x-cofferdam-probe: {probe}\r\n")).contains(&proof));
    for headers in
        [String::new(), "x-cofferdam-probe: guessed\r\n".to_owned(), format!("x-cofferdam-probe: {proof}\r\n")]
    {
        let head = head(&headers);
        assert!(!head.to_lowercase().contains("x-cofferdam-proof"), "{head}");
    }
    // What the program saw of that request is what came back.
    let seen = head(&format!("x-cofferdam-probe: {probe}\r\nx-seen: yes\r\n"));
    assert!(seen.contains("x-seen: yes") && seen.matches(&proof).count() == 1, "{seen}");
    // It cannot learn what to ask for.
    assert!(!seen.contains(&probe), "{seen}");
}

#[test]
fn a_program_that_stops_listening_is_told_and_so_is_its_return() {
    let namespace = sessions("returns");
    create(&namespace, [web("web")]);
    let host = reachable(&namespace, "web");
    namespace.ready("web").unwrap();
    // Long enough for a verdict, which takes three failures.
    assert_eq!(door().ask("GET", &host, "/die?back=40s", "").unwrap().status, 200);
    told(&namespace, "web", "PortsReachable", "False/Refused").unwrap();
    told(&namespace, "web", "RouteReachable", "False/BadGateway").unwrap();
    until("it is not Ready", PATIENCE, || {
        ensure!(!is_ready(&namespace.json(["get", "pod", "web"])?), "it is");
        Ok(())
    })
    .unwrap();
    told(&namespace, "web", "PortsReachable", "True/AllReachable").unwrap();
    assert_eq!(reachable(&namespace, "web"), host);
    namespace.ready("web").unwrap();
    assert_eq!(who_answers(&host).unwrap(), "web");
}

/// Number and protocol of the ports of a Service, by name.
fn service_ports(namespace: &TestNamespace, name: &str) -> Vec<String> {
    let service = namespace.json(["get", "service", name]).unwrap();
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    ports.map(|port| format!("{} {} {}", port["name"].as_str().unwrap(), port["port"], port["protocol"])).collect()
}

#[test]
fn b123_one_number_for_tcp_and_udp_is_two_ports_of_which_one_is_routed() {
    let namespace = sessions("both");
    let mut both = pod("both", "listen --port 3000 --http --udp");
    both["spec"]["containers"][0]["ports"] =
        json!([{"containerPort": 3000, "protocol": "UDP"}, {"containerPort": 3000, "protocol": "TCP"}]);
    create(&namespace, [both]);
    let host = reachable(&namespace, "both");
    assert_eq!(who_answers(&host).unwrap(), "both");
    assert_eq!(service_ports(&namespace, "s-both"), ["tcp-3000 3000 \"TCP\"", "udp-3000 3000 \"UDP\""]);
    assert_eq!(objects(&namespace, "httproutes", "both").unwrap(), ["s-both-3000"]);
    let endpoints = endpoints(&namespace.json(["get", "pod", "both"]).unwrap()).unwrap();
    assert_eq!(endpoints["forPorts"], "3000/tcp,3000/udp");
    assert_eq!(endpoints["ports"][1], json!({"port": 3000, "protocol": "udp"}), "it is neither routed nor dialled");
}

#[test]
fn b125_a_port_that_is_declared_again_and_again_is_one() {
    let namespace = sessions("again");
    let mut again = web("again");
    again["spec"]["containers"][0]["ports"] =
        json!([{"containerPort": 3000, "name": "web"}, {"containerPort": 3000, "name": "metrics"}]);
    let mut second = again["spec"]["containers"][0].clone();
    (second["name"], second["args"], second["ports"]) =
        (json!("b"), json!(["sleep"]), json!([{"containerPort": 3000}]));
    again["spec"]["containers"].as_array_mut().unwrap().push(second);
    create(&namespace, [again]);
    reachable(&namespace, "again");
    assert_eq!(service_ports(&namespace, "s-again"), ["tcp-3000 3000 \"TCP\""]);
    assert_eq!(objects(&namespace, "httproutes", "again").unwrap(), ["s-again-3000"]);
    assert_eq!(only_port(&namespace.json(["get", "pod", "again"]).unwrap())["port"], 3000);
}

#[test]
fn a_session_with_nothing_to_route_is_ready_without_an_address() {
    let namespace = sessions("nothing");
    let (mut datagrams, mut none) = (pod("datagrams", "listen --port 3000 --udp"), pod("none", "sleep"));
    datagrams["spec"]["containers"][0]["ports"] = json!([{"containerPort": 3000, "protocol": "UDP"}]);
    none["spec"]["containers"][0]["ports"] = json!([]);
    create(&namespace, [datagrams, none]);
    for name in ["datagrams", "none"] {
        told(&namespace, name, "RouteReachable", "True/NothingToRoute").unwrap();
        told(&namespace, name, "RouteProgrammed", "True/NothingToRoute").unwrap();
        told(&namespace, name, "PortsReachable", "True/NothingToDial").unwrap();
        namespace.ready(name).unwrap();
        assert!(objects(&namespace, "httproutes", name).unwrap().is_empty(), "{name}");
    }
    assert_eq!(service_ports(&namespace, "s-datagrams"), ["udp-3000 3000 \"UDP\""]);
    assert!(objects(&namespace, "services", "none").unwrap().is_empty());
}
