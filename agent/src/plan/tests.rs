use cofferdam_kubernetes::outline;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::desired::testing::{gateway, ingress, objects, session};
use crate::layer::Layer;
use crate::session::Session;

mod held;
mod server;
mod stranger;

use server::{Outcome, Server};

const UID: &str = "pod-uid";

/// A pod of the session's id.
fn pod(uid: &str) -> Session {
    Session { uid: uid.to_owned(), ..session("") }
}

fn told(plan: &Plan) -> Vec<String> {
    let deletes = plan.deletes.iter().map(|delete| format!("delete {:?} {}", delete.kind, delete.name));
    let claim = plan.claim.iter().map(|wanted| format!("create {:?} {}", wanted.kind, wanted.name));
    let writes = plan.writes.iter().map(|Write { wanted, replaces }| {
        let verb = if replaces.is_some() { "replace" } else { "apply" };
        format!("{verb} {:?} {}", wanted.kind, wanted.name)
    });
    deletes.chain(claim).chain(writes).collect()
}

/// A server on which the session is settled.
fn settled(session: &Session, layer: &Layer) -> (Server, Vec<Wanted>) {
    let (mut server, wanted) = (Server::default(), objects(session, layer));
    assert_eq!(server.settle(&session.uid, &wanted), Outcome::Settled);
    (server, wanted)
}

#[test]
fn rte_09_the_claim_is_created_and_all_the_rest_applied() {
    let wanted = objects(&session("3000,3001"), &gateway(true));
    assert_eq!(
        told(&plan(&pod(UID), &wanted, &[])),
        [
            "create Service s-2abc",
            "apply EndpointSlice s-2abc",
            "apply HttpRoute s-2abc-3000",
            "apply HttpRoute s-2abc-3001",
        ]
    );
}

#[test]
fn what_the_api_server_stores_of_it_is_no_difference() {
    for layer in [gateway(true), gateway(false), ingress(), Layer::Off] {
        let (server, wanted) = settled(&session("3000,3001,53/udp,53/tcp"), &layer);
        assert_eq!(told(&plan(&pod(UID), &wanted, &server.objects)), [""; 0], "{layer:?}");
    }
}

#[test]
fn rte_15_a_port_that_goes_away_loses_its_route_first() {
    let (server, _) = settled(&session("3000,3001,4000/udp"), &gateway(true));
    let wanted = objects(&session("3000"), &gateway(true));
    assert_eq!(
        told(&plan(&pod(UID), &wanted, &server.objects)),
        ["delete HttpRoute s-2abc-3001", "apply Service s-2abc", "apply EndpointSlice s-2abc"]
    );
    let (server, _) = settled(&session("3000,3001"), &ingress());
    assert_eq!(
        told(&plan(&pod(UID), &wanted, &server.objects)),
        ["delete Ingress s-2abc", "apply Service s-2abc", "apply EndpointSlice s-2abc", "apply HttpRoute s-2abc-3000",]
    );
}

#[test]
fn rte_12_an_ingress_goes_with_the_last_tcp_port() {
    let (server, _) = settled(&session("3000,53/udp"), &ingress());
    let wanted = objects(&session("53/udp"), &ingress());
    assert_eq!(
        told(&plan(&pod(UID), &wanted, &server.objects)),
        ["delete Ingress s-2abc", "apply Service s-2abc", "apply EndpointSlice s-2abc"]
    );
}

#[test]
fn rte_19_what_is_published_no_more_loses_its_claim_last() {
    let (server, _) = settled(&session("3000,3001"), &gateway(true));
    let plan = plan(&pod(UID), &[], &server.objects);
    assert_eq!(
        told(&plan),
        [
            "delete HttpRoute s-2abc-3000",
            "delete HttpRoute s-2abc-3001",
            "delete EndpointSlice s-2abc",
            "delete Service s-2abc",
        ]
    );
    assert_eq!(plan.deletes[3].uid, server.objects[0].uid);
}

#[test]
fn another_pods_objects_are_left_alone_until_its_claim_is_gone() {
    let other = Session { uid: "other".to_owned(), ..session("3000,3001") };
    let (mut server, theirs) = settled(&other, &gateway(true));
    let ours = objects(&session("3000"), &gateway(true));
    assert_eq!(told(&plan(&pod(UID), &ours, &server.objects)), ["create Service s-2abc"]);
    assert_eq!(plan(&pod(UID), &[], &server.objects), Plan::default(), "what is not ours is not deleted");

    server.living.insert("other".to_owned());
    assert_eq!(server.settle(UID, &ours), Outcome::HostTaken("run-2abc".to_owned()));
    assert_eq!(plan(&pod("other"), &theirs, &server.objects), Plan::default());

    server.living.clear();
    assert_eq!(server.settle(UID, &ours), Outcome::Settled);
    assert!(server.objects.iter().all(|live| claim(&live.object, UID) == Claim::Ours), "{:?}", server.objects);
}

#[test]
fn only_the_service_of_the_sessions_name_is_its_claim() {
    let (mut server, wanted) = settled(&session("3000"), &gateway(true));
    // Somebody makes a Service with our labels for a pod of the same id that publishes nothing.
    let mut decoy = server.objects[0].clone();
    (decoy.name, decoy.uid) = ("decoy".to_owned(), "decoy-uid".to_owned());
    decoy.object["metadata"]["ownerReferences"][0]["uid"] = json!("other");
    let mut orphan = server.objects[2].clone();
    orphan.object["metadata"]["ownerReferences"] = Value::Null;
    (orphan.name, orphan.uid) = ("orphan".to_owned(), "orphan-uid".to_owned());
    server.objects.extend([decoy, orphan]);
    assert!(has_claim(&pod(UID), &server.objects) && !has_claim(&pod("other"), &server.objects));
    assert_eq!(told(&plan(&pod("other"), &[], &server.objects)), ["delete Service decoy"], "all that it owns");
    let nameless = Session { id: None, ..pod(UID) };
    assert!(!has_claim(&nameless, &server.objects));
    let steps = told(&plan(&pod(UID), &wanted, &server.objects));
    assert_eq!(steps, ["delete HttpRoute orphan", "delete Service decoy"], "who has the claim has all");
}

#[test]
fn what_is_being_deleted_is_waited_for_and_holds_up_nothing_else() {
    let (mut server, wanted) = settled(&session("3000"), &gateway(true));
    let leave = |server: &mut Server, index: usize| {
        let metadata = &mut server.objects[index].object["metadata"];
        metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        metadata["finalizers"] = json!(["example.com/keep"]);
    };
    assert_eq!(first_leaving(&wanted, &server.objects), None);
    leave(&mut server, 2);
    server.objects[2].object["spec"] = json!({});
    assert_eq!(plan(&pod(UID), &wanted, &server.objects), Plan::default());
    let keeps = vec!["example.com/keep".to_owned()];
    assert_eq!(first_leaving(&wanted, &server.objects), Some((&wanted[2], keeps.clone())));
    server.objects[1].object["endpoints"] = json!([]);
    assert_eq!(told(&plan(&pod(UID), &wanted, &server.objects)), ["apply EndpointSlice s-2abc"]);
    // The claim is ours until it is gone.
    leave(&mut server, 0);
    assert_eq!(told(&plan(&pod(UID), &wanted, &server.objects)), ["apply EndpointSlice s-2abc"]);
    assert_eq!(first_leaving(&wanted, &server.objects), Some((&wanted[0], keeps)));
    let theirs = objects(&Session { uid: "other".to_owned(), ..session("3000") }, &gateway(true));
    assert_eq!(
        plan(&pod("other"), &theirs, &server.objects),
        Plan::default(),
        "another's claim that goes is waited for"
    );
    assert!(first_leaving(&theirs, &server.objects).is_some());
}

#[test]
fn what_is_not_wanted_and_does_not_go_is_in_nobodys_way() {
    let (mut server, _) = settled(&session("3000,3001"), &gateway(true));
    server.objects[3].object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let wanted = objects(&session("3000"), &gateway(true));
    assert_eq!(
        told(&plan(&pod(UID), &wanted, &server.objects)),
        ["apply Service s-2abc", "apply EndpointSlice s-2abc"]
    );
    assert_eq!(first_leaving(&wanted, &server.objects), None);
}

#[test]
fn what_an_apply_cannot_take_away_is_named() {
    let (mut server, wanted) = settled(&session("3000"), &gateway(true));
    let ports = &mut server.objects[0].object["spec"]["ports"];
    *ports = json!([ports[0], { "name": "x", "port": 22, "targetPort": 22, "protocol": "TCP" }]);
    assert_eq!(told(&plan(&pod(UID), &wanted, &server.objects)), ["apply Service s-2abc"]);
    assert_eq!(flaw(&wanted[0], &server.objects[0].object), Some(Flaw::Field("spec.ports".to_owned())));
    assert_eq!(flaw(&wanted[1], &server.objects[1].object), None);
}

#[test]
fn annotations_of_others_on_a_route_are_foreign_but_for_notes() {
    for (layer, kind) in [(gateway(true), Kind::HttpRoute), (ingress(), Kind::Ingress)] {
        let (server, wanted) = settled(&session("3000"), &layer);
        let wanted = wanted.iter().find(|wanted| wanted.kind == kind).unwrap();
        let live = server.objects.iter().find(|live| live.kind == kind).unwrap();
        let with = |key: &str, value: &str| {
            let mut object = live.object.clone();
            object["metadata"]["annotations"][key] = json!(value);
            flaw(wanted, &object)
        };
        for (key, value) in [
            ("nginx.ingress.kubernetes.io/configuration-snippet", "return 302 https://example.test;"),
            ("kubernetes.io/ingress.class", "other"),
            ("external-dns.alpha.kubernetes.io/target", "192.0.2.1"),
            ("konghq.com/plugins", ""),
        ] {
            assert_eq!(with(key, value), Some(Flaw::Field(format!("metadata.annotations.{key}"))));
        }
        assert_eq!(with("ingress.kubernetes.io/url-map", "k8s-um"), None);
        assert_eq!(with("policies.kyverno.io/last-applied-patches", "added /metadata/labels/cost"), None);
    }
    let (mut server, wanted) = settled(&session("3000"), &gateway(true));
    for live in &mut server.objects {
        live.object["metadata"]["labels"]["example.com/cost"] = json!("1");
    }
    server.objects[0].object["metadata"]["annotations"]["cloud.google.com/neg"] = json!("{}");
    assert_eq!(
        plan(&pod(UID), &wanted, &server.objects),
        Plan::default(),
        "labels order nothing, and a Service is no route"
    );
}

#[test]
fn what_can_never_be_applied_is_made_anew_at_once() {
    let (server, _) = settled(&session("3000"), &gateway(true));
    let mut moved = session("3000");
    moved.address = "fd00::9".parse().ok();
    let wanted = objects(&moved, &gateway(true));
    assert_eq!(told(&plan(&pod(UID), &wanted, &server.objects)), ["replace EndpointSlice s-2abc"]);

    let (mut server, wanted) = settled(&session("3000"), &gateway(true));
    server.objects[0].object["spec"]["clusterIP"] = json!("10.96.0.9");
    let owners = &mut server.objects[2].object["metadata"]["ownerReferences"];
    *owners = json!([owners[0], { "apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "c" }]);
    assert_eq!(
        told(&plan(&pod(UID), &wanted, &server.objects)),
        ["replace Service s-2abc", "replace HttpRoute s-2abc-3000"]
    );
}

#[test]
fn whose_a_service_is() {
    let (server, _) = settled(&session("3000"), &gateway(true));
    let ours = &server.objects[0];
    let service = || ours.uid.clone();
    assert_eq!(claim(&ours.object, UID), Claim::Ours);
    let of = Claim::Of { name: "run-2abc".to_owned(), uid: UID.to_owned(), service: service() };
    assert_eq!(claim(&ours.object, "other"), of);

    let mut orphan = ours.object.clone();
    orphan["metadata"]["ownerReferences"] = Value::Null;
    assert_eq!(claim(&orphan, UID), Claim::Nobody { service: service() });
    for label in [Value::Null, json!("Helm")] {
        let (mut foreign, mut stripped) = (orphan.clone(), ours.object.clone());
        foreign["metadata"]["labels"][keys::MANAGED_BY] = label.clone();
        assert_eq!(claim(&foreign, UID), Claim::Foreign);
        stripped["metadata"]["labels"][keys::MANAGED_BY] = label;
        assert_eq!(claim(&stripped, UID), Claim::Ours, "its owner counts, whatever a stranger did to its label");
        assert_eq!(claim(&stripped, "other"), Claim::Foreign);
    }
    assert_eq!(claim(&json!({}), UID), Claim::Foreign);
}

fn a_layer() -> impl Strategy<Value = Layer> {
    prop::sample::select(vec![gateway(true), gateway(false), ingress(), Layer::Off])
}

fn a_session() -> impl Strategy<Value = Session> {
    let port = prop::sample::select(vec!["3000", "3001", "53", "53/udp", "4000/udp"]);
    let address = prop::sample::select(vec!["10.244.1.2", "10.244.1.3", "fd00::9"]);
    (prop::collection::vec(port, 0..5), address)
        .prop_map(|(ports, address)| Session { address: address.parse().ok(), ..session(&ports.join(",")) })
}

proptest! {
    #[test]
    fn desired_is_deterministic_and_settles(session in a_session(), layer in a_layer()) {
        let (server, wanted) = settled(&session, &layer);
        prop_assert_eq!(&objects(&session, &layer), &wanted);
        prop_assert_eq!(plan(&pod(UID), &wanted, &server.objects), Plan::default());
        prop_assert_eq!(server.objects.len(), wanted.len());
    }

    #[test]
    fn rte_14_from_any_state_a_plan_leads_to_any_other(
        before in a_session(), first in a_layer(), after in a_session(), second in a_layer(), is_same_pod in any::<bool>(),
    ) {
        let before = Session { uid: if is_same_pod { UID } else { "gone" }.to_owned(), ..before };
        let (mut server, _) = settled(&before, &first);
        let wanted = objects(&after, &second);
        prop_assert_eq!(server.settle(UID, &wanted), Outcome::Settled);
        let left = server.objects.iter().filter(|live| claim(&live.object, UID) == Claim::Ours).count();
        prop_assert_eq!(left, wanted.len());
    }

    #[test]
    fn whatever_a_stranger_changes_comes_back(session in a_session(), layer in a_layer(), edit in stranger::an_edit()) {
        let (mut server, wanted) = settled(&session, &layer);
        let pristine = server.shown();
        if let Some(edited) = stranger::edit(&mut server, &wanted, &edit) {
            prop_assert_ne!(plan(&pod(UID), &wanted, &server.objects), Plan::default(), "{} went unnoticed", edited);
            prop_assert_eq!(server.settle(UID, &wanted), Outcome::Settled, "{}", edited);
            prop_assert_eq!(server.shown(), pristine, "{}", edited);
        }
    }
}

#[test]
fn what_somebody_made_too_large_to_be_kept_is_made_anew() {
    for layer in [gateway(true), ingress()] {
        let (mut server, wanted) = settled(&session("3000"), &layer);
        for at in 0..server.objects.len() {
            let object = server.objects[at].object.clone();
            server.objects[at].object = outline(&object);
            let Live { kind, name, .. } = &server.objects[at];
            assert_eq!(told(&plan(&session("3000"), &wanted, &server.objects)), [format!("replace {kind:?} {name}")]);
            server.objects[at].object = object;
        }
    }
}
