//! What `docs/permissions.md` says that agents may do is what their roles allow, no more and no less.

use std::collections::BTreeSet;

use cofferdam_e2e::permissions::{Right, documented, rows};
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

#[test]
fn the_page_says_what_the_roles_allow() {
    let objects = Objects::of("base");
    for (kind, place) in [("ClusterRole", "everywhere"), ("Role", "cofferdam-system")] {
        let granted = granted(objects.only(kind));
        let said: Vec<_> = rows().into_iter().filter(|row| row.place == place).flat_map(|row| row.rights).collect();
        let set = |rights: &[Right]| rights.iter().cloned().collect::<BTreeSet<_>>();
        assert_eq!(set(&said), set(&granted), "{kind}");
        assert_eq!((said.len(), granted.len()), (set(&said).len(), set(&granted).len()), "{kind}: one is there twice");
    }
    assert!(documented().contains(&(String::new(), "pods/status".to_owned(), "patch".to_owned())));
}

#[test]
fn every_right_has_its_reason_and_a_place() {
    for row in rows() {
        assert!(!row.why.is_empty() && ["everywhere", "cofferdam-system"].contains(&row.place.as_str()), "{row:?}");
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

#[test]
fn the_namespaced_variant_has_no_right_beyond_the_session_namespace() {
    let objects = Objects::of("overlays/namespaced");
    for kind in ["ClusterRole", "ClusterRoleBinding"] {
        assert_eq!(objects.kind(kind).count(), 0, "{kind}");
    }
    let (role, binding) = (objects.only("Role"), objects.only("RoleBinding"));
    for object in [role, binding] {
        assert_eq!(object["metadata"]["namespace"], "cofferdam-sessions");
    }
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    let account = &objects.only("DaemonSet")["spec"]["template"]["spec"]["serviceAccountName"];
    assert_eq!(binding["subjects"][0]["name"], *account);
    // What the page says is missing.
    let here: BTreeSet<_> = granted(role).into_iter().collect();
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
