//! Sessions that work are left alone, whatever becomes of the agent, the API server and the policy; at the end, what the
//! agents asked for through all of it. A cluster of its own, one fault after the other.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use cofferdam_e2e::install::{AGENTS, SYSTEM};
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::routing::{Door, ENVOY_GATEWAY_NETWORK, events, host, policy, through_gateway};
use cofferdam_e2e::stage::{Stage, value};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::permissions;
use crate::session::{create, goes_all_the_way, stage, works};

/// As short as it may be, since it is waited for.
const REST: &str = "finishedGraceSeconds: 1";

/// Another base domain.
const MOVED: &str = "moved.example.test";

/// What is told of a session that works.
const TOLD: [&str; 2] = ["Published", "Reachable"];

/// Everything that there is of the sessions that are not to be touched.
type Untouched = BTreeMap<String, Value>;

#[test]
fn sessions_that_work_are_left_alone_through_faults_and_reloads_with_documented_rights() {
    let policy = policy(&through_gateway(), &format!("{ENVOY_GATEWAY_NETWORK}\n{REST}"));
    let stage = stage("e2e-restarts", &policy);
    let namespace = stage.namespace("settled", Sessions::Enforced);
    // What goes its whole way while the others rest: in a namespace of its own.
    let passing = stage.namespace("passing", Sessions::Enforced);
    let pods = ["one", "two", "three"];
    for pod in pods {
        create(&namespace, pod);
    }
    for pod in pods {
        works(&namespace, pod);
    }
    until("all was told", PATIENCE, || {
        for pod in pods {
            let events = events(&stage.kubectl, namespace.name(), pod)?;
            ensure!(TOLD.iter().all(|told| events.iter().any(|event| event == told)), "of {pod}: {events:?}");
        }
        Ok(())
    })
    .unwrap();
    let before = untouched(&namespace);
    let rests = |fault: &str| {
        goes_all_the_way(&passing, fault);
        for (name, after) in untouched(&namespace) {
            assert_eq!(Some(&after), before.get(&name), "{name} after: {fault}");
        }
        assert_eq!(untouched(&namespace).len(), before.len(), "after: {fault}");
    };
    rests("quiet");
    killed(&stage);
    rests("killed");
    stage.cluster.reset_api_connections().unwrap();
    rests("reset");
    stage.cluster.restart_api_server().unwrap();
    rests("restarted");
    b105_a_watch_from_a_version_that_is_forgotten_lists_anew(&stage);
    rests("compacted");
    stage.system(&["rollout", "restart", "daemonset/cofferdam-agent"]).unwrap();
    stage.system(&["rollout", "status", "daemonset/cofferdam-agent", "--timeout=120s"]).unwrap();
    rests("rolled");
    a_policy_that_does_not_load_is_told_once(&stage, &policy);
    rests("broken");
    a_new_base_domain_is_taken_up(&stage, &namespace, &policy);
    permissions::what_is_asked_for_is_documented_and_the_other_way_round(&stage, &passing);
}

/// The pods with the versions that the API server gave them, so that any write shows; what was published of them, and what
/// was told.
fn untouched(namespace: &TestNamespace) -> Untouched {
    let mut all = Untouched::new();
    for kind in ["pods", "services", "endpointslices", "httproutes", "networkpolicies", "events.v1.events.k8s.io"] {
        let list = namespace.json(["get", kind]).unwrap();
        // Kubelets and schedulers tell when they like.
        let is_others =
            |object: &&Value| object["kind"] == "Event" && object["reportingController"] != "cofferdam-agent";
        for object in list["items"].as_array().unwrap().iter().filter(|object| !is_others(object)) {
            let metadata = &object["metadata"];
            // A controller writes into the status of a route whenever it likes.
            let version = if kind == "httproutes" { Value::Null } else { metadata["resourceVersion"].clone() };
            let of = json!([metadata["uid"], version, metadata["generation"], metadata["annotations"], object["spec"]]);
            all.insert(format!("{kind}/{}", metadata["name"].as_str().unwrap()), of);
        }
    }
    all
}

/// Kills the agent with no word to anyone, and waits until its kubelet has started it again.
fn killed(stage: &Stage) {
    let look = || -> Result<(String, u64, bool)> {
        let agent = agent(stage)?;
        let status = &agent["status"]["containerStatuses"][0];
        let restarts = status["restartCount"].as_u64().context("it has not begun")?;
        let name = agent["metadata"]["name"].as_str().context("it has no name")?;
        Ok((name.to_owned(), restarts, status["ready"] == true))
    };
    let (name, restarts, _) = look().unwrap();
    stage.cluster.kill_pod(SYSTEM, &name).unwrap();
    until("the agent is started again", PATIENCE, || {
        let (_, now, ready) = look()?;
        ensure!(now > restarts && ready, "{now} restarts, ready: {ready}");
        Ok(())
    })
    .unwrap();
}

/// The agent is stopped while the API server is away, or it would list anew by itself: after two failures it does.
fn b105_a_watch_from_a_version_that_is_forgotten_lists_anew(stage: &Stage) {
    let agent = agent(stage).unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
    stage.cluster.pause_pod(SYSTEM, &agent).unwrap();
    // Nothing more comes to it: a bookmark could be newer than all that is forgotten.
    stage.cluster.reset_api_connections().unwrap();
    let before = stage.cluster.audit().unwrap().len();
    stage.cluster.compact_etcd().unwrap();
    stage.cluster.restart_api_server().unwrap();
    stage.cluster.resume_pod(SYSTEM, &agent).unwrap();
    // That a version is too old is the first and last word of a watch that begins. Whoever is told nothing of it watches on,
    // and does not list.
    let of_the_node = [
        ("/pods?", "spec.nodeName"),
        ("/services?", "node-hash"),
        ("/endpointslices?", "node-hash"),
        ("/httproutes?", "node-hash"),
    ];
    for (path, selector) in of_the_node {
        until(&format!("{path} is listed anew"), PATIENCE, || {
            let since = stage.cluster.audit()?.split_off(before);
            let asked: Vec<String> = since
                .iter()
                .filter(|event| event.request_uri.contains(path) && event.request_uri.contains(selector))
                .map(|event| format!("{} {} {:?}", event.verb, event.stage, event.code()))
                .collect();
            let first = |wanted: &str| asked.iter().position(|event| event == wanted);
            let listed = first("list ResponseComplete Some(200)").with_context(|| format!("asked: {asked:?}"))?;
            let watched = first("watch ResponseStarted Some(200)");
            assert!(watched.is_some_and(|watched| watched < listed), "asked: {asked:?}");
            Ok(())
        })
        .unwrap();
    }
}

/// The agent's pod.
fn agent(stage: &Stage) -> Result<Value> {
    let list = stage.kubectl.json(["--namespace", SYSTEM, "get", "pods", AGENTS])?;
    let mut all = list["items"].as_array().into_iter().flatten();
    let found = all.find(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    found.cloned().context("there is no agent")
}

/// What the agent's admin port answers.
fn ask(stage: &Stage, path: &str) -> Result<String> {
    let agent = agent(stage)?;
    let name = agent["metadata"]["name"].as_str().context("it has no name")?;
    stage.answer(name, path)
}

/// The value of a metric of the agent.
fn metric(stage: &Stage, sample: &str) -> Result<u64> {
    Ok(value(&ask(stage, "/metrics")?, sample)?.parse()?)
}

fn a_policy_that_does_not_load_is_told_once(stage: &Stage, good: &str) {
    stage.change_policy(&format!("{good}\nroutin: {{}}\n"), AGENTS).unwrap();
    // Looked at more than once.
    until("the broken policy is seen", PATIENCE, || {
        let seen = metric(stage, r#"cofferdam_agent_policy_reloads_total{outcome="failed"}"#)?;
        ensure!(seen >= 2, "{seen} times");
        Ok(())
    })
    .unwrap();
    assert_eq!(metric(stage, "cofferdam_agent_policy_last_reload_successful").unwrap(), 0);
    assert_eq!(ask(stage, "/readyz").unwrap(), "ok; degraded: policy\n");
    let log = stage.system(&["logs", AGENTS, "--tail=200"]).unwrap();
    assert!(log.contains("routin"), "{log}");
    let field = "--field-selector=reason=PolicyNotLoaded";
    let events = stage.kubectl.json(["--namespace", SYSTEM, "get", "events.v1.events.k8s.io", field]).unwrap();
    assert_eq!(events["items"].as_array().unwrap().len(), 1, "{events}");
}

fn a_new_base_domain_is_taken_up(stage: &Stage, namespace: &TestNamespace, policy: &str) {
    let door = Door::of_gateway(stage).unwrap();
    let before = host(namespace, "one", 3000).unwrap();
    assert_eq!(door.get(&before).unwrap().status, 200);
    let uids = |namespace: &TestNamespace| {
        namespace.run(["get", "pods,services,httproutes", r"--output=jsonpath={.items[*].metadata.uid}"]).unwrap()
    };
    let objects = uids(namespace);
    stage.change_policy(&policy.replace(cofferdam_e2e::routing::DOMAIN, MOVED), AGENTS).unwrap();
    let after = until("the host is another", PATIENCE, || {
        let host = host(namespace, "one", 3000)?;
        ensure!(host.ends_with(MOVED), "it is {host}");
        Ok(host)
    })
    .unwrap();
    works(namespace, "one");
    assert_eq!(door.get(&after).unwrap().status, 200);
    until("the gateway forgets the old host", PATIENCE, || {
        let status = door.get(&before)?.status;
        ensure!(status == 404, "it answers {status}");
        Ok(())
    })
    .unwrap();
    assert_eq!(uids(namespace), objects, "changed, not made anew");
    assert_eq!(ask(stage, "/readyz").unwrap(), "ok\n");
}
