//! Routing layers beside the one that the other tests have: Ingress, an older Gateway API, and the choice between two.

use cofferdam_cluster::addon::{Addon, CONTOUR, CONTOUR_GATEWAY, ENVOY_GATEWAY};
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{Sessions, TestNamespace};
use cofferdam_e2e::routing::{DOMAIN, Door, endpoints, host, message, policy, through_gateway, told};
use cofferdam_e2e::stage::{Setup, Stage};
use serde_json::{Value, json};

use crate::agents::set_policy;

const NETWORK: &str = "network: {dataPlaneNamespaces: [projectcontour]}";

fn stage(name: &str, addons: &[Addon], policy: &str) -> Stage {
    Stage::set_up(&Setup { name, nodes: 1, addons, policy, not_ready_after: None }).unwrap()
}

/// Makes a pod that serves HTTP at its port 3000 and UDP at 4000.
fn create(namespace: &TestNamespace, pod: &str) {
    let image = format!("--image={FIXTURE}");
    let ports = "--annotations=cofferdam.dev/ports=3000/tcp,4000/udp";
    let program = ["listen", "--port", "3000", "--http", "then", "listen", "--port", "4000", "--udp"];
    namespace.run([&["run", pod, &image, ports, "--"], &program[..]].concat()).unwrap();
}

#[test]
fn where_two_layers_could_be_meant_nothing_is_published_until_one_is_named() {
    // What is here is Ingress for one and Gateway API for the other, and none of them is named.
    let unnamed = policy(&format!("{{baseDomain: {DOMAIN}}}"), NETWORK);
    let stage = stage("e2e-layers", &[ENVOY_GATEWAY, CONTOUR], &unnamed);
    let namespace = stage.namespace("layers", Sessions::Enforced);
    create(&namespace, "web");
    let pod = told(&namespace, "web", "RouteProgrammed", "False/RoutingAmbiguous").unwrap();
    let said = message(&pod, "RouteProgrammed");
    assert!(said.contains("`routing.gateway.name`") && said.contains("`routing.ingress.className`"), "{said}");
    told(&namespace, "web", "Hardened", "True/Hardened").unwrap();
    told(&namespace, "web", "PortsReachable", "True/AllReachable").unwrap();
    assert_eq!(published(&namespace), Vec::<Value>::new());
    let pod = namespace.json(["get", "pod", "web"]).unwrap();
    assert!(!is_ready(&pod), "it is Ready, and has no address that works");

    let routing = format!("{{baseDomain: {DOMAIN}, ingress: {{className: contour}}, publicURL: {{scheme: http}}}}");
    set_policy(&stage, &policy(&routing, NETWORK));
    told(&namespace, "web", "RouteProgrammed", "True/AddressAssigned").unwrap();
    told(&namespace, "web", "RouteReachable", "True/ReachableUnproved").unwrap();
    namespace.ready("web").unwrap();
    through_an_ingress(&stage, &namespace);
}

fn through_an_ingress(stage: &Stage, namespace: &TestNamespace) {
    let ingresses = namespace.json(["get", "ingresses"]).unwrap();
    assert_eq!(ingresses["items"].as_array().unwrap().len(), 1);
    let ingress = &ingresses["items"][0];
    assert_eq!(ingress["spec"]["ingressClassName"], "contour");
    let door = Door::at(stage, ingress["status"]["loadBalancer"]["ingress"][0]["ip"].as_str().unwrap()).unwrap();
    let name = host(namespace, "web", 3000).unwrap();
    assert_eq!(door.get(&name).unwrap().status, 200);
    assert_eq!(door.get(&format!("nobody.{DOMAIN}")).unwrap().status, 404);
    let told = endpoints(&namespace.json(["get", "pod", "web"]).unwrap()).unwrap();
    let port = |protocol: &str| {
        let ports = told["ports"].as_array().unwrap();
        ports.iter().find(|port| port["protocol"] == protocol).unwrap().clone()
    };
    assert_eq!(port("tcp")["url"], format!("http://{name}/"));
    assert_eq!(port("tcp")["address"], json!({"state": "reachable", "identity": "unproved"}));
    // Nothing routes UDP.
    let udp = port("udp");
    for key in ["host", "url", "route", "address"] {
        assert_eq!(udp[key], Value::Null, "{udp}");
    }
}

#[test]
fn an_older_gateway_of_another_maker_gives_an_address_that_is_proved() {
    let stage = stage("e2e-contour", &[CONTOUR_GATEWAY], &policy(&through_gateway(), NETWORK));
    let namespace = stage.namespace("contour", Sessions::Enforced);
    create(&namespace, "web");
    told(&namespace, "web", "RouteProgrammed", "True/Programmed").unwrap();
    told(&namespace, "web", "RouteReachable", "True/Reachable").unwrap();
    namespace.ready("web").unwrap();
    let host = host(&namespace, "web", 3000).unwrap();
    let answer = Door::of_gateway(&stage).unwrap().get(&host).unwrap();
    assert_eq!(answer.status, 200);
    assert!(!answer.head.to_lowercase().contains("cofferdam"), "people get what is ours: {}", answer.head);
    let told = endpoints(&namespace.json(["get", "pod", "web"]).unwrap()).unwrap();
    assert_eq!(told["ports"][0]["address"], json!({"state": "reachable", "identity": "proved"}));
}

/// What agents made in a namespace.
fn published(namespace: &TestNamespace) -> Vec<Value> {
    let ours = "--selector=app.kubernetes.io/managed-by=cofferdam-agent";
    let list = namespace.json(["get", "services,endpointslices,httproutes,ingresses", ours]).unwrap();
    list["items"].as_array().unwrap().clone()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
