//! Pods that became sessions without having been hardened.

use anyhow::ensure;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::routing::{condition, endpoints, events, message, told};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::shared::{counted, create, stage, web};

const SLIPPED: &str = "cofferdam_agent_slipped_through_pods_total";
const DELETED: &str = "cofferdam_agent_deleted_pods_total{reason=\"slipped_through\"}";
const HELD: &str = "cofferdam_agent_slipped_through_deletions_held_total";

/// So many pods of one owner are deleted at once.
const MOST: usize = 5;

/// An ordinary namespace, and what makes it one of sessions later.
fn ordinary(name: &str) -> TestNamespace {
    stage().namespace(name, Sessions::None)
}

fn becomes_one_of_sessions(namespace: &TestNamespace) {
    stage().kubectl.run(["label", "namespace", namespace.name(), "cofferdam.dev/sessions=enforced"]).unwrap();
}

#[test]
fn a_pod_that_was_there_before_its_namespace_was_one_of_sessions_is_never_published() {
    let namespace = ordinary("late-label");
    let mut early = web("early");
    early["metadata"]["labels"] = json!({});
    // Nobody believes it.
    early["metadata"]["annotations"] =
        json!({"cofferdam.dev/hardened": r#"{"version":"0.1.0","profile":"default","policy":"0"}"#});
    create(&namespace, [early]);
    namespace.ready("early").unwrap();
    assert_eq!(condition(&namespace.json(["get", "pod", "early"]).unwrap(), "Hardened"), "");
    let before = counted(SLIPPED).unwrap();

    becomes_one_of_sessions(&namespace);
    let early = told(&namespace, "early", "Hardened", "False/SlippedThrough").unwrap();
    let words = message(&early, "Hardened");
    for reason in ["runAsNonRoot", "allowPrivilegeEscalation", "seccompProfile", "readOnlyRootFilesystem"] {
        assert!(words.contains(reason), "{reason} is not among: {words}");
    }
    for name in ["PortsReachable", "RouteProgrammed", "RouteReachable"] {
        assert_eq!(condition(&early, name), "False/NotHardened");
    }
    let port = endpoints(&early).unwrap()["ports"][0].clone();
    assert!(port["host"].is_null() && port["url"].is_null(), "{port}");
    assert!(counted(SLIPPED).unwrap() > before);
    until("an event says so, once", PATIENCE, || {
        let events = events(&stage().kubectl, namespace.name(), "early")?;
        ensure!(events == ["SlippedThrough"], "{events:?}");
        Ok(())
    })
    .unwrap();

    // A pod that comes now is a session, and has its address before anything leads to the other one.
    create(&namespace, [web("late")]);
    told(&namespace, "late", "RouteReachable", "True/Reachable").unwrap();
    let services = namespace.run(["get", "services", "--output=jsonpath={.items[*].metadata.name}"]).unwrap();
    assert_eq!(services, "s-late");
    // It goes on, since its profile does not say otherwise.
    namespace.ready("early").unwrap();
}

/// The pods of the namespace, each with whether it was hardened.
fn pods(namespace: &TestNamespace) -> anyhow::Result<Vec<(String, bool)>> {
    let list = namespace.json(["get", "pods"])?;
    let items = list["items"].as_array().into_iter().flatten();
    let there = items.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Ok(there.map(|pod| (name(pod), !pod["metadata"]["labels"]["cofferdam.dev/session"].is_null())).collect())
}

#[test]
fn where_the_profile_says_so_such_pods_are_deleted_and_of_one_owner_not_all_at_once() {
    let namespace = ordinary("strict");
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": MOST + 1,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", "cofferdam.dev/profile": "strict"}},
                "spec": {
                    // Of one node, so of one agent.
                    "nodeSelector": {"kubernetes.io/hostname": "node-1"},
                    "containers": [{"name": "app", "image": FIXTURE, "args": ["sleep"]}],
                },
            },
        },
    });
    create(&namespace, [deployment]);
    namespace.run(["rollout", "status", "deployment/web", "--timeout=120s"]).unwrap();
    let before = pods(&namespace).unwrap();
    assert_eq!(before.len(), MOST + 1);
    let [deleted, held] = [DELETED, HELD].map(|sample| counted(sample).unwrap());

    becomes_one_of_sessions(&namespace);
    let left = until("its controller has made hardened ones", PATIENCE, || {
        let pods = pods(&namespace)?;
        let hardened = pods.iter().filter(|(_, is_hardened)| *is_hardened).count();
        ensure!(hardened == MOST, "{pods:?}");
        Ok(pods.into_iter().filter(|(_, is_hardened)| !is_hardened).collect::<Vec<_>>())
    })
    .unwrap();
    assert!(left.len() == 1 && before.contains(&left[0]), "{left:?}");
    assert_eq!(counted(DELETED).unwrap(), deleted + MOST as u64);
    assert_eq!(counted(HELD).unwrap(), held + 1);
    told(&namespace, &left[0].0, "Hardened", "False/SlippedThrough").unwrap();
    // What came in their place is no worse off for it.
    namespace.run(["rollout", "status", "deployment/web", "--timeout=120s"]).unwrap();
    for (pod, _) in pods(&namespace).unwrap().iter().filter(|(_, is_hardened)| *is_hardened) {
        told(&namespace, pod, "Hardened", "True/Hardened").unwrap();
    }
}
