//! Pods that have ended, or are about to.

use anyhow::ensure;
use cofferdam_e2e::images::FIXTURE;
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::routing::{condition, endpoints, events, told};
use cofferdam_e2e::wait::until;
use serde_json::json;

use crate::shared::{counted, create, door, objects, reachable, sessions, stage, unpublished, web};

/// Ends a pod, as its deadline would.
fn end(namespace: &TestNamespace, pod: &str) {
    namespace.run(["patch", "pod", pod, "--patch={\"spec\": {\"activeDeadlineSeconds\": 1}}"]).unwrap();
}

#[test]
fn a_pod_that_has_ended_loses_its_address_at_once_and_is_deleted_later_if_nobody_owns_it() {
    let namespace = sessions("finished");
    let mut kept = web("kept");
    kept["metadata"]["annotations"] = json!({"cofferdam.dev/finished-grace-seconds": "600"});
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "app", "image": FIXTURE, "args": ["status"]}],
        }}},
    });
    create(&namespace, [web("brief"), kept, job]);
    let host = reachable(&namespace, "kept");
    namespace.run(["wait", "job/once", "--for=condition=Complete", "--timeout=120s"]).unwrap();
    end(&namespace, "kept");
    for name in ["PortsReachable", "RouteProgrammed", "RouteReachable"] {
        told(&namespace, "kept", name, "False/Finished").unwrap();
    }
    unpublished(&namespace, "kept");
    let port = endpoints(&namespace.json(["get", "pod", "kept"]).unwrap()).unwrap()["ports"][0].clone();
    assert_eq!(port["address"]["state"], "unreachable", "{port}");
    until("its host leads nowhere", PATIENCE, || {
        let answer = door().get(&host)?;
        ensure!(answer.status == 404, "{}", answer.head);
        Ok(())
    })
    .unwrap();

    // Its end comes after that of the others, and it alone is gone in the end.
    let deleted = "cofferdam_agent_deleted_pods_total{reason=\"finished\"}";
    let before = counted(deleted).unwrap();
    reachable(&namespace, "brief");
    end(&namespace, "brief");
    namespace.run(["wait", "pod/brief", "--for=delete", "--timeout=120s"]).unwrap();
    until("an event says so", PATIENCE, || {
        let events = events(&stage().kubectl, namespace.name(), "brief")?;
        ensure!(events.iter().any(|event| event == "FinishedDeleted"), "{events:?}");
        Ok(())
    })
    .unwrap();
    assert!(counted(deleted).unwrap() > before);
    let kept = namespace.json(["get", "pod", "kept"]).unwrap();
    assert!(kept["metadata"]["deletionTimestamp"].is_null(), "{kept}");
    let once = namespace.pod_with("job-name=once").unwrap();
    assert_eq!(once["status"]["phase"], "Succeeded");
    assert_eq!(condition(&once, "RouteReachable"), "False/Finished");
}

#[test]
fn b145_a_pod_that_is_being_deleted_is_published_no_more_though_it_still_runs() {
    let namespace = sessions("leaving");
    let mut slow = web("slow");
    slow["spec"]["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 25}}});
    slow["spec"]["terminationGracePeriodSeconds"] = json!(30);
    create(&namespace, [slow]);
    let host = reachable(&namespace, "slow");
    namespace.ready("slow").unwrap();
    namespace.run(["delete", "pod", "slow", "--wait=false"]).unwrap();
    unpublished(&namespace, "slow");
    let slow = namespace.json(["get", "pod", "slow"]).unwrap();
    assert!(slow["metadata"]["deletionTimestamp"].is_string(), "{slow}");
    assert!(slow["status"]["containerStatuses"][0]["state"]["running"].is_object(), "it does not run: {slow}");
    until("its host leads nowhere", PATIENCE, || {
        let answer = door().get(&host)?;
        ensure!(answer.status == 404, "{}", answer.head);
        Ok(())
    })
    .unwrap();
    // Nothing brings it back until it is gone.
    namespace.run(["annotate", "pod/slow", "--overwrite", "cofferdam.dev/ports=3000/tcp,3001/tcp"]).unwrap();
    namespace.run(["delete", "pod", "slow", "--now"]).unwrap();
    assert!(objects(&namespace, "services", "slow").unwrap().is_empty());
}
