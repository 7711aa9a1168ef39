//! Nodes that are lost and agents that are silent (case B143): what the elected agent does about their sessions, and that
//! a node's own agent puts all of it back. A cluster of its own, one fault after the other.

use std::time::Duration;

use anyhow::{Result, ensure};
use cofferdam_cluster::addon::ENVOY_GATEWAY;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::routing::{Door, ENVOY_GATEWAY_NETWORK, condition, host, policy, through_gateway, told};
use cofferdam_e2e::stage::{Setup, Stage};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::agents::{agent, counts};
use crate::permissions::what_is_asked_for_is_documented;
use crate::placed::create_on;
use crate::session::works;

/// Short, since it is waited for.
const NOT_READY_AFTER: Duration = Duration::from_secs(10);

/// What nobody but a node's own agent can know.
const KNOWN_ON_THE_NODE: [&str; 3] = ["PortsReachable", "RouteProgrammed", "RouteReachable"];

/// A session for each node, and the nodes.
const PLACES: [(&str, &str); 3] = [("one", "node-1"), ("two", "node-2"), ("three", "node-3")];

/// What the steps share.
struct Scene {
    stage: Stage,
    namespace: TestNamespace,
    door: Door,
}

#[test]
fn b143_sessions_of_a_lost_node_go_out_of_service_and_come_back() {
    let mut scene = set_up();
    for (pod, node) in PLACES {
        create_on(&scene.stage, &scene.namespace, pod, node);
    }
    for (pod, _) in PLACES {
        scene.works(pod);
    }
    an_agent_that_is_silent_is_told_of_and_what_it_made_serves_on(&scene);
    a_node_that_falls_silent_is_out_of_service_until_it_is_back(&scene);
    a_node_that_dies_with_the_elected_agent_is_looked_after_by_another(&mut scene);
    what_is_asked_for_is_documented(&scene.stage, "nodes");
}

/// Two more nodes join when all but sessions and agents runs on the first, which stays.
fn set_up() -> Scene {
    let policy = policy(&through_gateway(), ENVOY_GATEWAY_NETWORK);
    let setup = Setup {
        name: "e2e-nodes",
        nodes: 1,
        addons: &[ENVOY_GATEWAY],
        policy: &policy,
        not_ready_after: Some(NOT_READY_AFTER),
    };
    let mut stage = Stage::set_up(&setup).unwrap();
    let short = ["COFFERDAM_AGENT_SILENT_AGENT=5s", "COFFERDAM_AGENT_LOST_NODE=5s"];
    stage.system(&[&["set", "env", "daemonset/cofferdam-agent"], &short[..]].concat()).unwrap();
    for (_, node) in &PLACES[1..] {
        add_node(&mut stage, node);
    }
    stage.system(&["rollout", "status", "daemonset/cofferdam-agent", "--timeout=180s"]).unwrap();
    let namespace = stage.namespace("nodes", Sessions::Enforced);
    let door = Door::of_gateway(&stage).unwrap();
    Scene { stage, namespace, door }
}

fn add_node(stage: &mut Stage, node: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(stage.cluster.add_node(node, false)).unwrap();
}

fn an_agent_that_is_silent_is_told_of_and_what_it_made_serves_on(scene: &Scene) {
    let elected = scene.elect("node-1");
    let (objects, others) = (scene.objects("two"), ["one", "three"].map(|pod| scene.told_of(pod)));
    let silent = agent(&scene.stage, "node-2").unwrap();
    scene.stage.cluster.pause_pod("cofferdam-system", &silent).unwrap();
    scene.nobody_knows("two", "AgentSilent");
    counts(&scene.stage, &elected, "silent_agents", "1");
    assert_eq!(scene.objects("two"), objects, "its objects were touched");
    scene.answers("two");
    // Where its kubelet has lost patience before this, it begins anew.
    let _ = scene.stage.cluster.resume_pod("cofferdam-system", &silent);
    scene.works("two");
    counts(&scene.stage, &elected, "silent_agents", "0");
    assert_eq!(scene.objects("two"), objects, "its objects were touched");
    assert_eq!(["one", "three"].map(|pod| scene.told_of(pod)), others, "what is told of others has changed");
}

fn a_node_that_falls_silent_is_out_of_service_until_it_is_back(scene: &Scene) {
    let elected = scene.elect("node-1");
    let identities = ["two", "three"].map(|pod| scene.identities(pod));
    let (first, third) = (scene.told_of("one"), (scene.told_of("three"), scene.objects("three")));
    scene.stage.cluster.pause_node("node-2").unwrap();
    scene.is_out_of_service("two");
    counts(&scene.stage, &elected, "lost_nodes", "1");
    assert_eq!((scene.told_of("three"), scene.objects("three")), third, "what is told of others has changed");

    // One more, and most of the cluster seems lost: that is more likely a mistake about it.
    scene.stage.cluster.pause_node("node-3").unwrap();
    counts(&scene.stage, &elected, "lost_node_brake", "1");
    counts(&scene.stage, &elected, "lost_nodes", "2");
    create_on(&scene.stage, &scene.namespace, "meanwhile", "node-1");
    scene.works("meanwhile");
    assert_eq!((scene.told_of("three"), scene.objects("three")), third, "the brake did not hold");
    scene.answers("three");

    scene.stage.cluster.resume_node("node-2").unwrap();
    scene.works("two");
    // What the brake kept from being done is done a while later.
    scene.is_out_of_service("three");
    counts(&scene.stage, &elected, "lost_node_brake", "0");
    scene.stage.cluster.resume_node("node-3").unwrap();
    scene.works("three");
    counts(&scene.stage, &elected, "lost_nodes", "0");
    assert_eq!(["two", "three"].map(|pod| scene.identities(pod)), identities, "something was made anew");
    assert_eq!(scene.told_of("one"), first, "what is told of others has changed");
}

fn a_node_that_dies_with_the_elected_agent_is_looked_after_by_another(scene: &mut Scene) {
    let lost = scene.elect("node-3");
    let others = ["one", "two"].map(|pod| (scene.told_of(pod), scene.objects(pod)));
    scene.stage.cluster.kill_node("node-3").unwrap();
    scene.is_out_of_service("three");
    let holder = scene.holder();
    assert!(holder != lost && !holder.is_empty(), "{holder} holds the lease");
    scene.answers("one");
    scene.answers("two");
    assert_eq!(["one", "two"].map(|pod| (scene.told_of(pod), scene.objects(pod))), others, "others were touched");
    add_node(&mut scene.stage, "node-3");
    // Its containers are gone, and what does not restart has ended: the agent that is back says so.
    for name in KNOWN_ON_THE_NODE {
        told(&scene.namespace, "three", name, "False/Finished").unwrap();
    }
}

impl Scene {
    /// Gives the Lease to the agent of a node, and waits until that agent knows. Returns its pod.
    fn elect(&self, node: &str) -> String {
        let pod = agent(&self.stage, node).unwrap();
        let patch = json!({"spec": {"holderIdentity": pod}}).to_string();
        self.stage.system(&["patch", "lease/cofferdam-agent", "--type=merge", "--patch", &patch]).unwrap();
        counts(&self.stage, &pod, "leader", "1");
        pod
    }

    fn holder(&self) -> String {
        self.stage.system(&["get", "lease/cofferdam-agent", "--output=jsonpath={.spec.holderIdentity}"]).unwrap()
    }

    fn pod(&self, pod: &str) -> Result<Value> {
        self.namespace.json(["get", "pod", pod])
    }

    /// What we tell of a pod, with the times of its conditions.
    fn told_of(&self, pod: &str) -> Value {
        let pod = self.pod(pod).unwrap();
        let all = pod["status"]["conditions"].as_array().into_iter().flatten();
        let ours = all.filter(|condition| condition["type"].as_str().is_some_and(|type_| type_.contains('/')));
        json!({"conditions": ours.collect::<Vec<_>>(), "annotations": pod["metadata"]["annotations"]})
    }

    /// What was published for a pod.
    fn published(&self, pod: &str) -> Vec<Value> {
        let pod = self.pod(pod).unwrap();
        let of = format!(
            "--selector=cofferdam.dev/session={}",
            pod["metadata"]["labels"]["cofferdam.dev/session"].as_str().unwrap()
        );
        let list = self.namespace.json(["get", "services,endpointslices,httproutes", of.as_str()]).unwrap();
        let items = list["items"].as_array().unwrap().clone();
        assert_eq!(items.len(), 3, "{items:?}");
        items
    }

    /// Kind and uid of all that was published for a pod, and the pod's own.
    fn identities(&self, pod: &str) -> Vec<Value> {
        let pods_own = json!(["Pod", self.pod(pod).unwrap()["metadata"]["uid"]]);
        let of = |object: Value| json!([object["kind"], object["metadata"]["uid"]]);
        self.published(pod).into_iter().map(of).chain([pods_own]).collect()
    }

    /// All that was published for a pod, but what others say about it.
    fn objects(&self, pod: &str) -> Vec<Value> {
        let mut objects = self.published(pod);
        for object in &mut objects {
            object["status"] = Value::Null;
            object["metadata"] = json!({"uid": object["metadata"]["uid"], "labels": object["metadata"]["labels"]});
        }
        objects
    }

    /// Waits until a session works, as people see it and as we tell it.
    fn works(&self, pod: &str) {
        works(&self.namespace, pod);
        self.answers(pod);
    }

    fn answers(&self, pod: &str) {
        let host = host(&self.namespace, pod, 3000).unwrap();
        assert_eq!(self.door.get(&host).unwrap().status, 200, "{pod}");
    }

    fn nobody_knows(&self, pod: &str, reason: &str) {
        for name in KNOWN_ON_THE_NODE {
            told(&self.namespace, pod, name, &format!("Unknown/{reason}")).unwrap();
        }
        // That does not change with its node.
        assert_eq!(condition(&self.pod(pod).unwrap(), "Hardened"), "True/Hardened");
    }

    /// Waits until a lost session is marked and has no endpoint, and the gateway sends nobody there.
    fn is_out_of_service(&self, pod: &str) {
        self.nobody_knows(pod, "NodeLost");
        let host = host(&self.namespace, pod, 3000).unwrap();
        until(&format!("{pod} is out of service"), PATIENCE, || {
            let objects = self.published(pod);
            let slice = objects.iter().find(|object| object["kind"] == "EndpointSlice").unwrap();
            ensure!(
                slice["endpoints"].as_array().is_none_or(Vec::is_empty),
                "its endpoints are {}",
                slice["endpoints"]
            );
            let status = self.door.get(&host)?.status;
            ensure!(status == 503, "the gateway answers {status}");
            Ok(())
        })
        .unwrap();
    }
}
