//! The namespaced variant: agents with rights in the session namespace alone publish there, and nowhere else.

use cofferdam_cluster::addon::ENVOY_GATEWAY;
use cofferdam_cluster::progress::Progress;
use cofferdam_e2e::install::{self, IMAGE, SESSIONS};
use cofferdam_e2e::namespace::{Sessions, TestNamespace};
use cofferdam_e2e::routing::{DOMAIN, Door, ENVOY_GATEWAY_NETWORK, condition, host, policy};
use cofferdam_e2e::stage::Stage;
use serde_json::Value;

use crate::permissions::what_is_asked_for_is_documented;
use crate::session::{create, works};

const AGENT: &str = "cofferdam-system:cofferdam-agent";

#[test]
fn the_namespaced_variant_publishes_in_its_namespace_and_has_no_right_elsewhere() {
    let mut stage = Stage::bare("e2e-namespaced", 1).unwrap();
    stage.cluster.install(&ENVOY_GATEWAY, &Progress::new()).unwrap();
    install(&mut stage);

    let elsewhere = stage.namespace("elsewhere", Sessions::Enforced);
    create(&elsewhere, "web");
    elsewhere.run(["wait", "pod/web", "--for=jsonpath={.status.phase}=Running", "--timeout=2m"]).unwrap();
    let home = TestNamespace::existing(&stage.kubectl, SESSIONS);
    create(&home, "web");
    works(&home, "web");
    let host = host(&home, "web", 3000).unwrap();
    assert_eq!(Door::of_gateway(&stage).unwrap().get(&host).unwrap().status, 200);

    // As hardened as any, and nobody says anything of it.
    let pod = elsewhere.json(["get", "pod", "web"]).unwrap();
    assert_eq!(pod["spec"]["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["metadata"]["annotations"]["cofferdam.dev/endpoints"], Value::Null);
    assert_eq!(condition(&pod, "Hardened"), "");
    for (verb, resource) in [("list", "pods"), ("list", "namespaces"), ("list", "nodes"), ("patch", "services")] {
        let who = format!("--as=system:serviceaccount:{AGENT}");
        let may = stage.kubectl.ask(["auth", "can-i", verb, resource, "--all-namespaces", &who], "").unwrap();
        assert!(!may.success && may.stdout.starts_with("no"), "{verb} {resource}: {may:?}");
    }
    what_is_asked_for_is_documented(&stage, "namespaced");
}

/// Installs it as the manifests' README says: with the right to read the Gateway, and the data plane let in.
fn install(stage: &mut Stage) {
    let gateways = ["--namespace=gateway", "create"];
    let run = |words: &[&str]| stage.kubectl.run([&gateways[..], words].concat()).unwrap();
    run(&["role", "agent-gateways", "--verb=list,watch", "--resource=gateways.gateway.networking.k8s.io"]);
    run(&["rolebinding", "agent-gateways", "--role=agent-gateways", &format!("--serviceaccount={AGENT}")]);
    let routing = format!(
        "{{baseDomain: {DOMAIN}, mode: gateway, gateway: {{name: sessions, namespace: gateway}}, proof: on, \
         publicURL: {{scheme: http}}}}"
    );
    let policy = policy(&routing, ENVOY_GATEWAY_NETWORK);
    stage.manifests = install::render_with_policy(&stage.kubectl, "namespaced", IMAGE, &policy).unwrap();
    install::install(&stage.kubectl, &stage.manifests).unwrap();
    let data_plane = r#"[{"op": "add", "path": "/spec/ingress/-", "value": {"from": [{"namespaceSelector":
        {"matchLabels": {"kubernetes.io/metadata.name": "envoy-gateway-system"}}}]}}]"#;
    let of = format!("--namespace={SESSIONS}");
    let network = ["patch", "networkpolicy/cofferdam-sessions", "--type=json", "--patch", data_plane];
    stage.kubectl.run([&[of.as_str()], &network[..]].concat()).unwrap();
}
