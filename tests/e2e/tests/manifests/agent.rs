//! The agents: on every node, known by their own names, and held to what the admission policy lets them write.

use std::collections::BTreeSet;

use cofferdam_model::keys;
use serde_json::json;

use crate::objects::{Objects, items, overlay, text, title};

#[test]
fn an_agent_runs_wherever_a_session_may() {
    let objects = Objects::of("base");
    let spec = &objects.only("DaemonSet")["spec"];
    let pod = &spec["template"]["spec"];
    for effect in ["NoSchedule", "NoExecute"] {
        let tolerated = items(&pod["tolerations"]).contains(&json!({"operator": "Exists", "effect": effect}));
        assert!(tolerated, "{effect}");
    }
    assert!(pod["affinity"].is_null(), "{pod}");
    assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/os": "linux"}));
    assert_eq!(spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"], "10%", "not one node after the other");
}

#[test]
fn an_agent_is_told_where_it_runs() {
    let objects = Objects::of("base");
    let environment = &objects.only("DaemonSet")["spec"]["template"]["spec"]["containers"][0]["env"];
    for (variable, field) in
        [("NODE_NAME", "spec.nodeName"), ("POD_NAME", "metadata.name"), ("NAMESPACE", "metadata.namespace")]
    {
        let name = format!("COFFERDAM_AGENT_{variable}");
        let told = items(environment).iter().find(|entry| entry["name"] == *name);
        let told = told.unwrap_or_else(|| panic!("{name} is missing"));
        assert_eq!(told["valueFrom"]["fieldRef"]["fieldPath"], field, "{name}");
    }
}

#[test]
fn the_lease_is_there_under_the_name_that_agents_look_for_whatever_is_renamed() {
    let renamed = overlay("renamed-lease", "namespace: guard\nnamePrefix: acme-\ntransformers: [NAMES]\n");
    for (objects, namespace) in [(Objects::of("base"), "cofferdam-system"), (Objects::render(&renamed), "guard")] {
        let lease = &objects.only("Lease")["metadata"];
        assert_eq!((text(&lease["name"]), text(&lease["namespace"])), (keys::AGENT, namespace));
        let binding = objects
            .kind("ValidatingAdmissionPolicyBinding")
            .find(|binding| text(&binding["metadata"]["name"]).ends_with("cofferdam-agent-node"));
        let params = &binding.expect("it ships")["spec"]["paramRef"];
        assert_eq!((text(&params["name"]), text(&params["namespace"])), (keys::AGENT, namespace));
    }
}

/// Every resource that agents may change is one that the policy looks at; Events alone are anybody's.
#[test]
fn whatever_an_agent_may_write_is_compared_with_its_node() {
    let objects = Objects::of("base");
    let policy = objects.named("ValidatingAdmissionPolicy", "cofferdam-agent-node").expect("it ships");
    let mut judged = BTreeSet::new();
    for rule in items(&policy["spec"]["matchConstraints"]["resourceRules"]) {
        for operation in items(&rule["operations"]) {
            for resource in items(&rule["resources"]) {
                judged.insert((text(&rule["apiGroups"][0]), text(resource), text(operation)));
            }
        }
    }
    for role in objects.kind("ClusterRole").chain(objects.kind("Role")) {
        for rule in items(&role["rules"]) {
            for verb in items(&rule["verbs"]) {
                let operation = match text(verb) {
                    "create" => "CREATE",
                    "patch" | "update" => "UPDATE",
                    "delete" => "DELETE",
                    _ => continue,
                };
                for (group, resource) in
                    items(&rule["apiGroups"]).iter().flat_map(|g| items(&rule["resources"]).iter().map(move |r| (g, r)))
                {
                    let known = judged.contains(&(text(group), text(resource), operation)) || resource == "events";
                    assert!(known, "{}: {operation} {group} {resource}", title(role));
                }
            }
        }
    }
    let policy = policy.to_string();
    for word in [keys::NODE, keys::MANAGED_BY, keys::SESSION, keys::SESSIONS, keys::ENDPOINTS] {
        assert!(policy.contains(&format!("'{word}'")), "{word}");
    }
    assert!(policy.contains(&format!("== '{}'", keys::AGENT)));
}
