//! Two nodes, and what pods reach from them: each other, Services, names, and nothing outside.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::Command;

use cofferdam_cluster::{own_images, parts};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cofferdam-cluster");
const FIXTURE: &str = "cofferdam.test/fixture:1";

/// A cluster that ends with its test.
struct Running(&'static str);

impl Running {
    fn start(name: &'static str) -> Self {
        Self::program(name, &["up", "--nodes", "2", "--kubernetes", &kubernetes()]);
        let running = Self(name);
        let image = own_images::fixture_image(FIXTURE).unwrap();
        running.run(&["load", image.to_str().unwrap()]);
        running
    }

    fn program(name: &str, arguments: &[&str]) -> String {
        let output = Command::new(PROGRAM).args(["--name", name]).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    fn run(&self, arguments: &[&str]) -> String {
        Self::program(self.0, arguments)
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.run(&[&["kubectl"], arguments].concat())
    }

    /// Runs a pod of the fixture on a node.
    fn pod(&self, name: &str, node: &str, steps: &[&str]) {
        let node = format!(r#"--overrides={{"spec":{{"nodeName":"{node}"}}}}"#);
        let image = format!("--image={FIXTURE}");
        let labels = format!("--labels=app={name}");
        self.kubectl(&[&["run", name, &image, &node, &labels, "--restart=Never", "--"], steps].concat());
    }

    /// Whether a new pod on `node` can connect to `address` before 2 s have passed.
    fn reaches(&self, name: &str, node: &str, address: &str) -> bool {
        self.pod(name, node, &["connect", address, "--timeout", "2s"]);
        let pod = format!("pod/{name}");
        self.kubectl(&[
            "wait",
            &pod,
            "--for=jsonpath={.status.containerStatuses[0].state.terminated}",
            "--timeout=60s",
        ]);
        let code =
            self.kubectl(&["get", &pod, "--output=jsonpath={.status.containerStatuses[0].state.terminated.exitCode}"]);
        code == "0"
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for question in
                [["kubectl", "get", "all,nodes", "-A", "-o", "wide"], ["kubectl", "get", "events", "-A", "-o", "wide"]]
            {
                let _ = Command::new(PROGRAM).args(["--name", self.0]).args(question).status();
            }
        }
        let _ = Command::new(PROGRAM).args(["--name", self.0, "down"]).status();
    }
}

fn kubernetes() -> String {
    std::env::var("COFFERDAM_KUBERNETES").unwrap_or_else(|_| parts::NEWEST.to_owned())
}

#[test]
fn pods_reach_each_other_services_and_names_and_nothing_else() {
    let cluster = Running::start("network");
    cluster.pod("server", "node-1", &["listen", "--port", "8080", "--http"]);
    cluster.kubectl(&["wait", "pod/server", "--for=condition=Ready", "--timeout=60s"]);
    cluster.kubectl(&["expose", "pod", "server", "--port=80", "--target-port=8080", "--type=LoadBalancer"]);
    cluster.kubectl(&[
        "wait",
        "service/server",
        "--for=jsonpath={.status.loadBalancer.ingress[0].ip}",
        "--timeout=60s",
    ]);
    let pod = cluster.kubectl(&["get", "pod", "server", "--output=jsonpath={.status.podIP}"]);
    let service = cluster.kubectl(&["get", "service", "server", "--output=jsonpath={.spec.clusterIP}"]);
    let balanced =
        cluster.kubectl(&["get", "service", "server", "--output=jsonpath={.status.loadBalancer.ingress[0].ip}"]);
    cluster.kubectl(&["rollout", "status", "deployment/coredns", "--namespace=kube-system", "--timeout=60s"]);
    for (number, address) in [
        format!("{pod}:8080"),
        format!("{service}:80"),
        format!("{balanced}:80"),
        "server.default.svc.cluster.local:80".to_owned(),
        "server:80".to_owned(),
    ]
    .iter()
    .enumerate()
    {
        for node in ["node-1", "node-2"] {
            assert!(cluster.reaches(&format!("client-{number}-{node}"), node, address), "{address} from {node}");
        }
    }
    // An address that documentation may use and nobody has: without a route the answer comes at once.
    assert!(!cluster.reaches("outward", "node-1", "192.0.2.1:80"));
    assert!(cluster.run(&["in", "--", "ip", "route"]).lines().all(|route| !route.starts_with("default")));
}

#[test]
fn a_network_policy_is_enforced_between_pods_of_one_node_and_of_two() {
    let cluster = Running::start("policy");
    for server in ["open", "closed"] {
        cluster.pod(server, "node-1", &["listen", "--port", "8080", "--http"]);
        cluster.kubectl(&["wait", &format!("pod/{server}"), "--for=condition=Ready", "--timeout=60s"]);
    }
    let address = |pod: &str| cluster.kubectl(&["get", "pod", pod, "--output=jsonpath={.status.podIP}"]) + ":8080";
    let (open, closed) = (address("open"), address("closed"));
    assert!(cluster.reaches("before", "node-1", &closed), "nothing forbids it yet");
    let policy = r#"{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"closed"},
        "spec":{"podSelector":{"matchLabels":{"app":"closed"}},"policyTypes":["Ingress"]}}"#;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), policy).unwrap();
    cluster.kubectl(&["create", "--filename", file.path().to_str().unwrap()]);
    let blocked = |number: usize, node: &str| !cluster.reaches(&format!("try-{number}-{node}"), node, &closed);
    // The policy reaches the node's firewall a moment later; each try takes two seconds once it has.
    assert!((0..10).any(|number| blocked(number, "node-1")), "the policy is not enforced on one node");
    assert!(blocked(99, "node-2"), "the policy is not enforced between nodes");
    for node in ["node-1", "node-2"] {
        assert!(cluster.reaches(&format!("still-{node}"), node, &open), "the neighbour is cut off");
    }
}

#[test]
fn a_killed_node_is_lost_and_comes_back_and_a_paused_one_falls_silent_and_resumes() {
    let cluster = Running::start("nodes");
    let ready = |value: &str| {
        let condition = format!("--for=jsonpath={{.status.conditions[?(@.type==\"Ready\")].status}}={value}");
        cluster.kubectl(&["wait", "node/node-2", &condition, "--timeout=120s"]);
    };
    cluster.pod("held", "node-2", &["listen", "--port", "8080"]);
    cluster.kubectl(&["wait", "pod/held", "--for=condition=Ready", "--timeout=60s"]);
    cluster.run(&["node", "pause", "node-2"]);
    ready("Unknown");
    cluster.run(&["node", "resume", "node-2"]);
    ready("True");
    assert_eq!(
        cluster.kubectl(&["get", "pod", "held", "--output=jsonpath={.status.containerStatuses[0].restartCount}"]),
        "0"
    );

    cluster.run(&["node", "kill", "node-2"]);
    assert!(cluster.run(&["status"]).contains("lost"));
    // Its number may be another process's by now.
    let mut stranger = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = Path::new("/var/tmp/cofferdam-cluster-nodes/nodes/node-2/init.pid");
    std::fs::write(pid, stranger.id().to_string()).unwrap();
    let again = Command::new(PROGRAM).args(["--name", "nodes", "node", "kill", "node-2"]).output().unwrap();
    assert!(!again.status.success(), "there is no such node to kill");
    assert!(stranger.try_wait().unwrap().is_none(), "a stranger was killed");
    stranger.kill().unwrap();
    stranger.wait().unwrap();

    cluster.run(&["node", "add", "node-2"]);
    assert!(!cluster.run(&["status"]).contains("lost"));
    assert!(Path::new("/var/tmp/cofferdam-cluster-nodes/nodes/node-2").exists());
    cluster.pod("again", "node-2", &["status"]);
    cluster.kubectl(&["wait", "pod/again", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s"]);
}
