//! What can be broken in a cluster, and what its API server tells of the requests that Cofferdam's programs make.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::progress::Progress;
use cofferdam_cluster::{own_images, parts};

const FIXTURE: &str = "cofferdam.test/fixture:1";

/// A ServiceAccount of ours, and somebody who may make `ConfigMaps` and nothing else.
const ACCOUNTS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: cofferdam-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: cofferdam-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: maker, namespace: default}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: maker, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: maker}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: maker}]
";

#[test]
fn what_is_broken_shows_as_it_would_in_a_data_centre_and_can_be_mended() {
    let kubernetes = std::env::var("COFFERDAM_KUBERNETES").unwrap_or_else(|_| parts::NEWEST.to_owned());
    let not_ready_after = Some(Duration::from_secs(8));
    let options = Options { name: "faults".to_owned(), kubernetes, nodes: 2, not_ready_after, ..Options::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut cluster = runtime.block_on(Cluster::up(&options, &Progress::new())).unwrap();
    cluster.load(&own_images::fixture_image(FIXTURE).unwrap()).unwrap();
    let served = "{\"spec\":{\"nodeName\":\"node-2\"}}";
    let run = ["run", "served", "--image", FIXTURE, "--overrides", served, "--", "listen", "--port=8080", "--http"];
    cluster.kubectl(run).unwrap();
    cluster.apply(ACCOUNTS).unwrap();

    requests_of_our_own_programs_are_logged_and_no_others(&cluster);
    an_owner_whose_deletion_waits_is_named_only_by_who_may_write_its_finalizers(&cluster);
    history_outlives_the_api_server_and_not_a_compaction(&cluster);
    a_connection_is_reset_under_its_client(&cluster);
    a_paused_pod_answers_when_it_goes_on_and_a_killed_one_is_started_again(&cluster);
    a_node_without_a_plug_is_lost_and_comes_back(&cluster);
}

fn requests_of_our_own_programs_are_logged_and_no_others(cluster: &Cluster) {
    let token = cluster.kubectl(["create", "token", "agent", "--namespace=cofferdam-system"]).unwrap();
    let port = cluster.relay(SocketAddr::from(([10, 88, 0, 1], 6443)), 0).unwrap();
    let refused = cluster.kubectl([
        "--kubeconfig=/dev/null",
        "--insecure-skip-tls-verify",
        &format!("--server=https://127.0.0.1:{port}"),
        &format!("--token={}", token.trim()),
        "get",
        "--raw=/api/v1/namespaces/default/pods/served",
    ]);
    assert!(refused.unwrap_err().to_string().contains("system:serviceaccount:cofferdam-system:agent"));
    let events = cluster.audit().unwrap();
    let [event] = &events[..] else { unreachable!("one request was made: {events:?}") };
    let about = event.object_ref.as_ref().unwrap();
    assert_eq!((event.verb.as_str(), event.code(), event.pod()), ("get", Some(403), None));
    assert_eq!((about.resource.as_str(), about.subresource.as_str(), about.name.as_str()), ("pods", "", "served"));

    assert!(cluster.relay(SocketAddr::from(([10, 88, 0, 1], 6443)), port).unwrap_err().to_string().contains("in use"));
}

fn an_owner_whose_deletion_waits_is_named_only_by_who_may_write_its_finalizers(cluster: &Cluster) {
    let uid = cluster.kubectl(["get", "pod", "served", "--output=jsonpath={.metadata.uid}"]).unwrap();
    let owned = |blocks: bool| {
        let object = format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: owned, ownerReferences: [{{apiVersion: v1, \
             kind: Pod, name: served, uid: {uid}, blockOwnerDeletion: {blocks}}}]}}}}"
        );
        cluster.kubectl_with(["create", "--as=maker", "--filename=-"], &object)
    };
    assert!(owned(true).unwrap_err().to_string().contains("blockOwnerDeletion"));
    owned(false).unwrap();
}

fn history_outlives_the_api_server_and_not_a_compaction(cluster: &Cluster) {
    let list = "/api/v1/namespaces/default/configmaps";
    let now = cluster.kubectl(["get", "configmap", "owned", "--output=jsonpath={.metadata.resourceVersion}"]).unwrap();
    let then = || cluster.kubectl(["get", &format!("--raw={list}?resourceVersion={now}&resourceVersionMatch=Exact")]);
    cluster.kubectl(["create", "configmap", "later"]).unwrap();
    cluster.restart_api_server().unwrap();
    let before = then().unwrap();
    assert!(before.contains("owned") && !before.contains("later"), "{before}");
    cluster.compact_etcd().unwrap();
    let gone = then().unwrap_err().to_string();
    assert!(gone.contains("too old"), "{gone}");
    let watch = format!("--raw={list}?watch=1&resourceVersion={now}&timeoutSeconds=1");
    let watched = cluster.kubectl(["get", &watch]).unwrap();
    assert!(watched.contains("\"code\":410"), "{watched}");
}

fn a_connection_is_reset_under_its_client(cluster: &Cluster) {
    let mut watch = cluster
        .kubectl_command()
        .unwrap()
        .args(["get", "--raw=/api/v1/namespaces/default/configmaps?watch=1&timeoutSeconds=600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut events = BufReader::new(watch.stdout.take().unwrap());
    let mut first = String::new();
    events.read_line(&mut first).unwrap();
    assert!(first.contains("ADDED"), "{first}");
    cluster.reset_api_connections().unwrap();
    events.read_to_string(&mut String::new()).unwrap();
    watch.wait().unwrap();
    cluster.kubectl(["get", "configmap", "owned"]).unwrap();
}

fn a_paused_pod_answers_when_it_goes_on_and_a_killed_one_is_started_again(cluster: &Cluster) {
    cluster.kubectl(["wait", "pod/served", "--for=condition=Ready", "--timeout=60s"]).unwrap();
    let address = cluster.kubectl(["get", "pod", "served", "--output=jsonpath={.status.podIP}:8080"]).unwrap();
    let port = cluster.relay(address.parse().unwrap(), 0).unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    cluster.pause_pod("default", "served").unwrap();
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let mut byte = [0];
    assert!(client.read(&mut byte).is_err(), "a paused process has answered");
    client.set_read_timeout(None).unwrap();
    cluster.resume_pod("default", "served").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("200 OK") && answer.contains("served"), "{answer}");

    cluster.kill_pod("default", "served").unwrap();
    let again = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1";
    cluster.kubectl(["wait", "pod/served", again, "--timeout=60s"]).unwrap();
    let how = "--output=jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}";
    assert_eq!(cluster.kubectl(["get", "pod", "served", how]).unwrap(), "137");
    assert!(cluster.pause_pod("default", "nobody").is_err());
}

fn a_node_without_a_plug_is_lost_and_comes_back(cluster: &Cluster) {
    let lease =
        ["get", "lease", "node-2", "--namespace=kube-node-lease", "--output=jsonpath={.spec.leaseDurationSeconds}"];
    assert_eq!(cluster.kubectl(lease).unwrap(), "4");
    let ready = |value: &str| {
        let condition = format!("--for=jsonpath={{.status.conditions[?(@.type==\"Ready\")].status}}={value}");
        cluster.kubectl(["wait", "node/node-2", &condition, "--timeout=120s"]).unwrap();
    };
    cluster.unplug_node("node-2").unwrap();
    ready("Unknown");
    cluster.plug_node("node-2").unwrap();
    ready("True");
    assert!(cluster.unplug_node("node-1").is_err(), "the first node has the control plane");
}
