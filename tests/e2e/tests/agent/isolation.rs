//! What a session reaches, tried from inside one: DNS and the internet, and nothing else. A cluster of its own.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use cofferdam_e2e::kubectl::Kubectl;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::routing::{policy, told};
use cofferdam_e2e::stage::{Setup, Stage};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::agents::{agent, set_policy};
use crate::permissions::what_is_asked_for_is_documented;
use crate::placed::create_on;

/// An address of the internet, as far as this cluster knows, and that of a cloud's metadata. Both are the first node's,
/// whose kubelet listens on every address that the node has.
const INTERNET: &str = "1.1.1.1";
const METADATA: &str = "169.254.169.254";
const KUBELET: u16 = 10250;

const POLICY: &str = "networkpolicy/cofferdam-sessions";
const PORTS: &str = "PortsReachable";

#[test]
fn a_session_reaches_dns_and_the_internet_and_nothing_else() {
    let policy = policy("{}", "network: {dataPlaneNamespaces: [data-plane]}");
    let setup = Setup { name: "e2e-isolation", nodes: 2, addons: &[], policy: &policy, not_ready_after: None };
    let stage = Stage::set_up(&setup).unwrap();
    give_addresses(&stage);
    let scene = Scene::begin(&stage);
    scene.a_session_is_shut_in();
    scene.a_session_is_reached_by_agents_and_the_data_plane_alone();
    a_pod_that_slipped_through_is_shut_in_too(&scene);
    what_others_do_to_the_policy_is_undone(&scene);
    let manual = by_hand_means_by_hand(&scene);
    b153_what_agents_may_not_dial_stays_published(&scene, &manual);
    what_is_asked_for_is_documented(&stage, "isolation");
}

fn give_addresses(stage: &Stage) {
    let run = |node: &str, words: &[&str]| {
        let status = stage.cluster.inside(node).unwrap().network("ip").args(words).status().unwrap();
        assert!(status.success(), "ip {words:?} on {node}: {status}");
    };
    for address in [INTERNET, METADATA] {
        run("node-1", &["address", "replace", &format!("{address}/32"), "dev", "wire"]);
        run("node-2", &["route", "replace", address, "via", "10.88.0.1"]);
    }
}

/// Pods that try, and pods that are tried.
struct Scene<'a> {
    stage: &'a Stage,
    /// Of sessions.
    mine: TestNamespace,
    /// Of other sessions.
    theirs: TestNamespace,
    /// Of pods that are nobody's business.
    open: TestNamespace,
    data_plane: TestNamespace,
}

impl<'a> Scene<'a> {
    fn begin(stage: &'a Stage) -> Self {
        let scene = Self {
            stage,
            mine: stage.namespace("mine", Sessions::Enforced),
            theirs: stage.namespace("theirs", Sessions::Enforced),
            open: stage.namespace("open", Sessions::None),
            data_plane: stage.namespace("data-plane", Sessions::None),
        };
        create_on(stage, &scene.mine, "attacker", "node-2");
        create_on(stage, &scene.mine, "sibling", "node-1");
        create_on(stage, &scene.theirs, "neighbour", "node-2");
        create_on(stage, &scene.theirs, "stranger", "node-1");
        create_on(stage, &scene.open, "bystander", "node-2");
        create_on(stage, &scene.open, "server", "node-1");
        create_on(stage, &scene.data_plane, "proxy", "node-2");
        scene.open.run(["expose", "pod", "server", "--type=NodePort", "--port=3000"]).unwrap();
        for (namespace, pod) in [
            (&scene.mine, "attacker"),
            (&scene.mine, "sibling"),
            (&scene.theirs, "neighbour"),
            (&scene.theirs, "stranger"),
            (&scene.open, "bystander"),
            (&scene.open, "server"),
            (&scene.data_plane, "proxy"),
        ] {
            namespace.ready(pod).unwrap();
        }
        scene
    }

    /// Where sessions listen: their addresses, and the name that the first of them has.
    fn sessions(&self) -> Vec<String> {
        let sibling = self.mine.json(["get", "pod", "sibling"]).unwrap();
        let id = sibling["metadata"]["labels"]["cofferdam.dev/session"].as_str().unwrap();
        let address = |namespace, pod| format!("{}:3000", address(namespace, pod).unwrap());
        vec![
            address(&self.mine, "sibling"),
            address(&self.theirs, "neighbour"),
            address(&self.theirs, "stranger"),
            format!("s-{id}.{}.svc.cluster.local:3000", self.mine.name()),
        ]
    }

    /// What else is in the cluster, and open to any pod that is no session.
    fn others(&self) -> Vec<String> {
        let service = self.open.json(["get", "service", "server"]).unwrap();
        let node_port = &service["spec"]["ports"][0]["nodePort"];
        let mut others = vec![
            // The API server, as a Service and where it is.
            "10.96.0.1:443".to_owned(),
            "10.88.0.1:6443".to_owned(),
            // Kubelets: another node's, and that of the node that the attacker is on.
            format!("10.88.0.1:{KUBELET}"),
            format!("10.88.0.2:{KUBELET}"),
            format!("{METADATA}:{KUBELET}"),
            // A Service: at the nodes, by its own address, and the pod behind it.
            format!("10.88.0.1:{node_port}"),
            format!("10.88.0.2:{node_port}"),
            format!("{}:3000", service["spec"]["clusterIP"].as_str().unwrap()),
            format!("{}:3000", address(&self.open, "server").unwrap()),
        ];
        let of_ours = self.stage.system(&["get", "pods", "--output=jsonpath={.items[*].status.podIP}"]).unwrap();
        others.extend(of_ours.split_whitespace().map(|address| format!("{address}:8080")));
        assert_eq!(others.len(), 9 + 4, "two agents and two replicas of the webhook");
        others
    }

    fn a_session_is_shut_in(&self) {
        let (sessions, others) = (self.sessions(), self.others());
        let outside = format!("{INTERNET}:{KUBELET}");
        let all: Vec<String> = [sessions, others.clone(), vec![outside.clone()]].concat();
        // Whatever is not reached by a session is there, or nothing would be shown.
        let by_others = reach(&self.open, "bystander", &others);
        assert!(by_others.values().all(|is_open| *is_open), "not open to pods that are no sessions: {by_others:?}");
        let by_session = reach(&self.mine, "attacker", &all);
        let open: Vec<&str> =
            by_session.iter().filter(|(_, open)| **open).map(|(address, _)| address.as_str()).collect();
        assert_eq!(open, [outside.as_str()], "what a session reaches");
        resolves(&self.mine, "attacker");
    }

    fn a_session_is_reached_by_agents_and_the_data_plane_alone(&self) {
        let sessions = self.sessions();
        let of = |namespace, pod| reach(namespace, pod, &sessions);
        assert!(of(&self.data_plane, "proxy").values().all(|is_open| *is_open), "the data plane does not get in");
        assert!(of(&self.open, "bystander").values().all(|is_open| !is_open), "anybody gets in");
        // Agents are pods too, and say what they reached.
        for (namespace, pod) in [(&self.mine, "attacker"), (&self.mine, "sibling")] {
            told(namespace, pod, PORTS, "True/AllReachable").unwrap();
        }
    }

    fn policy(&self) -> Result<Value> {
        self.mine.json(["get", POLICY])
    }
}

/// It was there before anybody looked at its namespace, so no webhook has seen it, and it has no label.
fn a_pod_that_slipped_through_is_shut_in_too(scene: &Scene<'_>) {
    let late = scene.stage.namespace("late", Sessions::None);
    create_on(scene.stage, &late, "old", "node-2");
    late.ready("old").unwrap();
    let targets = [format!("{}:3000", address(&scene.open, "server").unwrap()), "10.96.0.1:443".to_owned()];
    assert!(reach(&late, "old", &targets).values().all(|is_open| *is_open));
    scene.stage.kubectl.run(["label", "namespace", "late", "cofferdam.dev/sessions=enforced"]).unwrap();
    told(&late, "old", "Hardened", "False/SlippedThrough").unwrap();
    until("it reaches nothing", PATIENCE, || {
        let reached = reach(&late, "old", &targets);
        ensure!(reached.values().all(|is_open| !is_open), "{reached:?}");
        Ok(())
    })
    .unwrap();
    let old = [format!("{}:3000", address(&late, "old").unwrap())];
    assert!(reach(&scene.mine, "attacker", &old).values().all(|is_open| !is_open), "it is reached");
}

fn what_others_do_to_the_policy_is_undone(scene: &Scene<'_>) {
    let before = scene.policy().unwrap();
    let open = json!({"spec": {"egress": [{}], "ingress": [{}]}}).to_string();
    scene.mine.run(["patch", POLICY, "--type=merge", "--patch", &open]).unwrap();
    let is_back = || {
        until("the policy is as it was", PATIENCE, || {
            let now = scene.policy()?;
            ensure!(now["spec"] == before["spec"], "it is {}", now["spec"]);
            Ok(now)
        })
        .unwrap()
    };
    assert_eq!(is_back()["metadata"]["uid"], before["metadata"]["uid"]);
    scene.mine.run(["delete", POLICY]).unwrap();
    assert_ne!(is_back()["metadata"]["uid"], before["metadata"]["uid"]);
    // The node's own program follows in its own time.
    let target = scene.sessions();
    until("it holds again", PATIENCE, || {
        let reached = reach(&scene.mine, "attacker", &target);
        ensure!(reached.values().all(|is_open| !is_open), "{reached:?}");
        Ok(())
    })
    .unwrap();
}

fn by_hand_means_by_hand(scene: &Scene<'_>) -> TestNamespace {
    let kubectl: &Kubectl = &scene.stage.kubectl;
    let policy = policy("{}", "network: {mode: manual}");
    set_policy(scene.stage, &policy);
    scene.mine.run(["delete", POLICY]).unwrap();
    let manual = scene.stage.namespace("manual", Sessions::Enforced);
    create_on(scene.stage, &manual, "session", "node-1");
    told(&manual, "session", PORTS, "True/AllReachable").unwrap();
    for namespace in [&scene.mine, &manual] {
        let of = format!("--namespace={}", namespace.name());
        let policies = kubectl.json(["get", "networkpolicies", of.as_str()]).unwrap();
        assert_eq!(policies["items"], json!([]), "in {}", namespace.name());
    }
    manual
}

/// Cluster administrators deny what nobody has allowed; some plugins answer then in the pod's place, others drop the packets.
fn b153_what_agents_may_not_dial_stays_published(scene: &Scene<'_>, namespace: &TestNamespace) {
    let published = || namespace.json(["get", "services,endpointslices"]).unwrap()["items"].clone();
    let before = published();
    assert_eq!(before.as_array().map(Vec::len), Some(2), "{before}");
    let stays = |reason: &str| {
        told(namespace, "session", PORTS, &format!("False/{reason}")).unwrap();
        assert_eq!(published(), before);
    };
    let is_back = || drop(told(namespace, "session", PORTS, "True/AllReachable").unwrap());

    let deny = r#"{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "default-deny"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}"#;
    namespace.create_object(deny).unwrap();
    stays("Refused");
    namespace.run(["delete", "networkpolicy", "default-deny"]).unwrap();
    is_back();

    let agent = agent(scene.stage, "node-1").unwrap();
    let from = scene.stage.system(&["get", "pod", &agent, "--output=jsonpath={.status.podIP}"]).unwrap();
    let to = address(namespace, "session").unwrap();
    let rule = |action: &str| {
        let rule = ["PREROUTING", "--protocol", "tcp", "--source", &from, "--destination", &to, "--jump", "DROP"];
        let mut iptables = scene.stage.cluster.inside("node-1").unwrap().network("iptables");
        let status = iptables.args(["--table=raw", action]).args(rule).status().unwrap();
        assert!(status.success(), "iptables {action}: {status}");
    };
    rule("--insert");
    stays("TimedOut");
    rule("--delete");
    is_back();
}

fn address(namespace: &TestNamespace, pod: &str) -> Result<String> {
    let address = namespace.run(["get", "pod", pod, "--output=jsonpath={.status.podIP}"])?;
    ensure!(!address.is_empty(), "{pod} has no address");
    Ok(address)
}

/// Which of these takes connections from a pod.
fn reach(namespace: &TestNamespace, pod: &str, addresses: &[String]) -> BTreeMap<String, bool> {
    let words = ["exec", pod, "--", "/fixture", "reach", "--timeout", "2s"];
    let addresses = addresses.iter().map(String::as_str);
    let lines = namespace.run(words.into_iter().chain(addresses)).unwrap();
    let of = |line: &str| {
        let line: Value = serde_json::from_str(line)?;
        let outcome = &line["outcome"];
        // A name that is not found is not reached for another reason.
        ensure!(outcome["failure"] != "unresolved", "{line}");
        let address = line["addr"].as_str().context("no address")?;
        Ok((address.to_owned(), outcome["ok"] == true))
    };
    lines.lines().map(of).collect::<Result<_>>().unwrap()
}

fn resolves(namespace: &TestNamespace, pod: &str) {
    let name = "kubernetes.default.svc.cluster.local";
    let line = namespace.run(["exec", pod, "--", "/fixture", "resolve", name]).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["outcome"]["addresses"], json!(["10.96.0.1"]), "{line}");
}
