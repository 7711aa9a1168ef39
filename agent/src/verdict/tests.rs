use cofferdam_model::policy::ParentGateway;
use serde_json::json;

use super::*;
use crate::desired::testing::{gateway, ingress, objects, session};

/// The route of port 3000, generation 4, with these entries in its status.
fn route(parents: &Value) -> Value {
    let mut route = objects(&session("3000"), &gateway(true))[2].object.clone();
    route["metadata"]["generation"] = json!(4);
    route["status"] = json!({ "parents": parents });
    route
}

/// An entry about our Gateway.
fn entry(conditions: &Value) -> Value {
    json!({
        "parentRef": { "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "sessions", "namespace": "gateway" },
        "controllerName": "example.com/controller",
        "conditions": conditions,
    })
}

fn condition(type_: &str, status: &str, generation: &Value) -> Value {
    json!({
        "type": type_, "status": status, "observedGeneration": generation, "reason": format!("{type_}Reason"),
        "message": "as the controller says",
    })
}

/// Accepted and `ResolvedRefs` of the current generation.
fn conditions(accepted: &str, resolved: &str) -> Value {
    json!([condition("Accepted", accepted, &json!(4)), condition("ResolvedRefs", resolved, &json!(4))])
}

/// A Gateway of generation 7 with an HTTP listener that takes all routes.
fn parent(programmed: &str) -> Value {
    json!({
        "metadata": { "name": "sessions", "namespace": "gateway", "generation": 7 },
        "spec": {
            "gatewayClassName": "eg",
            "listeners": [
                { "name": "http", "protocol": "HTTP", "port": 80, "allowedRoutes": { "namespaces": { "from": "All" } } },
            ],
        },
        "status": {
            "conditions": [
                condition("Accepted", "True", &json!(7)), condition("Programmed", programmed, &json!(7)),
            ],
            "listeners": [{ "name": "http", "attachedRoutes": 1, "conditions": [
                condition("Programmed", "True", &json!(7)),
            ] }],
        },
    })
}

fn judge(route: &Value, known: Known<'_>, is_overdue: bool) -> Verdict {
    let evidence = Evidence { route: Some(route), gateway: known, is_overdue, is_unreadable: false };
    verdict(&gateway(true), evidence)
}

/// The reason of a refusal, `pending`, `unreadable` or `programmed`.
fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pending(_) => "pending",
        Verdict::Unreadable(_) => "unreadable",
        Verdict::Programmed { .. } => "programmed",
        Verdict::Refused { reason, .. } => reason.as_str(),
    }
}

fn message(verdict: Verdict) -> String {
    match verdict {
        Verdict::Pending(message) | Verdict::Unreadable(message) | Verdict::Refused { message, .. } => message,
        Verdict::Programmed { .. } => String::new(),
    }
}

#[test]
fn a_route_is_programmed_when_its_parent_accepts_it_and_finds_the_service() {
    for (accepted, resolved, expected, overdue) in [
        ("True", "True", "programmed", "programmed"),
        ("False", "True", "RefusedByController", "RefusedByController"),
        ("False", "False", "RefusedByController", "RefusedByController"),
        // Case B134.
        ("True", "False", "BackendNotResolved", "BackendNotResolved"),
        ("Unknown", "True", "pending", "Unclaimed"),
        ("True", "Unknown", "pending", "pending"),
    ] {
        let (route, parent) = (route(&json!([entry(&conditions(accepted, resolved))])), parent("True"));
        assert_eq!(word(&judge(&route, Known::There(&parent), false)), expected, "{accepted} {resolved}");
        assert_eq!(word(&judge(&route, Known::There(&parent), true)), overdue, "{accepted} {resolved}, overdue");
    }
    let accepted = json!([condition("Accepted", "True", &json!(4))]);
    let (route, parent) = (route(&json!([entry(&accepted)])), parent("True"));
    assert_eq!(word(&judge(&route, Known::There(&parent), true)), "pending", "nothing is said about the Service");
}

#[test]
fn b128_every_parent_is_judged_and_one_that_is_not_there_is_pending() {
    let good = entry(&conditions("True", "True"));
    let mut second = good.clone();
    second["parentRef"]["name"] = json!("other");
    let parent = parent("True");
    let there = Known::There(&parent);

    let mut two = route(&json!([good]));
    two["spec"]["parentRefs"] = json!([good["parentRef"], second["parentRef"]]);
    assert_eq!(word(&judge(&two, there, false)), "pending");
    two["status"]["parents"] = json!([second, good]);
    assert_eq!(word(&judge(&two, there, false)), "programmed");
    second["conditions"] = conditions("False", "True");
    two["status"]["parents"] = json!([good, second]);
    assert_eq!(word(&judge(&two, there, false)), "RefusedByController");

    // Entries of somebody else's parent say nothing about ours.
    assert_eq!(word(&judge(&route(&json!([second])), there, false)), "pending");
    for (key, other) in [("sectionName", json!("https")), ("port", json!(80)), ("namespace", json!("sess"))] {
        let mut wrong = good.clone();
        wrong["parentRef"][key] = other;
        assert_eq!(word(&judge(&route(&json!([wrong])), there, false)), "pending", "{key}");
    }
    // Two controllers that write about one parent: the one that has taken the route counts.
    let refusing = entry(&conditions("False", "True"));
    assert_eq!(word(&judge(&route(&json!([refusing, good])), there, false)), "programmed");
}

#[test]
fn what_a_reference_leaves_out_is_what_it_means() {
    let mut short = entry(&conditions("True", "True"));
    short["parentRef"] = json!({ "name": "sessions" });
    let parent = parent("True");
    let mut route = route(&json!([short]));
    assert_eq!(word(&judge(&route, Known::There(&parent), false)), "pending", "the route's own namespace is meant");
    route["metadata"]["namespace"] = json!("gateway");
    assert_eq!(word(&judge(&route, Known::There(&parent), false)), "programmed");
}

#[test]
fn b130_only_what_is_said_of_the_current_generation_counts() {
    for (generation, expected, overdue) in [
        (json!(4), "programmed", "programmed"),
        (json!(3), "pending", "Unclaimed"),
        (json!(5), "pending", "Unclaimed"),
        (json!(0), "pending", "pending"),
        (Value::Null, "pending", "pending"),
    ] {
        let said = json!([condition("Accepted", "True", &generation), condition("ResolvedRefs", "True", &generation)]);
        let (answered, parent) = (route(&json!([entry(&said)])), parent("True"));
        assert_eq!(word(&judge(&answered, Known::There(&parent), false)), expected, "{generation}");
        assert_eq!(word(&judge(&answered, Known::There(&parent), true)), overdue, "{generation}");
        // An old refusal is none either.
        let said = json!([condition("Accepted", "False", &generation)]);
        let refused = judge(&route(&json!([entry(&said)])), Known::There(&parent), false);
        assert_eq!(word(&refused) == "RefusedByController", generation == 4, "{generation}");
    }
}

#[test]
fn b132_a_controller_that_writes_nothing_is_named_once_the_deadline_has_passed() {
    let parent = parent("True");
    for status in [json!({}), Value::Null, json!({ "parents": [] })] {
        let mut route = route(&json!([]));
        route["status"] = status;
        assert_eq!(word(&judge(&route, Known::There(&parent), false)), "pending");
        assert_eq!(
            message(judge(&route, Known::There(&parent), true)),
            "No controller has taken the route within `routing.deadlineSeconds`. Check that Gateway gateway/sessions is \
             the one meant, that its controller runs, and that a listener takes routes of this namespace and host. Its \
             class is eg. Its listener for this host is http."
        );
    }
}

/// What is said of a route that nobody claims, with the Gateway as it is; `named` is the listener that the policy names.
fn unclaimed_at(gateway: &Value, named: Option<&str>) -> String {
    let parent = ParentGateway {
        name: "sessions".to_owned(),
        namespace: "gateway".to_owned(),
        listener: named.map(str::to_owned),
    };
    let layer = Layer::Gateway { version: "v1".to_owned(), parent, proof: true };
    let route = route(&json!([]));
    let evidence =
        Evidence { route: Some(&route), gateway: Known::There(gateway), is_overdue: true, is_unreadable: false };
    message(verdict(&layer, evidence))
}

#[test]
fn rh_04_the_deadline_names_the_listeners_to_look_at() {
    let listener = |name: &str, protocol: &str, host: &str| {
        let admitted = json!({ "namespaces": { "from": "All" } });
        json!({ "name": name, "protocol": protocol, "hostname": host, "allowedRoutes": admitted })
    };
    let with = |listeners: &[Value]| {
        let mut gateway = parent("True");
        gateway["spec"]["listeners"] = listeners.into();
        gateway
    };
    let all = with(&[
        listener("web", "HTTP", ""),
        listener("secure", "HTTPS", "*.sessions.example.test"),
        listener("other", "HTTPS", "*.example.com"),
        listener("raw", "TCP", ""),
    ]);
    for (gateway, named, said) in [
        (&all, None, "Its listeners for this host are web, secure."),
        (&all, Some("secure"), "Its listener for this host is secure."),
        (&all, Some("other"), "It has no listener other for this host."),
        (&all, Some("gone"), "It has no listener gone for this host."),
        (
            &with(&[listener("a", "HTTP", "a.test"), listener("b", "TLS", "")]),
            None,
            "None of its listeners is for this host: a, b.",
        ),
    ] {
        let told = unclaimed_at(gateway, named);
        assert!(told.ends_with(&format!("Its class is eg. {said}")), "{told}");
    }
    let many: Vec<_> = (0..64).map(|number| listener(&format!("{number}{}", "a".repeat(60)), "HTTP", "")).collect();
    let told = unclaimed_at(&with(&many), None);
    assert!(told.len() < 600 && told.contains("listeners for this host are 0aa"), "{told}");
}

#[test]
fn rh_04_the_deadline_says_that_a_listener_does_not_admit_the_namespace() {
    let mut own = parent("True");
    own["spec"]["listeners"][0]["allowedRoutes"] = Value::Null;
    own["status"]["listeners"][0]["attachedRoutes"] = json!(0);
    let told = unclaimed_at(&own, None);
    let said = "Its listener for this host is http. It takes routes of its own namespace only: set \
                `allowedRoutes.namespaces.from`. No route at all is attached to it.";
    assert!(told.ends_with(said), "{told}");
}

#[test]
fn b136_the_controllers_words_are_passed_on() {
    let mut said = condition("Accepted", "False", &json!(4));
    said["reason"] = json!("NotAllowedByListeners");
    said["message"] = json!("No listeners included by this parent ref allowed this attachment.");
    let parent = parent("True");
    let verdict = judge(&route(&json!([entry(&json!([said]))])), Known::There(&parent), false);
    assert_eq!(
        verdict,
        Verdict::Refused {
            reason: Reason::RefusedByController,
            message: "NotAllowedByListeners: No listeners included by this parent ref allowed this attachment."
                .to_owned(),
        }
    );
    said["message"] = json!(format!("two\nlines{}", "x".repeat(32_000)));
    let told = message(judge(&route(&json!([entry(&json!([said]))])), Known::There(&parent), false));
    assert!(told.starts_with("NotAllowedByListeners: two lines") && told.len() == 400 && told.ends_with('…'), "{told}");
}

#[test]
fn a_rule_that_was_dropped_is_a_refusal() {
    let said = conditions("True", "True");
    let said = json!([said[0], said[1], condition("PartiallyInvalid", "True", &json!(4))]);
    let parent = parent("True");
    let verdict = judge(&route(&json!([entry(&said)])), Known::There(&parent), false);
    assert_eq!(word(&verdict), "RefusedByController");
}

#[test]
fn b138_a_route_is_not_programmed_while_its_gateway_is_not() {
    let accepted = route(&json!([entry(&conditions("True", "True"))]));
    for (programmed, expected, overdue) in [
        ("True", "programmed", "programmed"),
        ("False", "GatewayNotProgrammed", "GatewayNotProgrammed"),
        ("Unknown", "pending", "GatewayNotProgrammed"),
    ] {
        let parent = parent(programmed);
        assert_eq!(word(&judge(&accepted, Known::There(&parent), false)), expected);
        assert_eq!(word(&judge(&accepted, Known::There(&parent), true)), overdue);
    }
    assert_eq!(
        message(judge(&accepted, Known::There(&parent("False")), false)),
        "Gateway gateway/sessions: ProgrammedReason: as the controller says"
    );
    let mut stale = parent("True");
    stale["metadata"]["generation"] = json!(8);
    assert_eq!(word(&judge(&accepted, Known::There(&stale), false)), "pending");
    let mut waiting = parent("Unknown");
    // What the API server writes into a new Gateway's status.
    waiting["status"]["conditions"] = json!([{
        "type": "Programmed", "status": "Unknown", "reason": "Pending", "message": "Waiting for controller",
    }]);
    assert_eq!(
        message(judge(&accepted, Known::There(&waiting), true)),
        "Gateway gateway/sessions is not programmed yet. Pending: Waiting for controller"
    );
    let mut leaving = parent("True");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(word(&judge(&accepted, Known::There(&leaving), false)), "GatewayNotProgrammed");
    assert_eq!(word(&judge(&accepted, Known::Missing, false)), "GatewayMissing");
    assert_eq!(word(&judge(&route(&json!([])), Known::Missing, false)), "GatewayMissing");
    assert_eq!(word(&judge(&accepted, Known::Unreadable, true)), "unreadable");
}

#[test]
fn one_listener_that_works_is_enough_unless_another_is_named() {
    let mut parent = parent("True");
    let mut https = condition("ResolvedRefs", "False", &json!(7));
    https["reason"] = json!("InvalidCertificateRef");
    let http = parent["spec"]["listeners"][0].clone();
    parent["spec"]["listeners"] = json!([http, { "name": "https", "protocol": "HTTPS", "port": 443 }]);
    let fine = parent["status"]["listeners"][0].clone();
    parent["status"]["listeners"] = json!([fine, { "name": "https", "attachedRoutes": 0, "conditions": [https] }]);
    let mut route = route(&json!([entry(&conditions("True", "True"))]));
    assert_eq!(word(&judge(&route, Known::There(&parent), false)), "programmed");

    route["spec"]["parentRefs"][0]["sectionName"] = json!("https");
    route["status"]["parents"][0]["parentRef"]["sectionName"] = json!("https");
    let Layer::Gateway { version, parent: mut named, proof } = gateway(true) else { panic!("a Gateway") };
    named.listener = Some("https".to_owned());
    let layer = Layer::Gateway { version, parent: named, proof };
    let evidence =
        Evidence { route: Some(&route), gateway: Known::There(&parent), is_overdue: false, is_unreadable: false };
    let verdict = verdict(&layer, evidence);
    assert_eq!(word(&verdict), "GatewayNotProgrammed");
    assert_eq!(
        message(verdict),
        "Listener https of Gateway gateway/sessions: InvalidCertificateRef: as the controller says"
    );
}

#[test]
fn b142_an_ingress_is_taken_once_it_has_an_address_and_no_more_can_be_known() {
    let judge = |status: Value, is_overdue: bool| {
        let mut object = objects(&session("3000"), &ingress())[2].object.clone();
        object["status"] = json!({ "loadBalancer": status });
        let evidence = Evidence { route: Some(&object), gateway: Known::Missing, is_overdue, is_unreadable: false };
        verdict(&ingress(), evidence)
    };
    for given in [json!({ "ip": "192.0.2.1" }), json!({ "hostname": "lb.example.com" })] {
        assert_eq!(judge(json!({ "ingress": [given] }), true), Verdict::Programmed { is_weak: true });
    }
    for none in [json!({}), json!({ "ingress": [] }), json!({ "ingress": [{}] }), json!({ "ingress": [{ "ip": "" }] })]
    {
        assert_eq!(word(&judge(none.clone(), false)), "pending");
        let overdue = judge(none, true);
        assert_eq!(word(&overdue), "Unclaimed");
        assert!(message(overdue).contains("IngressClass contour"));
    }
}

#[test]
fn l11_what_could_not_be_read_is_not_called_unclaimed() {
    let parent = parent("True");
    let judge = |route: Option<&Value>| {
        let evidence = Evidence { route, gateway: Known::There(&parent), is_overdue: true, is_unreadable: true };
        verdict(&gateway(true), evidence)
    };
    assert_eq!(word(&judge(Some(&route(&json!([]))))), "unreadable");
    assert_eq!(word(&judge(None)), "unreadable");
    // What was read last holds until something else is.
    assert_eq!(word(&judge(Some(&route(&json!([entry(&conditions("True", "True"))]))))), "programmed");
    assert_eq!(word(&judge(Some(&route(&json!([entry(&conditions("False", "True"))]))))), "RefusedByController");
}

#[test]
fn d21_a_verdict_is_never_final() {
    let (good, bad) = (json!([entry(&conditions("True", "True"))]), json!([entry(&conditions("False", "True"))]));
    let parent = parent("True");
    let words: Vec<_> = [&json!([]), &good, &bad, &good, &json!([])]
        .map(|parents| word(&judge(&route(parents), Known::There(&parent), true)))
        .to_vec();
    assert_eq!(words, ["Unclaimed", "programmed", "RefusedByController", "programmed", "Unclaimed"]);
}

#[test]
fn a_route_that_is_not_there_is_pending_however_late_it_is() {
    for layer in [gateway(true), ingress(), Layer::Off] {
        let evidence = Evidence { route: None, gateway: Known::Missing, is_overdue: true, is_unreadable: false };
        assert_eq!(word(&verdict(&layer, evidence)), "pending");
    }
}

#[test]
fn nonsense_in_a_status_is_no_answer() {
    let parent = parent("True");
    for status in [json!(1), json!([]), json!({ "parents": 1 }), json!({ "parents": [1, null, { "conditions": 1 }] })] {
        let mut route = route(&json!([]));
        route["status"] = status;
        assert_eq!(word(&judge(&route, Known::There(&parent), false)), "pending");
    }
    let good = route(&json!([entry(&conditions("True", "True"))]));
    for nonsense in [json!(null), json!(1), json!({ "status": 1, "spec": [] })] {
        assert_eq!(word(&judge(&good, Known::There(&nonsense), false)), "pending");
    }
}
