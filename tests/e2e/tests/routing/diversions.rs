//! What would lead a session's visitors elsewhere is refused, by the API server itself and whoever asks.

use anyhow::ensure;
use cofferdam_e2e::kubectl::Answer;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::routing::DOMAIN;
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

use crate::shared::{create, reachable, sessions, stage, web};

/// Asks whether the object may be made, without making it.
fn asked_for(namespace: &TestNamespace, object: &Value) -> Answer {
    namespace.ask(["create", "--filename=-", "--dry-run=server"], &object.to_string()).unwrap()
}

/// Asks whether an object may be changed so, without changing it.
fn edited(namespace: &TestNamespace, object: &str, change: &Value) -> Answer {
    let change = change.to_string();
    namespace.ask(["patch", object, "--type=merge", "--patch", &change, "--dry-run=server"], "").unwrap()
}

/// Sees that nobody minds.
fn passes(what: &Value, answer: &Answer) {
    assert!(answer.success, "{what}: {}", answer.stderr);
}

/// Sees that it was this policy of ours that refused, in words that say what to do.
fn refused(what: &Value, policy: &str, hint: &str, answer: &Answer) {
    let refusal = format!("ValidatingAdmissionPolicy 'cofferdam-{policy}'");
    let said = &answer.stderr;
    assert!(!answer.success && said.contains(&refusal) && said.contains(hint), "{what}: {answer:?}");
}

/// Something of every kind that leads a host somewhere, for this one.
fn leading(host: &str) -> Vec<Value> {
    let object = |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "other"}, "spec": spec});
    let gateway = "gateway.networking.k8s.io/v1";
    let parent = json!({"name": "sessions", "namespace": "gateway"});
    let listeners = json!([{"name": "http", "protocol": "HTTP", "port": 8080, "hostname": host}]);
    let backend = json!([{"name": "other", "port": 80}]);
    // A method outranks the header by which an agent probes.
    let rules = json!([{"matches": [{"method": "GET"}], "backendRefs": backend}]);
    let paths =
        json!([{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "other", "port": {"number": 80}}}}]);
    vec![
        object(gateway, "HTTPRoute", json!({"parentRefs": [parent], "hostnames": [host], "rules": rules})),
        object(
            gateway,
            "HTTPRoute",
            json!({"parentRefs": [parent], "hostnames": [format!("web.{DOMAIN}"), host], "rules": rules}),
        ),
        object(
            gateway,
            "GRPCRoute",
            json!({"parentRefs": [parent], "hostnames": [host], "rules": [{"backendRefs": backend}]}),
        ),
        object(
            gateway,
            "TLSRoute",
            json!({"parentRefs": [parent], "hostnames": [host], "rules": [{"backendRefs": backend}]}),
        ),
        object(gateway, "Gateway", json!({"gatewayClassName": "other", "listeners": listeners})),
        object(gateway, "ListenerSet", json!({"parentRef": parent, "listeners": listeners})),
        object("networking.k8s.io/v1", "Ingress", json!({"rules": [{"host": host, "http": {"paths": paths}}]})),
    ]
}

#[test]
fn nobody_but_an_agent_leads_a_sessions_host_anywhere() {
    let (home, elsewhere) = (sessions("diverted"), stage().namespace("diverting", Sessions::None));
    create(&home, [web("mine")]);
    let host = reachable(&home, "mine");
    for namespace in [&home, &elsewhere] {
        for host in [&host, &format!("8080-any.{DOMAIN}"), &format!("1-any--abcde.{DOMAIN}")] {
            for object in leading(host) {
                refused(&object, "hosts", "name another", &asked_for(namespace, &object));
            }
        }
        for free in ["*", "web", "3000-any.a", "a.3000-any", "*.3000-any", "0-any", "3000"]
            .map(|label| format!("{label}.{DOMAIN}"))
        {
            for object in leading(&free) {
                passes(&object, &asked_for(namespace, &object));
            }
        }
        for object in leading("3000-any.example.test") {
            passes(&object, &asked_for(namespace, &object));
        }
    }
    let route = "httproute/s-mine-3000";
    for (change, is_refused) in [
        // What has the host keeps it, whoever writes: a controller that adds a finalizer is nobody's enemy.
        (json!({"metadata": {"finalizers": ["example.test/any"]}}), false),
        (json!({"spec": {"hostnames": [host, format!("web.{DOMAIN}")]}}), false),
        (json!({"spec": {"hostnames": [format!("web.{DOMAIN}")]}}), false),
        (json!({"spec": {"hostnames": [host, format!("3001-any.{DOMAIN}")]}}), true),
    ] {
        let answer = edited(&home, route, &change);
        if is_refused {
            refused(&change, "hosts", "name another", &answer);
        } else {
            passes(&change, &answer);
        }
    }
}

fn slice(service: &str) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "other", "labels": {"kubernetes.io/service-name": service}},
        "endpoints": [{"addresses": ["10.9.9.9"]}], "ports": [{"name": "tcp-3000", "port": 3000}]})
}

fn endpoints(service: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": service},
        "subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"name": "tcp-3000", "port": 3000}]}]})
}

#[test]
fn nobody_but_an_agent_says_what_is_behind_a_session() {
    let (home, elsewhere) = (sessions("endpoints"), stage().namespace("endpoints-elsewhere", Sessions::None));
    create(&home, [web("mine")]);
    reachable(&home, "mine");
    for object in [slice("s-mine"), slice("s-next"), endpoints("s-mine"), endpoints("s-next")] {
        refused(&object, "endpoints", "give the Service another name", &asked_for(&home, &object));
    }
    for object in [slice("other"), endpoints("other")] {
        passes(&object, &asked_for(&home, &object));
    }
    for object in [slice("s-other"), endpoints("s-other")] {
        // Such a name is not ours alone.
        passes(&object, &asked_for(&elsewhere, &object));
    }
    home.create_object(&slice("other").to_string()).unwrap();
    let label = |service: &str| json!({"metadata": {"labels": {"kubernetes.io/service-name": service}}});
    let ours = json!({"endpoints": [{"addresses": ["10.9.9.9"]}]});
    for (slice, change, is_refused) in [
        ("endpointslice/other", label("s-mine"), true),
        ("endpointslice/other", label("another"), false),
        // Ours may be edited, since it is put back.
        ("endpointslice/s-mine", ours, false),
        ("endpointslice/s-mine", label("another"), false),
    ] {
        let answer = edited(&home, slice, &change);
        if is_refused {
            refused(&change, "endpoints", "give the Service another name", &answer);
        } else {
            passes(&change, &answer);
        }
    }

    // An owner says whose a Service of that name is.
    create(&home, [web("another")]);
    let another = home.json(["get", "pod", "another"]).unwrap();
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "another", "uid": another["metadata"]["uid"]}]);
    let service = |owners: &Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s-next", "ownerReferences": owners},
            "spec": {"clusterIP": "None", "ports": [{"port": 3000}]}})
    };
    refused(&owner, "endpoints", "leave the owners", &asked_for(&home, &service(&owner)));
    passes(&owner, &asked_for(&home, &service(&json!([]))));
    passes(&owner, &asked_for(&elsewhere, &service(&owner)));
    for (owners, is_refused) in [(owner, true), (json!(null), false)] {
        let change = json!({"metadata": {"ownerReferences": owners}});
        let answer = edited(&home, "service/s-mine", &change);
        if is_refused {
            refused(&change, "endpoints", "leave the owners", &answer);
        } else {
            passes(&change, &answer);
        }
    }

    // Kubernetes goes on writing endpoints of what selects its pods, whatever it is called.
    home.run(["create", "service", "clusterip", "s-own", "--tcp=80:3000"]).unwrap();
    until("the Service s-own has its endpoints", PATIENCE, || {
        let slices = home.json(["get", "endpointslices", "--selector=kubernetes.io/service-name=s-own"])?;
        ensure!(slices["items"].as_array().is_some_and(|slices| !slices.is_empty()), "{slices}");
        Ok(())
    })
    .unwrap();
}
