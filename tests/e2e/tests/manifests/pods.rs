//! Our own programs: how hard their pods are, what they may do, and which policy they read.

use std::collections::BTreeSet;
use std::fs;

use cofferdam_model::keys;
use serde_json::{Value, json};

use crate::agreement::loose_ends;
use crate::objects::{Objects, items, manifests, overlay, text, title, walk};

/// What Pod Security `restricted` would say of a pod of ours, and what we ask of it beyond: numeric users, a read-only
/// root, requests and limits, no token but the one by which an agent or the API asks the API server.
fn weaknesses(pod: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut ask = |holds: bool, what: &str| {
        if !holds {
            found.push(what.to_owned());
        }
    };
    let security = &pod["securityContext"];
    ask(security["runAsNonRoot"] == true, "runAsNonRoot");
    for id in ["runAsUser", "runAsGroup", "fsGroup"] {
        ask(security[id].as_u64().is_some_and(|id| id > 0), id);
    }
    ask(security["seccompProfile"]["type"] == "RuntimeDefault", "seccompProfile");
    let asks = [keys::AGENT, keys::API].map(Value::from).contains(&pod["serviceAccountName"]);
    ask(pod["automountServiceAccountToken"] == asks, "automountServiceAccountToken");
    ask(pod["enableServiceLinks"] == false, "enableServiceLinks");
    for host in ["hostNetwork", "hostPID", "hostIPC"] {
        ask(pod[host].is_null(), host);
    }
    for volume in items(&pod["volumes"]) {
        let fields = volume.as_object().expect("a volume is a map");
        let known = ["name", "configMap", "secret", "emptyDir"];
        ask(fields.keys().all(|field| known.contains(&field.as_str())), "volume type");
    }
    for container in items(&pod["initContainers"]).iter().chain(items(&pod["containers"])) {
        let security = &container["securityContext"];
        ask(security["allowPrivilegeEscalation"] == false, "allowPrivilegeEscalation");
        ask(security["readOnlyRootFilesystem"] == true, "readOnlyRootFilesystem");
        ask(security["capabilities"] == json!({"drop": ["ALL"]}), "capabilities");
        ask(security["privileged"].is_null(), "privileged");
        for weaker in ["runAsUser", "runAsNonRoot", "seccompProfile"] {
            ask(security[weaker].is_null(), weaker);
        }
        for resource in ["cpu", "memory"] {
            ask(container["resources"]["requests"][resource].is_string(), "requests");
            ask(container["resources"]["limits"][resource].is_string(), "limits");
        }
        ask(items(&container["ports"]).iter().all(|port| port["hostPort"].is_null()), "hostPort");
    }
    found
}

#[test]
fn b91_one_replica_may_go_and_one_stays() {
    let objects = Objects::of("base");
    let spec = &objects.only("Deployment")["spec"];
    assert_eq!(spec["replicas"], 2);
    assert_eq!(spec["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    assert_eq!(objects.only("PodDisruptionBudget")["spec"]["minAvailable"], 1);
    let constraint = &spec["template"]["spec"]["topologySpreadConstraints"][0];
    assert_eq!(constraint["topologyKey"], "kubernetes.io/hostname");
    assert_eq!(constraint["whenUnsatisfiable"], "ScheduleAnyway", "one node runs both");
}

#[test]
fn our_own_pods_are_as_hard_as_we_make_others() {
    let objects = Objects::of("overlays/api");
    for workload in objects.workloads() {
        let pod = &workload["spec"]["template"]["spec"];
        assert_eq!(weaknesses(pod), Vec::<String>::new(), "{}", title(workload));
        for field in
            ["/securityContext/runAsNonRoot", "/containers/0/securityContext", "/containers/0/resources/limits"]
        {
            let mut weak = pod.clone();
            *weak.pointer_mut(field).expect("the pod has it") = Value::Null;
            assert!(!weaknesses(&weak).is_empty(), "without {field}");
        }
    }
    for account in objects.kind("ServiceAccount") {
        assert_eq!(account["automountServiceAccountToken"], false, "{}", title(account));
    }
    let system = &objects.named("Namespace", "cofferdam-system").expect("it ships")["metadata"]["labels"];
    for mode in ["enforce", "audit", "warn"] {
        assert_eq!(system[format!("pod-security.kubernetes.io/{mode}")], "restricted");
    }
}

#[test]
fn the_webhook_has_no_right_and_speaks_to_nobody() {
    let objects = Objects::of("overlays/api-review");
    for kind in ["Role", "ClusterRole"] {
        for role in objects.kind(kind) {
            walk(&role["rules"], "", &mut |path, value| assert_ne!(*value, "*", "{} {path}", title(role)));
        }
    }
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        for binding in objects.kind(kind) {
            let webhook = items(&binding["subjects"]).iter().any(|subject| subject["name"] == "cofferdam-webhook");
            assert!(!webhook, "{}", title(binding));
        }
    }
    let network = &objects.named("NetworkPolicy", "cofferdam-webhook").expect("it ships")["spec"];
    assert_eq!(network["policyTypes"], json!(["Ingress", "Egress"]));
    assert!(network["egress"].is_null(), "Egress without a rule is none");
}

#[test]
fn account_names_are_the_ones_that_policies_know() {
    let objects = Objects::of("overlays/cert-manager");
    let names: BTreeSet<_> = objects.kind("ServiceAccount").map(|account| text(&account["metadata"]["name"])).collect();
    assert_eq!(names, BTreeSet::from(["cofferdam-agent", "cofferdam-api", "cofferdam-webhook"]));
}

/// The `ConfigMap` with the policy itself.
fn mounted_policy(objects: &Objects) -> &Value {
    objects.kind("ConfigMap").find(|map| !map["data"]["policy.yaml"].is_null()).expect("the policy is in a ConfigMap")
}

#[test]
fn the_policy_that_is_mounted_is_the_file_in_the_base() {
    let file = fs::read_to_string(manifests().join("base/policy.yaml")).expect("the base has it");
    assert_eq!(mounted_policy(&Objects::of("base"))["data"], json!({"policy.yaml": file}));
}

#[test]
fn a_policy_is_replaced_where_the_readme_says_and_reaches_the_replicas_that_run() {
    let settings = "configMapGenerator: [{name: cofferdam-policy, namespace: cofferdam-system, behavior: replace, \
                    literals: [policy.yaml=other]}]\n";
    let objects = Objects::render(&overlay("other-policy", settings));
    assert_eq!(mounted_policy(&objects)["data"], json!({"policy.yaml": "other"}));
    assert_eq!(loose_ends(&objects), Vec::<String>::new());
    let name = |objects: &Objects| mounted_policy(objects)["metadata"]["name"].clone();
    assert_eq!(name(&objects), name(&Objects::of("base")), "another name would be a rollout");
}
