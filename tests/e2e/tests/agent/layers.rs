//! Routing layers beside the one that the other tests have: Ingress, an older Gateway API, and the choice between two.

use anyhow::ensure;
use cofferdam_cluster::addon::{Addon, CONTOUR, CONTOUR_GATEWAY, ENVOY_GATEWAY, contour, gateway};
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::routing::{DOMAIN, Door, condition, endpoints, host, message, policy, through_gateway, told};
use cofferdam_e2e::stage::{Setup, Stage};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::agents::set_policy;
use crate::permissions::what_is_asked_for_is_documented;
use crate::session::says;

const NETWORK: &str = "network: {dataPlaneNamespaces: [projectcontour, envoy-gateway-system]}";

const PROGRAMMED: &str = "RouteProgrammed";
const REACHABLE: &str = "RouteReachable";

/// A short deadline, since it is waited for.
const DEADLINE: &str = "deadlineSeconds: 8";

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
    let pod = told(&namespace, "web", PROGRAMMED, "False/RoutingAmbiguous").unwrap();
    let said = message(&pod, PROGRAMMED);
    assert!(said.contains("`routing.gateway.name`") && said.contains("`routing.ingress.className`"), "{said}");
    told(&namespace, "web", "Hardened", "True/Hardened").unwrap();
    told(&namespace, "web", "PortsReachable", "True/AllReachable").unwrap();
    assert_eq!(published(&namespace), Vec::<Value>::new());
    let pod = namespace.json(["get", "pod", "web"]).unwrap();
    assert!(!is_ready(&pod), "it is Ready, and has no address that works");

    let routing =
        format!("{{baseDomain: {DOMAIN}, ingress: {{className: contour}}, publicURL: {{scheme: http}}, {DEADLINE}}}");
    set_policy(&stage, &policy(&routing, NETWORK));
    told(&namespace, "web", PROGRAMMED, "True/AddressAssigned").unwrap();
    told(&namespace, "web", REACHABLE, "True/ReachableUnproved").unwrap();
    namespace.ready("web").unwrap();
    through_an_ingress(&stage, &namespace);
    the_controller_of_an_ingress_that_is_not_there_is_named(&stage, &namespace);
    what_is_asked_for_is_documented(&stage, "layers");
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

fn the_controller_of_an_ingress_that_is_not_there_is_named(stage: &Stage, namespace: &TestNamespace) {
    stage.cluster.stop_workload(&contour::CONTROL_PLANE).unwrap();
    create(namespace, "late");
    says(namespace, "late", PROGRAMMED, "False/Unclaimed", "controller of IngressClass contour runs");
    // Without it the proxy goes on with what it knows.
    let web = namespace.json(["get", "pod", "web"]).unwrap();
    assert_eq!(condition(&web, PROGRAMMED), "True/AddressAssigned");
    assert_eq!(condition(&web, REACHABLE), "True/ReachableUnproved");
    stage.cluster.start_workload(&contour::CONTROL_PLANE).unwrap();
    told(namespace, "late", PROGRAMMED, "True/AddressAssigned").unwrap();
    told(namespace, "late", REACHABLE, "True/ReachableUnproved").unwrap();
    namespace.run(["delete", "pod", "late", "--wait=false"]).unwrap();
}

#[test]
fn an_older_gateway_of_another_maker_gives_an_address_that_is_proved() {
    let stage = stage("e2e-contour", &[CONTOUR_GATEWAY], &policy(&through_gateway(), NETWORK));
    let namespace = stage.namespace("contour", Sessions::Enforced);
    create(&namespace, "web");
    told(&namespace, "web", PROGRAMMED, "True/Programmed").unwrap();
    told(&namespace, "web", REACHABLE, "True/Reachable").unwrap();
    namespace.ready("web").unwrap();
    let host = host(&namespace, "web", 3000).unwrap();
    let answer = Door::of_gateway(&stage).unwrap().get(&host).unwrap();
    assert_eq!(answer.status, 200);
    assert!(!answer.head.to_lowercase().contains("cofferdam"), "people get what is ours: {}", answer.head);
    let told = endpoints(&namespace.json(["get", "pod", "web"]).unwrap()).unwrap();
    assert_eq!(told["ports"][0]["address"], json!({"state": "reachable", "identity": "proved"}));
    d21_an_address_works_over_tls_by_a_certificate_of_the_authority_that_is_trusted_alone(&stage, &namespace);
    what_is_asked_for_is_documented(&stage, "contour");
}

/// At the listener for HTTPS, since `publicURL` says nothing else.
fn d21_an_address_works_over_tls_by_a_certificate_of_the_authority_that_is_trusted_alone(
    stage: &Stage,
    namespace: &TestNamespace,
) {
    let trusting = |authority: &str| {
        let probe = json!({ "caBundle": authority });
        let routing =
            format!("{{baseDomain: {DOMAIN}, gateway: {{name: sessions, namespace: gateway}}, probe: {probe}}}");
        set_policy(stage, &policy(&routing, NETWORK));
    };
    let its_own = gateway::authority().unwrap();
    trusting(&its_own);
    let url = format!("https://{}/", host(namespace, "web", 3000).unwrap());
    let works = || {
        until("its address works over TLS", PATIENCE, || {
            let pod = told(namespace, "web", REACHABLE, "True/Reachable")?;
            let told = &endpoints(&pod)?["ports"][0];
            ensure!(told["url"] == url && told["address"]["state"] == "reachable", "{told}");
            Ok(())
        })
        .unwrap();
        told(namespace, "web", PROGRAMMED, "True/Programmed").unwrap();
    };
    works();

    let another = namespace.run(["get", "configmap/kube-root-ca.crt", r"--output=jsonpath={.data.ca\.crt}"]).unwrap();
    assert_ne!(another.trim(), its_own.trim());
    trusting(&another);
    says(namespace, "web", REACHABLE, "False/TLSFailed", "does not hold the issuer of the gateway's certificate");
    told(namespace, "web", PROGRAMMED, "True/Programmed").unwrap();
    trusting(&its_own);
    works();
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
