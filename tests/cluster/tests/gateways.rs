//! The add-ons that route: what a Gateway or an Ingress says is answered by a pod behind it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use cofferdam_cluster::addon::{CONTOUR, CONTOUR_GATEWAY, ENVOY_GATEWAY, Workload, contour, envoy_gateway};
use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::progress::Progress;
use cofferdam_cluster::{own_images, parts};

const FIXTURE: &str = "cofferdam.test/fixture:1";

/// How long a route may take until it is served, on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// A Service without a selector, on which a route of either kind can stand.
const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: s-one, namespace: default}
spec: {clusterIP: None, ports: [{name: tcp-3000, port: 3000, targetPort: 3000, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s-one, namespace: default, labels: {kubernetes.io/service-name: s-one}}
addressType: IPv4
ports: [{name: tcp-3000, port: 3000, protocol: TCP}]
endpoints: [{addresses: [ADDRESS], conditions: {ready: true, serving: true, terminating: false}}]
";

/// Two rules, of which only the first, by its header, says who answers.
const ROUTE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: s-one-3000, namespace: default}
spec:
  parentRefs: [{name: sessions, namespace: gateway}]
  hostnames: [3000-one.sessions.example.test]
  rules:
  - matches: [{path: {type: PathPrefix, value: /}, headers: [{name: x-probe, value: some}]}]
    filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-proof, value: other}]}}]
    backendRefs: [{name: s-one, port: 3000}]
  - matches: [{path: {type: PathPrefix, value: /}}]
    backendRefs: [{name: s-one, port: 3000}]
";

const INGRESS: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: s-one, namespace: default}
spec:
  ingressClassName: contour
  rules:
  - host: 3000-one.ingress.example.test
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s-one, port: {number: 3000}}}}]}
";

const HOST: &str = "3000-one.sessions.example.test";
const INGRESS_HOST: &str = "3000-one.ingress.example.test";

const GATEWAY_ADDRESS: [&str; 5] =
    ["get", "gateway/sessions", "--namespace=gateway", "--output", "jsonpath={.status.addresses[0].value}"];

/// A cluster with a pod that answers and a Service on it.
fn start(name: &str) -> Cluster {
    let kubernetes = std::env::var("COFFERDAM_KUBERNETES").unwrap_or_else(|_| parts::NEWEST.to_owned());
    let options = Options { name: name.to_owned(), kubernetes, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut cluster = runtime.block_on(Cluster::up(&options, &Progress::new())).unwrap();
    cluster.load(&own_images::fixture_image(FIXTURE).unwrap()).unwrap();
    let image = format!("--image={FIXTURE}");
    cluster.kubectl(["run", "one", &image, "--restart=Never", "--", "listen", "--port=3000", "--http"]).unwrap();
    cluster.kubectl(["wait", "pod/one", "--for=condition=Ready", "--timeout=60s"]).unwrap();
    let address = cluster.kubectl(["get", "pod/one", "--output=jsonpath={.status.podIP}"]).unwrap();
    cluster.apply(&SERVICE.replace("ADDRESS", &address)).unwrap();
    cluster
}

/// What comes back for `GET /` of `host` from `address`, asked with further `lines` from the cluster's network; nothing
/// when nobody answers.
fn ask(cluster: &Cluster, address: &str, host: &str, lines: &str) -> String {
    let script = r#"exec 3<>"/dev/tcp/$0/80" && printf 'GET / HTTP/1.1\r\nhost: %s\r\nconnection: close\r\n%b\r\n' "$1" "$2" >&3 && cat <&3"#;
    let mut bash = cluster.inside("node-1").unwrap().network("timeout");
    let output = bash.args(["5", "bash", "-c", script, address, host, lines]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Asks until an answer is as it should be, and returns that answer.
fn until(cluster: &Cluster, address: &str, host: &str, lines: &str, fits: impl Fn(&str) -> bool) -> String {
    let start = Instant::now();
    loop {
        let answer = ask(cluster, address, host, lines);
        if fits(&answer) {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "{host} at {address}: {answer:?}");
    }
}

fn is_ok(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 ")
}

/// A route at the Gateway is served, its two rules are told apart, and a host that nobody has is not.
fn the_gateway_serves_a_route(cluster: &Cluster) -> String {
    let address = cluster.kubectl(GATEWAY_ADDRESS).unwrap();
    assert!(address.starts_with("10.89.0."), "{address:?} is none of the load balancer's");
    cluster.apply(ROUTE).unwrap();
    let plain = until(cluster, &address, HOST, "", is_ok);
    assert!(!plain.contains("x-proof"), "{plain}");
    let proved = until(cluster, &address, HOST, r"x-probe: some\r\n", is_ok);
    assert!(proved.contains("\r\nx-proof: other\r\n"), "{proved}");
    let nobody = ask(cluster, &address, "3000-nobody.sessions.example.test", "");
    assert!(nobody.starts_with("HTTP/1.1 404 "), "{nobody}");
    address
}

/// Without its data plane nobody answers; without its control plane what was served is served still.
fn it_stops_and_starts(cluster: &Cluster, control: &Workload, data: &Workload, address: &str, host: &str) {
    cluster.stop_workload(control).unwrap();
    assert!(is_ok(&ask(cluster, address, host, "")), "the data plane needs the control plane");
    cluster.start_workload(control).unwrap();
    // With a control plane that runs, and might put it back.
    cluster.stop_workload(data).unwrap();
    assert_eq!(ask(cluster, address, host, ""), "");
    cluster.start_workload(data).unwrap();
    until(cluster, address, host, "", is_ok);
}

/// The installation once more changes no object.
fn installed_again_nothing_changes(cluster: &Cluster, addons: &[cofferdam_cluster::addon::Addon]) {
    let versions = || {
        let of = |what: &str, version: &str| {
            let columns = format!("--output=custom-columns=NAME:.metadata.name,VERSION:.metadata.{version}");
            cluster.kubectl(["get", what, "--all-namespaces", &columns]).unwrap()
        };
        // What has a status changes by it alone.
        of("deployments,jobs,gateways", "generation") + &of("secrets", "resourceVersion")
    };
    let before = versions();
    for addon in addons {
        Cluster::attach(cluster.name()).unwrap().install(addon, &Progress::new()).unwrap();
    }
    assert_eq!(versions(), before);
}

#[test]
fn envoy_gateway_and_contour_serve_routes_and_ingresses_of_one_cluster() {
    let mut cluster = start("gateways");
    cluster.install(&ENVOY_GATEWAY, &Progress::new()).unwrap();
    cluster.install(&CONTOUR, &Progress::new()).unwrap();
    let gateway = the_gateway_serves_a_route(&cluster);

    cluster.apply(INGRESS).unwrap();
    let status = "jsonpath={.status.loadBalancer.ingress[0].ip}";
    cluster.kubectl(["wait", "ingress/s-one", &format!("--for={status}"), "--timeout=120s"]).unwrap();
    let ingress = cluster.kubectl(["get", "ingress/s-one", &format!("--output={status}")]).unwrap();
    assert_ne!(ingress, gateway);
    until(&cluster, &ingress, INGRESS_HOST, "", is_ok);
    assert!(ask(&cluster, &gateway, INGRESS_HOST, "").starts_with("HTTP/1.1 404 "));

    installed_again_nothing_changes(&cluster, &[ENVOY_GATEWAY, CONTOUR]);
    it_stops_and_starts(&cluster, &envoy_gateway::CONTROL_PLANE, &envoy_gateway::DATA_PLANE, &gateway, HOST);
    it_stops_and_starts(&cluster, &contour::CONTROL_PLANE, &contour::DATA_PLANE, &ingress, INGRESS_HOST);
}

#[test]
fn contour_serves_routes_of_an_older_gateway_api() {
    let mut cluster = start("gateways-contour");
    cluster.install(&CONTOUR_GATEWAY, &Progress::new()).unwrap();
    let gateway = the_gateway_serves_a_route(&cluster);
    installed_again_nothing_changes(&cluster, &[CONTOUR_GATEWAY]);
    it_stops_and_starts(&cluster, &contour::CONTROL_PLANE, &contour::DATA_PLANE, &gateway, HOST);
}
