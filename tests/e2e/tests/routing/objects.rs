//! The objects that lead to a session: they stay what they ought to be, follow its ports, cost nothing while nothing
//! happens, and go with the pod.

use anyhow::{Result, ensure};
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::routing::{endpoints, events, host, message, told};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::shared::{
    counted, create, door, objects, on, pod, reachable, sessions, stage, unpublished, web, who_answers,
};

/// What is ours to say of an object.
fn ours(namespace: &TestNamespace, object: &str) -> Result<Value> {
    let mut found = namespace.json(["get", object])?;
    let metadata = &found["metadata"];
    found["metadata"] = json!({
        "labels": metadata["labels"],
        "annotations": metadata["annotations"],
        "ownerReferences": metadata["ownerReferences"],
    });
    found["status"] = Value::Null;
    Ok(found)
}

/// Who did it to what, and how.
const DISTURBANCES: [(&str, &str, &[&str]); 9] = [
    ("no-service", "service/s-no-service", &["delete"]),
    ("no-slice", "endpointslice/s-no-slice", &["delete"]),
    ("no-route", "httproute/s-no-route-3000", &["delete"]),
    (
        "astray",
        "httproute/s-astray-3000",
        &[
            "patch",
            "--type=json",
            r#"--patch=[{"op": "replace", "path": "/spec/hostnames/0", "value": "else.example.test"},
                {"op": "replace", "path": "/spec/rules/1/backendRefs/0/port", "value": 9}]"#,
        ],
    ),
    (
        "elsewhere",
        "endpointslice/s-elsewhere",
        &["patch", "--type=merge", r#"--patch={"endpoints": [{"addresses": ["10.0.0.9"]}]}"#],
    ),
    (
        "wider",
        "service/s-wider",
        &[
            "patch",
            "--type=json",
            r#"--patch=[{"op": "add", "path": "/spec/ports/-", "value": {"name": "more", "port": 9999}},
                {"op": "add", "path": "/spec/externalIPs", "value": ["192.0.2.1"]}]"#,
        ],
    ),
    ("no-id", "service/s-no-id", &["label", "cofferdam.dev/session-"]),
    ("no-hash", "httproute/s-no-hash-3000", &["label", "cofferdam.dev/node-hash-"]),
    ("ordered", "httproute/s-ordered-3000", &["annotate", "konghq.com/plugins=redirect"]),
];

#[test]
fn what_others_do_to_our_objects_is_undone() {
    let namespace = sessions("undone");
    create(&namespace, DISTURBANCES.map(|(name, ..)| web(name)));
    let hosts = DISTURBANCES.map(|(name, ..)| reachable(&namespace, name));
    let before = DISTURBANCES.map(|(_, object, _)| ours(&namespace, object).unwrap());
    let replaced = "cofferdam_agent_replaced_objects_total{resource=\"services\"}";
    let replaced_before = counted(replaced).unwrap();
    for (_, object, how) in DISTURBANCES {
        let (verb, options) = how.split_first().unwrap();
        namespace.run([&[*verb, object], options].concat()).unwrap();
    }
    for ((name, object, _), before) in DISTURBANCES.iter().zip(&before) {
        until(&format!("{object} is as it was"), PATIENCE, || {
            let now = ours(&namespace, object)?;
            ensure!(now == *before, "it is {now}, and was {before}");
            Ok(())
        })
        .unwrap();
        told(&namespace, name, "RouteReachable", "True/Reachable").unwrap();
    }
    assert!(counted(replaced).unwrap() > replaced_before, "what an apply cannot take away means making it anew");
    for ((name, ..), host) in DISTURBANCES.iter().zip(&hosts) {
        until(&format!("{name} answers"), PATIENCE, || {
            let who = who_answers(host)?;
            ensure!(who == *name, "it is {who}");
            Ok(())
        })
        .unwrap();
    }
}

/// What somebody takes away of what says whose an object is, as a merge patch of its metadata.
fn strips() -> [(&'static str, Value); 6] {
    [
        ("no-manager", json!({"labels": {"app.kubernetes.io/managed-by": null}})),
        ("no-node", json!({"annotations": {"cofferdam.dev/node": null}})),
        ("no-node-hash", json!({"labels": {"cofferdam.dev/node-hash": null}})),
        ("no-session", json!({"labels": {"cofferdam.dev/session": null}})),
        ("no-owner", json!({"ownerReferences": null})),
        ("bare", json!({"labels": null, "annotations": null})),
    ]
}

#[test]
fn what_says_whose_an_object_is_comes_back() {
    let namespace = sessions("stripped");
    let objects = |session: &str| {
        [format!("service/s-{session}"), format!("endpointslice/s-{session}"), format!("httproute/s-{session}-3000")]
    };
    create(&namespace, strips().map(|(session, _)| web(session)));
    let hosts = strips().map(|(session, _)| reachable(&namespace, session));
    let before = strips().map(|(session, _)| objects(session).map(|object| ours(&namespace, &object).unwrap()));
    for (session, strip) in strips() {
        let change = json!({ "metadata": strip }).to_string();
        for object in objects(session) {
            namespace.run(["patch", &object, "--type=merge", "--patch", &change]).unwrap();
        }
    }
    for ((session, _), before) in strips().iter().zip(&before) {
        for (object, before) in objects(session).iter().zip(before) {
            until(&format!("{object} is as it was"), PATIENCE, || {
                let now = ours(&namespace, object)?;
                ensure!(now == *before, "it is {now}, and was {before}");
                Ok(())
            })
            .unwrap();
        }
        told(&namespace, session, "RouteReachable", "True/Reachable").unwrap();
    }
    for ((session, _), host) in strips().iter().zip(&hosts) {
        until(&format!("{session} answers"), PATIENCE, || {
            let who = who_answers(host)?;
            ensure!(who == *session, "it is {who}");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn ports_may_change_while_the_pod_lives() {
    let namespace = sessions("ports");
    create(&namespace, [pod("web", "listen --port 3000,3001 --http")]);
    let first = reachable(&namespace, "web");
    let wants = |ports: &str| {
        let annotation = format!("cofferdam.dev/ports={ports}");
        namespace.run(["annotate", "pod/web", "--overwrite", &annotation]).unwrap();
    };
    let follows = |ports: &str| {
        until(&format!("{ports} are reachable"), PATIENCE, || {
            let endpoints = endpoints(&namespace.json(["get", "pod", "web"])?)?;
            ensure!(endpoints["forPorts"] == *ports, "{endpoints}");
            let mut all = endpoints["ports"].as_array().into_iter().flatten();
            ensure!(all.all(|port| port["address"]["state"] == "reachable"), "{endpoints}");
            Ok(())
        })
        .unwrap();
    };
    wants("3000/tcp,3001/tcp");
    follows("3000/tcp,3001/tcp");
    let second = host(&namespace, "web", 3001).unwrap();
    assert_eq!((who_answers(&first).unwrap(), who_answers(&second).unwrap()), ("web".to_owned(), "web".to_owned()));
    wants("3001/tcp");
    follows("3001/tcp");
    assert_eq!(objects(&namespace, "httproutes", "web").unwrap(), ["s-web-3001"]);
    until("the first address leads nowhere", PATIENCE, || {
        let answer = door().get(&first)?;
        ensure!(answer.status == 404, "{}", answer.head);
        Ok(())
    })
    .unwrap();
    assert_eq!(who_answers(&second).unwrap(), "web");
    wants("3001/tcp,http");
    let invalid = told(&namespace, "web", "RouteReachable", "False/PortsInvalid").unwrap();
    let words = message(&invalid, "RouteReachable");
    assert!(words.contains("part 2") && words.contains("3000/tcp"), "{words}");
    unpublished(&namespace, "web");
    wants("3000/tcp");
    assert_eq!(reachable(&namespace, "web"), first);
}

#[test]
fn rte_16_a_session_whose_service_a_quota_refuses_goes_on_and_is_published_once_there_is_room() {
    let namespace = sessions("no-room");
    namespace.run(["create", "quota", "none", "--hard=count/services=0"]).unwrap();
    until("the quota is in force", PATIENCE, || {
        let quota = namespace.json(["get", "quota", "none"])?;
        ensure!(quota["status"]["hard"]["count/services"] == "0", "{}", quota["status"]);
        Ok(())
    })
    .unwrap();
    create(&namespace, [web("web")]);
    for name in ["RouteProgrammed", "RouteReachable"] {
        let pod = told(&namespace, "web", name, "False/PublishFailed").unwrap();
        let words = message(&pod, name);
        assert!(words.contains("services/s-web: a ResourceQuota of the namespace"), "{words}");
    }
    let pod = told(&namespace, "web", "PortsReachable", "True/AllReachable").unwrap();
    assert_eq!(pod["status"]["phase"], "Running");
    for kind in ["services", "endpointslices", "httproutes"] {
        assert_eq!(objects(&namespace, kind, "web").unwrap(), [""; 0], "{kind}");
    }
    namespace.run(["delete", "quota", "none"]).unwrap();
    let host = reachable(&namespace, "web");
    assert_eq!(who_answers(&host).unwrap(), "web");
}

/// The versions of a session's pod and objects.
fn versions(namespace: &TestNamespace) -> Vec<(String, String)> {
    let list = namespace.json(["get", "pods,services,endpointslices,httproutes"]).unwrap();
    let items = list["items"].as_array().unwrap().iter();
    let text = |object: &Value, key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
    items
        .map(|object| (format!("{}/{}", object["kind"], text(object, "name")), text(object, "resourceVersion")))
        .collect()
}

/// What our programs wrote in a namespace, each as verb and path.
fn writes(namespace: &TestNamespace) -> Vec<String> {
    let events = stage().cluster.audit().unwrap();
    let of_it = events.into_iter().filter(|event| {
        let about = event.object_ref.as_ref();
        about.is_some_and(|about| about.namespace == namespace.name())
            && ["create", "update", "patch", "delete"].contains(&event.verb.as_str())
    });
    of_it.map(|event| format!("{} {}", event.verb, event.request_uri)).collect()
}

#[test]
fn a_settled_session_costs_no_write_and_a_pod_takes_all_that_is_its_along() {
    let (settled, busy) = (sessions("settled"), sessions("busy"));
    create(&settled, [on("node-1", web("quiet"))]);
    settled.ready("quiet").unwrap();
    until("all was told", PATIENCE, || {
        let events = events(&stage().kubectl, settled.name(), "quiet")?;
        let awaited = ["Published", "Reachable"];
        ensure!(awaited.iter().all(|awaited| events.iter().any(|event| event == awaited)), "{events:?}");
        Ok(())
    })
    .unwrap();
    let (versions_before, writes_before) = (versions(&settled), writes(&settled));
    assert!(versions_before.len() == 4 && !writes_before.is_empty(), "{versions_before:?} {writes_before:?}");

    // The same agent brings another one up and down.
    create(&busy, [on("node-1", web("busy"))]);
    reachable(&busy, "busy");
    let pod = busy.json(["get", "pod", "busy"]).unwrap();
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "busy", "uid": pod["metadata"]["uid"]}]);
    for object in ["service/s-busy", "endpointslice/s-busy", "httproute/s-busy-3000"] {
        let object = busy.json(["get", object]).unwrap();
        assert_eq!(object["metadata"]["ownerReferences"], owner, "it neither controls nor holds up: {object}");
    }
    busy.run(["delete", "pod", "busy"]).unwrap();
    unpublished(&busy, "busy");

    assert_eq!(versions(&settled), versions_before);
    assert_eq!(writes(&settled), writes_before);
}
