//! What is judged where not all of it can be.

use serde_json::{Value, json};

use cofferdam_model::ports::Ports;

use super::*;
use crate::session::Phase;

fn ports(session: &Session) -> Ports {
    session.ports.clone().unwrap()
}

#[test]
fn without_a_layer_the_routes_of_ports_that_are_asked_for_stay_and_all_else_goes_on() {
    for (layer, route) in [(gateway(true), "HttpRoute s-2abc-3001"), (ingress(), "")] {
        let (server, _) = settled(&session("3000,3001"), &layer);
        let mut moved = session("3000");
        moved.address = Some([10, 244, 1, 9].into());
        let wanted = objects(&moved, &Layer::Off);
        let steps = told(&plan(&moved, &wanted, &without_layer(&moved, &ports(&moved), &server.objects)));
        let mut expected = vec!["apply Service s-2abc".to_owned(), "apply EndpointSlice s-2abc".to_owned()];
        if !route.is_empty() {
            expected.insert(0, format!("delete {route}"));
        }
        assert_eq!(steps, expected);
    }
    let (server, _) = settled(&session("3000"), &gateway(true));
    for gone in [Session { address: None, ..session("3000") }, session("")] {
        assert_eq!(without_layer(&gone, &ports(&gone), &server.objects), server.objects);
    }
}

#[test]
fn on_a_lost_node_nothing_is_published_and_what_leads_astray_or_is_wanted_no_more_goes() {
    let layer = gateway(true);
    let lost = |session: &Session, live: &[Live]| -> Plan {
        let (wanted, live) = while_lost(session, &objects(session, &layer), live);
        plan(session, &wanted, &live)
    };
    let (mut server, _) = settled(&session("3000,3001"), &layer);
    assert_eq!(lost(&session("3000,3001,3002"), &server.objects), Plan::default());
    assert_eq!(told(&lost(&session("3000"), &server.objects)), ["delete HttpRoute s-2abc-3001"]);
    for address in ["10.244.1.9", "fd00::9"] {
        let moved = Session { address: address.parse().ok(), ..session("3000,3001") };
        let steps = lost(&moved, &server.objects);
        let [Write { wanted: slice, replaces: None }] = &steps.writes[..] else { panic!("{steps:?}") };
        assert!(steps.deletes.is_empty() && steps.claim.is_none());
        assert_eq!((&slice.object["endpoints"], &slice.object["addressType"]), (&json!([]), &json!("IPv4")));
        for none in [json!([]), Value::Null] {
            let mut live = server.objects[1].object.clone();
            live["endpoints"] = none;
            assert_eq!(flaw(slice, &live), None, "an API server shows an empty list as either");
        }
        let another = Session { uid: "other".to_owned(), ..moved };
        assert_eq!(lost(&another, &server.objects), Plan::default(), "who has no claim has nothing to take away");
    }
    let ended = Session { phase: Phase::Finished, ..session("3000,3001") };
    assert_eq!(lost(&ended, &server.objects).deletes.len(), server.objects.len());
    // The elected agent has taken the endpoint away.
    server.objects[1].object["endpoints"] = Value::Null;
    assert_eq!(lost(&session("3000,3001"), &server.objects), Plan::default());
    server.objects.clear();
    assert_eq!(lost(&session("3000,3001"), &server.objects), Plan::default());
}
