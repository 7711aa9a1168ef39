use cofferdam_model::policy::ParentGateway;
use cofferdam_model::session::SessionId;
use serde_json::{Value, json};

use super::testing::{NODE, gateway, ingress, objects, proof, routing, session};
use super::*;
use crate::session::Phase;

fn kinds(wanted: &[Wanted]) -> Vec<(Kind, &str)> {
    wanted.iter().map(|wanted| (wanted.kind, wanted.name.as_str())).collect()
}

fn metadata(name: &str) -> Value {
    json!({
        "name": name,
        "namespace": "sess",
        "labels": {
            "cofferdam.dev/session": "2abc",
            "app.kubernetes.io/managed-by": "cofferdam-agent",
            "cofferdam.dev/node-hash": "35971be6e9bb",
        },
        "annotations": { "cofferdam.dev/node": "node-1" },
        "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "run-2abc", "uid": "pod-uid" }],
    })
}

#[test]
fn rte_09_rte_13_a_session_behind_a_gateway_has_a_service_a_slice_and_a_route_for_each_tcp_port() {
    let wanted = objects(&session("4000/udp,3000,3001"), &gateway(true));
    assert_eq!(
        kinds(&wanted),
        [
            (Kind::Service, "s-2abc"),
            (Kind::EndpointSlice, "s-2abc"),
            (Kind::HttpRoute, "s-2abc-3000"),
            (Kind::HttpRoute, "s-2abc-3001"),
        ]
    );
    assert_eq!(
        wanted[0].object,
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata("s-2abc"),
            "spec": {
                "type": "ClusterIP",
                "clusterIP": "None",
                "sessionAffinity": "None",
                "ports": [
                    { "name": "tcp-3000", "port": 3000, "targetPort": 3000, "protocol": "TCP" },
                    { "name": "tcp-3001", "port": 3001, "targetPort": 3001, "protocol": "TCP" },
                    { "name": "udp-4000", "port": 4000, "targetPort": 4000, "protocol": "UDP" },
                ],
            },
        })
    );
    let mut slice_metadata = metadata("s-2abc");
    slice_metadata["labels"]["kubernetes.io/service-name"] = json!("s-2abc");
    slice_metadata["labels"]["endpointslice.kubernetes.io/managed-by"] = json!("cofferdam-agent");
    assert_eq!(
        wanted[1].object,
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": slice_metadata,
            "addressType": "IPv4",
            "ports": [
                { "name": "tcp-3000", "port": 3000, "protocol": "TCP" },
                { "name": "tcp-3001", "port": 3001, "protocol": "TCP" },
                { "name": "udp-4000", "port": 4000, "protocol": "UDP" },
            ],
            "endpoints": [{
                "addresses": ["10.244.1.2"],
                "conditions": { "ready": true, "serving": true, "terminating": false },
                "nodeName": "node-1",
                "targetRef": { "kind": "Pod", "namespace": "sess", "name": "run-2abc", "uid": "pod-uid" },
            }],
        })
    );
    assert_eq!(
        wanted[2].object,
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": metadata("s-2abc-3000"),
            "spec": {
                "parentRefs": [
                    { "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "sessions", "namespace": "gateway" },
                ],
                "hostnames": ["3000-2abc.sessions.example.test"],
                "rules": [
                    {
                        "matches": [{
                            "path": { "type": "PathPrefix", "value": "/" },
                            "headers": [{ "type": "Exact", "name": "x-cofferdam-probe", "value": "probe-3000" }],
                        }],
                        "filters": [
                            {
                                "type": "RequestHeaderModifier",
                                "requestHeaderModifier": { "remove": ["x-cofferdam-probe"] },
                            },
                            {
                                "type": "ResponseHeaderModifier",
                                "responseHeaderModifier": {
                                    "set": [{ "name": "x-cofferdam-proof", "value": "proof-3000" }],
                                },
                            },
                        ],
                        "backendRefs": [
                            { "group": "", "kind": "Service", "name": "s-2abc", "port": 3000, "weight": 1 },
                        ],
                    },
                    {
                        "matches": [{ "path": { "type": "PathPrefix", "value": "/" } }],
                        "backendRefs": [
                            { "group": "", "kind": "Service", "name": "s-2abc", "port": 3000, "weight": 1 },
                        ],
                    },
                ],
            },
        })
    );
}

#[test]
fn a_proof_is_read_back_from_the_route_that_holds_it_if_it_is_one_of_ours() {
    let (session, ports) = (session("3000"), Ports::parse("3000").unwrap());
    let route_with = |proof: &Proof| {
        desired(&session, &ports, &gateway(true), &routing(), NODE, &|_| proof.clone()).remove(2).object
    };
    let ours = Proof { probe: "0123456789abcdef".repeat(2), proof: "fedcba9876543210".repeat(2) };
    assert_eq!(proof_of(&route_with(&ours)), Some(ours.clone()));
    for strange in ["x", "0123", &"x".repeat(32)] {
        assert_eq!(proof_of(&route_with(&Proof { probe: strange.to_owned(), ..ours.clone() })), None);
        assert_eq!(proof_of(&route_with(&Proof { proof: strange.to_owned(), ..ours.clone() })), None);
    }
    assert_eq!(proof_of(&objects(&session, &gateway(false))[2].object), None);
    assert_eq!(proof_of(&json!({"spec": {}})), None);
}

#[test]
fn without_a_proof_a_route_has_one_rule_and_no_secret_is_asked_for() {
    let ask = |port: u16| -> Proof { panic!("asked for the proof of {port}") };
    let session = session("3000");
    let ports = session.ports.clone().unwrap();
    let wanted = desired(&session, &ports, &gateway(false), &routing(), NODE, &ask);
    let rules = wanted[2].object["spec"]["rules"].as_array().map(Vec::len);
    assert_eq!(rules, Some(1));
    assert_eq!(wanted[2].object["spec"]["rules"][0].get("filters"), None);
}

#[test]
fn rte_13_a_listener_of_the_gateway_may_be_named() {
    let parent =
        ParentGateway { name: "own".to_owned(), namespace: "edge".to_owned(), listener: Some("https".to_owned()) };
    let layer = Layer::Gateway { version: "v1beta1".to_owned(), parent, proof: false };
    let wanted = objects(&session("3000"), &layer);
    assert_eq!(wanted[2].object["apiVersion"], "gateway.networking.k8s.io/v1beta1");
    assert_eq!(
        wanted[2].object["spec"]["parentRefs"],
        json!([{
            "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "own", "namespace": "edge",
            "sectionName": "https",
        }])
    );
}

#[test]
fn rte_12_a_session_behind_an_ingress_has_one_with_a_rule_for_each_tcp_port() {
    let layer = Layer::Ingress { class: "contour".to_owned(), tls_secret: Some("tls".to_owned()) };
    let wanted = objects(&session("3000,3001,53/udp"), &layer);
    assert_eq!(kinds(&wanted), [(Kind::Service, "s-2abc"), (Kind::EndpointSlice, "s-2abc"), (Kind::Ingress, "s-2abc")]);
    let rule = |port: u16| {
        json!({
            "host": format!("{port}-2abc.sessions.example.test"),
            "http": { "paths": [{
                "path": "/", "pathType": "Prefix",
                "backend": { "service": { "name": "s-2abc", "port": { "number": port } } },
            }] },
        })
    };
    assert_eq!(
        wanted[2].object,
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": metadata("s-2abc"),
            "spec": {
                "ingressClassName": "contour",
                "rules": [rule(3000), rule(3001)],
                "tls": [{
                    "hosts": ["3000-2abc.sessions.example.test", "3001-2abc.sessions.example.test"],
                    "secretName": "tls",
                }],
            },
        })
    );
    let plain = objects(&session("3000"), &ingress());
    assert_eq!(plain[2].object["spec"].get("tls"), None);
}

#[test]
fn rte_11_only_tcp_is_routed() {
    for layer in [gateway(true), ingress(), Layer::Off] {
        let wanted = objects(&session("4000/udp"), &layer);
        assert_eq!(kinds(&wanted), [(Kind::Service, "s-2abc"), (Kind::EndpointSlice, "s-2abc")], "{layer:?}");
    }
}

#[test]
fn b123_one_number_of_both_protocols_has_two_names_and_tcp_comes_first() {
    let wanted = objects(&session("53/udp,53/tcp"), &gateway(false));
    let ports = wanted[0].object["spec"]["ports"].as_array().cloned().unwrap_or_default();
    let names: Vec<_> = ports.iter().map(|port| port["name"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["tcp-53", "udp-53"]);
    assert_eq!(kinds(&wanted)[2..], [(Kind::HttpRoute, "s-2abc-53")]);
}

#[test]
fn b151_a_pod_with_an_ipv6_address_gets_a_slice_of_that_type() {
    let mut session = session("3000");
    session.address = "fd00:10:244::9".parse().ok();
    let slice = &objects(&session, &gateway(false))[1].object;
    assert_eq!(slice["addressType"], "IPv6");
    assert_eq!(slice["endpoints"][0]["addresses"], json!(["fd00:10:244::9"]));
}

#[test]
fn nothing_of_a_session_that_is_not_published() {
    let finding = cofferdam_model::Reason { rule: "host", field: "spec.hostPID".to_owned(), message: "no".to_owned() };
    for (why, session) in [
        ("slipped through", Session { findings: vec![finding], ..session("3000") }),
        ("no id", Session { id: None, ..session("3000") }),
        ("no ports", session("")),
        ("ports that cannot be read", session("3000/sctp")),
        ("no address", Session { address: None, ..session("3000") }),
        ("released", Session { phase: Phase::Released, ..session("3000") }),
        ("finished", Session { phase: Phase::Finished, ..session("3000") }),
        ("b145: being deleted", Session { phase: Phase::Leaving, ..session("3000") }),
    ] {
        for layer in [gateway(true), ingress(), Layer::Off] {
            assert_eq!(objects(&session, &layer), [], "{why}");
        }
    }
    let starting = Session { phase: Phase::Starting, ..session("3000") };
    assert_eq!(objects(&starting, &gateway(true)).len(), 3, "published before anything is ready");
}

#[test]
fn b115_b119_names_and_labels_of_the_longest_session_fit() {
    let mut longest = session("65535");
    longest.id = SessionId::parse(&"7".repeat(50)).ok();
    longest.namespace = "n".repeat(63);
    let node = format!("{}.example.com", "node-".repeat(40));
    for layer in [gateway(true), ingress()] {
        for wanted in desired(&longest, longest.ports.as_ref().unwrap(), &layer, &routing(), &node, &proof) {
            assert!(wanted.name.len() <= 63 && wanted.name.starts_with(|c: char| c.is_ascii_lowercase()));
            let labels = wanted.object["metadata"]["labels"].as_object().cloned().unwrap_or_default();
            assert!(labels.values().all(|value| value.as_str().is_some_and(|value| value.len() <= 63)), "{labels:?}");
            assert_eq!(wanted.object["metadata"]["annotations"]["cofferdam.dev/node"], json!(node));
        }
    }
    let route = &objects(&longest, &gateway(false))[2].object["spec"]["hostnames"][0];
    let label = route.as_str().and_then(|host| host.split('.').next()).unwrap_or_default();
    assert_eq!(label.len(), 63, "{route}");
}

#[test]
fn d19_the_owner_is_no_controller_and_blocks_no_deletion() {
    for wanted in objects(&session("3000"), &gateway(true)) {
        let owners = &wanted.object["metadata"]["ownerReferences"];
        assert_eq!(*owners, json!([{ "apiVersion": "v1", "kind": "Pod", "name": "run-2abc", "uid": "pod-uid" }]));
    }
}
