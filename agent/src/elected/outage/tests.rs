use super::*;

const NOW: &str = "2026-01-02T03:04:05Z";

/// A session that works.
fn session() -> Value {
    let condition = |type_: &str, reason: &str| json!({"type": type_, "status": "True", "reason": reason, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({
        "metadata": {"name": "p", "uid": "u", "resourceVersion": "7", "labels": {"cofferdam.dev/session": "abc"}},
        "status": {"phase": "Running", "conditions": [
            condition("Ready", ""),
            condition("cofferdam.dev/Hardened", "Hardened"),
            condition("cofferdam.dev/PortsReachable", "AllReachable"),
            condition("cofferdam.dev/RouteProgrammed", "Programmed"),
            condition("cofferdam.dev/RouteReachable", "Reachable"),
        ]},
    })
}

/// What a patch makes of the pod's conditions: as the API server merges them, by type.
fn merge(pod: &mut Value, patch: &Value) {
    let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
    for mark in patch["status"]["conditions"].as_array().unwrap() {
        if let Some(before) = conditions.iter_mut().find(|before| before["type"] == mark["type"]) {
            before.as_object_mut().unwrap().extend(mark.as_object().unwrap().clone());
        } else {
            conditions.push(mark.clone());
        }
    }
}

#[test]
fn b143_a_session_is_marked_once_and_only_in_this_version() {
    for (outage, reason) in [(Outage::Lost, "NodeLost"), (Outage::Silent, "AgentSilent")] {
        let mut value = session();
        let patch = marked(&Pod::read(&value), outage, "node-1", NOW).unwrap();
        assert_eq!(patch["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
        let marks = patch["status"]["conditions"].as_array().unwrap();
        let types: Vec<_> = marks.iter().map(|mark| mark["type"].as_str().unwrap()).collect();
        assert_eq!(
            types,
            ["cofferdam.dev/PortsReachable", "cofferdam.dev/RouteProgrammed", "cofferdam.dev/RouteReachable"]
        );
        for mark in marks {
            assert_eq!((&mark["status"], &mark["reason"]), (&json!("Unknown"), &json!(reason)));
            assert_eq!(mark["lastTransitionTime"], NOW);
            let message = mark["message"].as_str().unwrap();
            assert!(message.contains("node-1") && message.ends_with('.'), "{message}");
        }
        merge(&mut value, &patch);
        assert_eq!(
            marked(&Pod::read(&value), outage, "node-1", "2027-01-01T00:00:00Z"),
            None,
            "nothing is written twice"
        );
    }
}

#[test]
fn from_silent_to_lost_only_the_reason_changes() {
    let mut value = session();
    let silent = marked(&Pod::read(&value), Outage::Silent, "node-1", NOW).unwrap();
    merge(&mut value, &silent);
    let patch = marked(&Pod::read(&value), Outage::Lost, "node-1", "2027-01-01T00:00:00Z").unwrap();
    for mark in patch["status"]["conditions"].as_array().unwrap() {
        assert_eq!((&mark["reason"], mark.get("lastTransitionTime")), (&json!("NodeLost"), None));
    }
}

#[test]
fn a_session_that_no_agent_ever_saw_is_marked() {
    let mut value = session();
    value["status"]["conditions"] = json!([]);
    assert_eq!(marked(&Pod::read(&value), Outage::Silent, "node-1", NOW), None, "the label alone makes no session");
    value["metadata"]["annotations"] = json!({"cofferdam.dev/hardened": "{}"});
    assert!(marked(&Pod::read(&value), Outage::Silent, "node-1", NOW).is_some());
    value["status"] = Value::Null;
    assert!(marked(&Pod::read(&value), Outage::Silent, "node-1", NOW).is_some());
}

#[test]
fn b145_a_session_that_is_being_deleted_is_marked_whatever_its_phase_says() {
    let mut value = session();
    value["metadata"]["deletionTimestamp"] = json!(NOW);
    assert!(marked(&Pod::read(&value), Outage::Lost, "node-1", NOW).is_some());
}

#[test]
fn what_is_true_for_good_is_left_alone() {
    // Whoever lost the label is no session any more, and no agent may write to it.
    let mut none = session();
    none["metadata"]["labels"] = json!({});
    let mut succeeded = session();
    succeeded["status"]["phase"] = json!("Succeeded");
    let mut failed = session();
    failed["status"]["phase"] = json!("Failed");
    let mut slipped_through = session();
    slipped_through["status"]["conditions"][1]["status"] = json!("False");
    for value in [none, succeeded, failed, slipped_through] {
        assert_eq!(marked(&Pod::read(&value), Outage::Lost, "node-1", NOW), None, "{value}");
    }
}

fn slice(endpoints: &Value) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "s-abc", "namespace": "team-a", "uid": "u", "resourceVersion": "7", "generation": 3,
            "labels": {"app.kubernetes.io/managed-by": "cofferdam-agent", "kubernetes.io/service-name": "s-abc"},
            "annotations": {"cofferdam.dev/node": "node-1"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pu"}],
            "managedFields": [{"manager": "cofferdam-agent"}],
        },
        "addressType": "IPv4",
        "endpoints": endpoints,
        "ports": [{"name": "tcp-3000", "port": 3000, "protocol": "TCP"}],
    })
}

#[test]
fn b143_endpoints_go_out_of_service_once_and_all_else_of_the_slice_stays() {
    let serving = json!([{
        "addresses": ["10.1.2.3"],
        "conditions": {"ready": true, "serving": true, "terminating": false},
        "nodeName": "node-1",
    }]);
    let before = slice(&serving);
    let apply = withdrawn(&before, "node-1").unwrap();
    let mut expected = before.clone();
    expected["endpoints"] = json!([]);
    for not_applied in ["managedFields", "generation"] {
        expected["metadata"].as_object_mut().unwrap().remove(not_applied);
    }
    assert_eq!(apply, expected);
    assert_eq!(withdrawn(&slice(&apply["endpoints"]), "node-1"), None, "nothing is written twice");
}

#[test]
fn b143_an_endpoint_that_is_not_ready_goes_too_since_proxies_may_use_it() {
    for conditions in [json!({}), json!({"ready": false, "serving": false}), json!({"ready": null})] {
        let endpoints = json!([{"addresses": ["10.1.2.3"], "conditions": conditions}]);
        assert_eq!(withdrawn(&slice(&endpoints), "node-1").unwrap()["endpoints"], json!([]), "{endpoints}");
    }
    assert_eq!(withdrawn(&slice(&json!([])), "node-1"), None);
    assert_eq!(withdrawn(&slice(&Value::Null), "node-1"), None);
}

#[test]
fn a_slice_of_another_node_or_another_manager_is_left_alone() {
    let endpoints = json!([{"addresses": ["10.1.2.3"]}]);
    assert_eq!(withdrawn(&slice(&endpoints), "node-2"), None);
    let mut foreign = slice(&endpoints);
    foreign["metadata"]["labels"][MANAGED_BY] = json!("endpointslice-controller.k8s.io");
    assert_eq!(withdrawn(&foreign, "node-1"), None);
}

#[test]
fn only_what_is_known_to_have_ended_or_moved_leads_astray() {
    let slice = slice(&json!([{"addresses": ["fd00:0::9"]}]));
    let astray = |uid: &str, address: &str, change: &dyn Fn(&mut Value)| {
        let mut value =
            json!({"metadata": {"name": "p", "uid": uid}, "status": {"phase": "Running", "podIP": address}});
        change(&mut value);
        leads_astray(&slice, &[Pod::read(&value)])
    };
    assert!(!astray("pu", "fd00::9", &|_| ()));
    assert!(!astray("another", "fd00::9", &|pod| pod["status"]["phase"] = json!("Failed")));
    assert!(!leads_astray(&slice, &[]), "it may be newer than the list");
    for phase in ["Succeeded", "Failed"] {
        assert!(astray("pu", "fd00::9", &|pod| pod["status"]["phase"] = json!(phase)), "{phase}");
    }
    assert!(astray("pu", "fd00::9", &|pod| pod["metadata"]["deletionTimestamp"] = json!(NOW)));
    assert!(astray("pu", "fd00::8", &|_| ()), "it has another address");
    assert!(astray("pu", "", &|pod| pod["status"] = json!({})), "it has none");
}

#[test]
fn what_pods_own_that_are_over_is_given_up_and_nothing_else() {
    let pod = |uid: &str, phase: &str, is_leaving: bool| {
        let leaving = is_leaving.then_some("2026-01-01T00:00:00Z");
        Pod::read(&json!({"metadata": {"uid": uid, "deletionTimestamp": leaving}, "status": {"phase": phase}}))
    };
    let pods = [pod("lives", "Running", false), pod("leaves", "Running", true), pod("ended", "Succeeded", false)];
    let object = |owners: &[&str], is_leaving: bool| {
        let owner = |uid: &&str| json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid});
        let owners: Vec<_> = owners.iter().map(owner).collect();
        let leaving = is_leaving.then_some("2026-01-01T00:00:00Z");
        Metadata::read(&json!({"metadata": {"ownerReferences": owners, "deletionTimestamp": leaving}}))
    };
    for (owners, expected) in [
        (&["leaves"][..], true),
        (&["ended"], true),
        (&["leaves", "ended"], true),
        (&["lives"], false),
        (&["leaves", "lives"], false),
        // Newer than what was listed, or gone; the sweep looks at those.
        (&["unheard-of"], false),
        (&["leaves", "unheard-of"], false),
        (&[], false),
    ] {
        assert_eq!(is_released(&object(owners, false), &pods), expected, "{owners:?}");
        assert!(!is_released(&object(owners, true), &pods), "{owners:?} is being deleted already");
    }
}
