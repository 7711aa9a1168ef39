use serde_json::json;

use super::RULE;
use crate::{
    policy::{Policy, Profile, Routing, RoutingMode},
    request::Template,
    rules::Occasion,
    testing::{Applied, apply_under, pod},
};

fn apply(spec: serde_json::Value, mode: RoutingMode, profile: &Profile, occasion: Occasion) -> Applied {
    let routing = Routing { base_domain: Some("example.com".to_owned()), mode, ..Routing::default() };
    apply_under(&[RULE], &pod(spec), profile, &Policy::built_in().with_routing(routing), occasion).unwrap()
}

#[test]
fn d23_a_pod_waits_for_its_address_once_and_beside_what_it_waits_for_already() {
    let (mesh, ours) =
        (json!({ "conditionType": "m.io/x" }), json!({ "conditionType": "cofferdam.dev/RouteReachable" }));
    for (before, after) in [
        (json!(null), json!([ours])),
        (json!([]), json!([ours])),
        (json!([mesh]), json!([mesh, ours])),
        (json!([ours, mesh]), json!([ours, mesh])),
    ] {
        let spec = json!({ "containers": [], "readinessGates": before });
        let applied = apply(spec, RoutingMode::Auto, &Profile::default(), Occasion::Creation);
        assert_eq!(applied.spec("/readinessGates"), &after);
        assert!(applied.warnings.is_empty());
    }
}

#[test]
fn there_is_no_gate_where_there_is_no_address_to_wait_for() {
    let spec = json!({ "containers": [] });
    let without = Profile { readiness_gate: false, ..Profile::default() };
    for applied in [
        apply(spec.clone(), RoutingMode::None, &Profile::default(), Occasion::Creation),
        apply(spec.clone(), RoutingMode::Gateway, &without, Occasion::Creation),
        apply(spec.clone(), RoutingMode::Auto, &Profile::default(), Occasion::Template(Template::RunsForever)),
        apply_under(&[RULE], &pod(spec.clone()), &Profile::default(), &Policy::built_in(), Occasion::Creation).unwrap(),
    ] {
        assert!(applied.changes.is_empty(), "{:?}", applied.changes);
    }
}
