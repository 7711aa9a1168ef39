use proptest::{collection::vec, prelude::*};
use serde_json::json;

use super::*;

fn pod(spec: &Value) -> String {
    Ports::of(&json!({ "spec": spec })).unwrap().to_string()
}

#[test]
fn the_annotation_is_read_as_people_write_it() {
    for (text, ports) in [
        ("3000/tcp,4000/udp", "3000/tcp,4000/udp"),
        ("3000", "3000/tcp"),
        (" 4000/udp , 3000 ", "3000/tcp,4000/udp"),
        ("3000 / TCP,4000/Udp,", "3000/tcp,4000/udp"),
        ("65535,1,1/tcp", "1/tcp,65535/tcp"),
        ("", ""),
        (" , ", ""),
    ] {
        assert_eq!(Ports::parse(text).unwrap().to_string(), ports, "{text}");
    }
}

#[test]
fn what_is_no_port_is_named_by_its_place() {
    for (text, part) in [
        ("0", 1),
        ("65536", 1),
        ("3000,http", 2),
        ("3000,,-1", 3),
        ("+1", 1),
        ("3000-3010", 1),
        ("/tcp", 1),
        ("1.5", 1),
        ("3000;4000", 1),
        ("３", 1),
        ("\u{0}", 1),
    ] {
        assert_eq!(Ports::parse(text), Err(PortsError::NotAPort { part }), "{text}");
    }
    for (text, part) in [("3000/sctp", 1), ("1,2/", 2), ("80/tcp/udp", 1), ("80/http", 1)] {
        assert_eq!(Ports::parse(text), Err(PortsError::NotPublished { part }), "{text}");
    }
}

#[test]
fn a_message_says_what_to_write_and_nothing_of_the_pod() {
    for (text, message) in [
        ("3000,s3cret", "part 2 of the list is no port; write numbers from 1 to 65535, such as `3000/tcp,4000/udp`"),
        (
            "3000/s3cret",
            "part 1 of the list is of a protocol that is not published; write tcp or udp, such as `3000/tcp`",
        ),
    ] {
        assert_eq!(Ports::parse(text).unwrap_err().to_string(), message);
    }
    let message = "names more than 32 ports; list those to publish in the annotation cofferdam.dev/ports";
    assert_eq!(PortsError::TooMany.to_string(), message);
}

#[test]
fn the_annotation_overrides_what_containers_declare() {
    let mut pod = json!({
        "metadata": { "annotations": { "cofferdam.dev/ports": "3000" } },
        "spec": { "containers": [{ "ports": [{ "containerPort": 8080 }] }] },
    });
    assert_eq!(Ports::of(&pod).unwrap().to_string(), "3000/tcp");
    pod["metadata"]["annotations"]["cofferdam.dev/ports"] = json!("");
    assert!(Ports::of(&pod).unwrap().is_empty());
    pod["metadata"]["annotations"]["cofferdam.dev/ports"] = json!("all");
    assert_eq!(Ports::of(&pod), Err(PortsError::NotAPort { part: 1 }));
    pod["metadata"]["annotations"] = json!(null);
    assert_eq!(Ports::of(&pod).unwrap().to_string(), "8080/tcp");
}

#[test]
fn native_sidecars_declare_ports_and_other_init_containers_do_not() {
    let ports = pod(&json!({
        "containers": [{ "ports": [{ "containerPort": 80 }] }],
        "initContainers": [
            { "ports": [{ "containerPort": 81 }] },
            { "restartPolicy": "Always", "ports": [{ "containerPort": 82 }] },
        ],
        "ephemeralContainers": [{ "ports": [{ "containerPort": 83 }] }],
    }));
    assert_eq!(ports, "80/tcp,82/tcp");
}

#[test]
fn b123_a_number_is_a_port_of_each_protocol_that_names_it() {
    let declared = json!({ "containers": [{ "ports": [
        { "containerPort": 53, "protocol": "UDP" },
        { "containerPort": 80, "protocol": "UDP" },
        { "containerPort": 53, "protocol": "TCP" },
        { "containerPort": 99 },
    ] }] });
    assert_eq!(pod(&declared), "53/tcp,99/tcp,53/udp,80/udp");
    let ports = Ports::of(&json!({ "spec": declared })).unwrap();
    assert_eq!(ports.tcp().collect::<Vec<_>>(), [53, 99]);
    assert_eq!(ports.iter().map(|port| port.number).collect::<Vec<_>>(), [53, 99, 53, 80]);
}

#[test]
fn b125_a_port_that_is_declared_twice_is_one() {
    let ports = pod(&json!({ "containers": [
        { "ports": [{ "name": "web", "containerPort": 8080 }, { "name": "metrics", "containerPort": 8080 }] },
        { "ports": [{ "containerPort": 8080, "hostPort": 1 }] },
    ] }));
    assert_eq!(ports, "8080/tcp");
    assert_eq!(Ports::parse("8080,8080/tcp,8080/TCP").unwrap().to_string(), "8080/tcp");
}

#[test]
fn what_is_declared_and_no_port_of_ours_is_left_out() {
    let ports = pod(&json!({ "containers": [
        { "ports": [
            { "containerPort": 80, "protocol": "" },
            { "containerPort": 81, "protocol": "SCTP" },
            { "containerPort": 0 },
            { "containerPort": 65536 },
            { "containerPort": -1 },
            { "containerPort": "82" },
            { "name": "none" },
            7,
        ] },
        { "ports": null },
        { "ports": "83" },
        null,
    ] }));
    assert_eq!(ports, "80/tcp");
    for empty in [json!(null), json!([]), json!({ "containers": {} }), json!("x")] {
        assert_eq!(pod(&empty), "");
    }
}

#[test]
fn there_are_at_most_32_each_counted_once() {
    let declared = |many: usize| {
        let ports: Vec<Value> = (1..=many).map(|number| json!({ "containerPort": number })).collect();
        Ports::of(&json!({ "spec": { "containers": [{ "ports": ports }, { "ports": ports }] } }))
    };
    assert_eq!(declared(32).unwrap().iter().count(), 32);
    assert_eq!(declared(33), Err(PortsError::TooMany));
    let listed = |many: u16| (1..=many).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    assert_eq!(Ports::parse(&format!("{0},{0}", listed(32))).unwrap().iter().count(), 32);
    assert_eq!(Ports::parse(&listed(33)), Err(PortsError::TooMany));
}

/// Any ports, in any order and some of them twice.
fn ports() -> impl Strategy<Value = Vec<Port>> {
    let protocol = prop_oneof![Just(Protocol::Tcp), Just(Protocol::Udp)];
    // Few numbers, so that some meet.
    vec((prop_oneof![1_u16..=9, 1_u16..], protocol).prop_map(|(number, protocol)| Port { number, protocol }), 0..=MOST)
}

proptest! {
    #[test]
    fn what_is_displayed_reads_as_the_same_ports_whatever_the_order(listed in ports()) {
        let text: Vec<String> = listed.iter().map(Port::to_string).collect();
        let read = Ports::parse(&text.join(" , ")).unwrap();
        prop_assert_eq!(&Ports::parse(&read.to_string()).unwrap(), &read);
        prop_assert!(listed.iter().all(|port| read.iter().any(|other| other == *port)));
        let order: Vec<(bool, u16)> = read.iter().map(|port| (port.protocol == Protocol::Udp, port.number)).collect();
        prop_assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{}", read);
    }

    #[test]
    fn no_text_and_no_pod_is_too_strange(text in any::<String>(), list in "[0-9a-z/, +-]{0,40}") {
        for text in [text, list] {
            if let Ok(ports) = Ports::parse(&text) {
                prop_assert_eq!(Ports::parse(&ports.to_string()), Ok(ports));
            }
        }
    }
}

#[test]
fn ports_that_are_among_others_are_the_same_in_number_and_protocol() {
    let ports = |text: &str| Ports::parse(text).unwrap();
    assert_eq!(ports("3000,53/udp,53").among(&ports("53,3000,1")), ports("3000,53"));
    assert_eq!(ports("3000").among(&Ports::default()), Ports::default());
}
