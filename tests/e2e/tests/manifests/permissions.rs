//! What `docs/permissions.md` says that our programs may do is what their roles allow, no more and no less.

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_e2e::permissions::{Program, Right, documented, rows};
use cofferdam_model::keys;
use serde_json::{Value, json};

use crate::objects::{Objects, items, text};

/// Each right that a role gives.
pub(crate) fn granted(role: &Value) -> Vec<Right> {
    let mut rights = Vec::new();
    for rule in items(&role["rules"]) {
        for group in items(&rule["apiGroups"]) {
            for resource in items(&rule["resources"]) {
                for verb in items(&rule["verbs"]) {
                    rights.push((text(group).to_owned(), text(resource).to_owned(), text(verb).to_owned()));
                }
            }
        }
    }
    rights
}

/// A kind of role, and where it holds.
type Place = (&'static str, &'static str);

/// A program, its component, and where it has rights.
const PROGRAMS: [(Program, &str, [Place; 2]); 2] = [
    (Program::Agents, "agent", [("ClusterRole", "everywhere"), ("Role", "cofferdam-system")]),
    (Program::Api, "api", [("ClusterRole", "everywhere"), ("Role", "cofferdam-sessions")]),
];

#[test]
fn the_page_says_what_the_roles_allow() {
    // Of all overlays the one by which the API asks for most.
    let objects = Objects::of("overlays/api-review");
    for (program, component, places) in PROGRAMS {
        for (kind, place) in places {
            let granted = granted(objects.of_program(kind, component));
            let said = rows(program).into_iter().filter(|row| row.place == place).flat_map(|row| row.rights);
            let (said, set) =
                (said.collect::<Vec<_>>(), |rights: &[Right]| rights.iter().cloned().collect::<BTreeSet<_>>());
            assert_eq!(set(&said), set(&granted), "{kind} of {program:?}");
            let counts = (set(&said).len(), set(&granted).len());
            assert_eq!((said.len(), granted.len()), counts, "{kind} of {program:?}: one is there twice");
        }
    }
    assert!(documented(Program::Agents).contains(&(String::new(), "pods/status".to_owned(), "patch".to_owned())));
    assert!(documented(Program::Api).contains(&(String::new(), "pods".to_owned(), "create".to_owned())));
}

#[test]
fn only_an_api_that_asks_what_callers_may_do_may_ask_it() {
    let reviews = |overlay: &str| {
        let granted = granted(Objects::of(overlay).of_program("ClusterRole", "api"));
        granted.into_iter().map(|(_, resource, _)| resource).collect::<Vec<_>>()
    };
    for overlay in ["overlays/api", "overlays/api-compatibility"] {
        assert_eq!(reviews(overlay), ["tokenreviews"], "{overlay}");
    }
    assert_eq!(reviews("overlays/api-review"), ["tokenreviews", "subjectaccessreviews"]);
}

#[test]
fn every_right_has_its_reason_and_a_place() {
    for (program, _, places) in PROGRAMS {
        for row in rows(program) {
            let is_known = places.iter().any(|(_, place)| row.place == *place);
            assert!(!row.why.is_empty() && is_known, "{row:?}");
        }
    }
}

#[test]
fn a_lease_is_changed_by_name_alone() {
    let role = Objects::of("base").only("Role").clone();
    for rule in items(&role["rules"]) {
        let named = !rule["resourceNames"].is_null();
        assert_eq!(named, !items(&rule["verbs"]).iter().any(|verb| verb == "create"), "{rule}");
    }
}

/// The objects of a kind, by their namespaces, which have one each.
fn of_namespaces<'a>(objects: &'a Objects, kind: &str) -> BTreeMap<&'a str, &'a Value> {
    let found: BTreeMap<_, _> =
        objects.kind(kind).map(|object| (text(&object["metadata"]["namespace"]), object)).collect();
    assert_eq!(found.len(), objects.kind(kind).count(), "{kind}");
    found
}

#[test]
fn the_namespaced_variant_has_no_right_beyond_the_session_namespace_but_for_its_own_events() {
    let objects = Objects::of("overlays/namespaced");
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        assert_eq!(objects.kind(kind).count(), 0, "{kind}");
    }
    let agent = objects.only("DaemonSet");
    let account = json!({"kind": "ServiceAccount", "name": agent["spec"]["template"]["spec"]["serviceAccountName"],
        "namespace": agent["metadata"]["namespace"]});
    let (roles, mut bindings) = (of_namespaces(&objects, "Role"), of_namespaces(&objects, "RoleBinding"));
    assert!(roles.keys().copied().eq(["cofferdam-sessions", "cofferdam-system"]), "{roles:?}");
    for (namespace, role) in &roles {
        let binding = bindings.remove(namespace).unwrap();
        assert_eq!(binding["roleRef"]["kind"], "Role");
        assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
        assert_eq!(binding["subjects"], json!([account]));
    }
    assert_eq!(bindings, BTreeMap::new());
    let create_events: Right = ("events.k8s.io".to_owned(), "events".to_owned(), "create".to_owned());
    assert_eq!(granted(roles["cofferdam-system"]), [create_events], "what it tells of itself is told on its own pod");
    // What the page says is missing.
    let here: BTreeSet<_> = granted(roles["cofferdam-sessions"]).into_iter().collect();
    let everywhere: BTreeSet<_> = granted(Objects::of("base").only("ClusterRole")).into_iter().collect();
    assert!(here.is_subset(&everywhere), "{here:?}");
    let missing: BTreeSet<_> = everywhere.difference(&here).map(|(_, resource, _)| resource.as_str()).collect();
    let expected = ["gatewayclasses", "ingressclasses", "namespaces", "networkpolicies", "nodes"];
    assert!(missing.iter().eq(&expected), "{missing:?}");
    assert!(!here.iter().any(|right| right.1 == "networkpolicies"), "nobody looks for it");

    let arguments = &objects.only("DaemonSet")["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(items(arguments).contains(&json!("--namespace-only=cofferdam-sessions")), "{arguments}");
    assert!(objects.named("NetworkPolicy", "cofferdam-sessions").is_some(), "nobody else applies it");
    assert!(objects.named("Lease", keys::AGENT).is_some(), "without it the policy compares nothing");
}
