//! The parts of an installation agree with each other: what is named is there, and a second apply changes nothing.

use std::collections::BTreeSet;
use std::path::Path;

use cofferdam_model::keys;
use serde_json::{Value, json};

use crate::objects::{Labels, Objects, items, labels_of, selects, text, title, walk};

/// Says what does not hold together: names that lead nowhere, selectors that select nothing, ports that nobody has.
pub(crate) fn loose_ends(objects: &Objects) -> Vec<String> {
    let mut loose = Loose::default();
    let namespace = text(&objects.of_program("Service", "webhook")["metadata"]["namespace"]);
    for object in &objects.0 {
        let at = &object["metadata"]["namespace"];
        // What the API may do there.
        let is_of_sessions = ["Role", "RoleBinding"].map(Value::from).contains(&object["kind"])
            && object["metadata"]["labels"]["app.kubernetes.io/component"] == "api";
        let its = if is_of_sessions { "cofferdam-sessions" } else { namespace };
        loose.ask(at.is_null() || at == its, || format!("{} is in namespace {at}", title(object)));
    }
    loose.ask(objects.named("Namespace", namespace).is_some(), || format!("no Namespace {namespace}"));
    for workload in objects.workloads() {
        of_workload(objects, workload, &mut loose);
    }
    of_services(objects, &mut loose);
    of_network_policies(objects, &mut loose);
    of_webhooks(objects, namespace, &mut loose);
    of_admission_policies(objects, namespace, &mut loose);
    of_rights(objects, namespace, &mut loose);
    for certificate in objects.kind("Certificate") {
        let issuer = &certificate["spec"]["issuerRef"]["name"];
        loose.ask(objects.has("Issuer", issuer), || format!("{}: issuer", title(certificate)));
    }
    loose.0
}

#[derive(Default)]
struct Loose(Vec<String>);

impl Loose {
    fn ask(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(what());
        }
    }
}

fn pod_labels(workload: &Value) -> Labels {
    labels_of(&workload["spec"]["template"]["metadata"]["labels"])
}

fn port<'a>(workload: &'a Value, name: &Value) -> Option<&'a Value> {
    let container = &workload["spec"]["template"]["spec"]["containers"][0];
    items(&container["ports"]).iter().find(|port| port["name"] == *name)
}

fn of_workload(objects: &Objects, workload: &Value, loose: &mut Loose) {
    let (pod, labels, own) = (&workload["spec"]["template"]["spec"], pod_labels(workload), title(workload));
    let container = &pod["containers"][0];
    let account = objects.has("ServiceAccount", &pod["serviceAccountName"]);
    loose.ask(account, || format!("{own}: ServiceAccount"));
    let class = objects.has("PriorityClass", &pod["priorityClassName"]);
    loose.ask(class, || format!("{own}: PriorityClass"));

    let mut mounted = BTreeSet::new();
    for volume in items(&pod["volumes"]) {
        let name = text(&volume["name"]);
        if !volume["configMap"].is_null() {
            let there = objects.has("ConfigMap", &volume["configMap"]["name"]);
            loose.ask(there, || format!("{own}: ConfigMap of volume {name}"));
        }
        if !volume["secret"].is_null() && objects.kind("Certificate").next().is_some() {
            let secret = &volume["secret"]["secretName"];
            let issued = objects.kind("Certificate").any(|certificate| certificate["spec"]["secretName"] == *secret);
            // The tokens of callers are the operator's.
            loose.ask(issued || secret == "cofferdam-api-tokens", || format!("{own}: Certificate for volume {name}"));
        }
        let mount = items(&container["volumeMounts"]).iter().find(|mount| mount["name"] == name);
        loose.ask(mount.is_some(), || format!("{own}: mount of volume {name}"));
        mounted.extend(mount.map(|mount| text(&mount["mountPath"])));
    }
    for argument in items(&container["args"]).iter().map(text) {
        let Some((flag, value)) = argument.split_once('=') else { continue };
        if value.starts_with('/') {
            let directory = Path::new(value).parent().and_then(Path::to_str).unwrap_or_default();
            loose.ask(mounted.contains(directory), || format!("{own}: {flag} lies in no mount"));
        } else if let Some((_, number)) = value.rsplit_once(':') {
            let declared =
                items(&container["ports"]).iter().any(|port| port["containerPort"].as_u64() == number.parse().ok());
            loose.ask(declared, || format!("{own}: {flag} is no declared port"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe"] {
        let there = port(workload, &container[probe]["httpGet"]["port"]).is_some();
        loose.ask(there, || format!("{own}: port of the {probe}"));
    }
    loose.ask(selects(&workload["spec"]["selector"], &labels), || format!("{own} selects no pod"));
    for constraint in items(&pod["topologySpreadConstraints"]) {
        loose.ask(selects(&constraint["labelSelector"], &labels), || format!("{own}: spread counts no pod"));
    }
}

/// Each leads to one of our programs, under the name that it is told to others by; and what else is about the webhook's replicas.
fn of_services(objects: &Objects, loose: &mut Loose) {
    for service in objects.kind("Service") {
        let selector = json!({"matchLabels": service["spec"]["selector"]});
        let chosen: Vec<_> = objects.workloads().filter(|workload| selects(&selector, &pod_labels(workload))).collect();
        let [workload] = chosen.as_slice() else {
            loose.ask(false, || format!("{} leads to no program", title(service)));
            continue;
        };
        for open in items(&service["spec"]["ports"]) {
            let there = port(workload, &open["targetPort"]).is_some();
            loose.ask(there, || format!("{}: port {}", title(service), open["port"]));
        }
        let host = format!("{}.{}.svc", text(&service["metadata"]["name"]), text(&service["metadata"]["namespace"]));
        let told = items(&workload["spec"]["template"]["spec"]["containers"][0]["env"]);
        let told = told.iter().find(|variable| variable["name"] == "SERVICE_HOST");
        loose.ask(told.is_none_or(|told| told["value"] == host), || format!("{} is told otherwise", title(service)));
    }
    let labels = pod_labels(objects.of_program("Deployment", "webhook"));
    let budget = objects.only("PodDisruptionBudget");
    loose.ask(selects(&budget["spec"]["selector"], &labels), || "PodDisruptionBudget selects no pod".into());
}

/// Each is about one of our programs, and each program has one.
fn of_network_policies(objects: &Objects, loose: &mut Loose) {
    let mut guarded = BTreeSet::new();
    for policy in objects.kind("NetworkPolicy") {
        let chosen: Vec<_> = objects
            .workloads()
            .filter(|workload| selects(&policy["spec"]["podSelector"], &pod_labels(workload)))
            .collect();
        loose.ask(chosen.len() == 1, || format!("{} is not about one program", title(policy)));
        guarded.extend(chosen.iter().map(|workload| title(workload)));
        for rule in items(&policy["spec"]["ingress"]).iter().flat_map(|rule| items(&rule["ports"])) {
            let open = chosen.iter().all(|workload| port(workload, &rule["port"]).is_some());
            loose.ask(open, || format!("{} opens a port that nobody has", title(policy)));
        }
    }
    for workload in objects.workloads() {
        loose.ask(guarded.contains(&title(workload)), || format!("{} has no NetworkPolicy", title(workload)));
    }
}

fn of_webhooks(objects: &Objects, namespace: &str, loose: &mut Loose) {
    let (service, deployment) = (objects.of_program("Service", "webhook"), objects.of_program("Deployment", "webhook"));
    for webhook in objects.webhooks() {
        let target = &webhook["clientConfig"]["service"];
        let name = text(&webhook["name"]);
        loose.ask(target["name"] == service["metadata"]["name"], || format!("{name}: Service"));
        loose.ask(target["namespace"] == namespace, || format!("{name}: namespace of the Service"));
        let open = items(&service["spec"]["ports"]).iter().find(|open| open["port"] == target["port"]);
        let open = open.is_some_and(|open| port(deployment, &open["targetPort"]).is_some());
        loose.ask(open, || format!("{name}: port"));
    }
}

fn of_admission_policies(objects: &Objects, namespace: &str, loose: &mut Loose) {
    let bindings = ["Validating", "Mutating"]
        .map(|kind| objects.kind(&format!("{kind}AdmissionPolicyBinding")).collect::<Vec<_>>());
    for binding in bindings.concat() {
        let kind = text(&binding["kind"]).trim_end_matches("Binding");
        let policy = objects.named(kind, text(&binding["spec"]["policyName"]));
        loose.ask(policy.is_some(), || format!("{} binds nothing", title(binding)));
        let params = &binding["spec"]["paramRef"];
        if let (Some(policy), false) = (policy, params.is_null()) {
            let there = objects.has(text(&policy["spec"]["paramKind"]["kind"]), &params["name"])
                && params["namespace"] == namespace;
            loose.ask(there, || format!("parameters of {}", title(binding)));
        }
        let exempt = binding.pointer("/spec/matchResources/namespaceSelector/matchExpressions/0/values");
        let own = exempt.is_none_or(|values| *values == json!([namespace, keys::KUBE_SYSTEM]));
        loose.ask(own, || format!("{}: own namespace is not left out", title(binding)));
    }
    // Policies that are about the requests of one of our accounts.
    for policy in objects.kind("ValidatingAdmissionPolicy") {
        for condition in items(&policy["spec"]["matchConditions"]) {
            let Some((_, rest)) = text(&condition["expression"]).split_once("system:serviceaccount:") else { continue };
            let mut parts = rest.split(':');
            let at = parts.next() == Some(namespace);
            let known = parts.next().is_some_and(|name| objects.named("ServiceAccount", name).is_some());
            loose.ask(at && known, || format!("{} is about nobody", title(policy)));
        }
    }
}

/// Roles are bound to accounts that are there, and what they name is there.
fn of_rights(objects: &Objects, namespace: &str, loose: &mut Loose) {
    for binding in objects.kind("RoleBinding").chain(objects.kind("ClusterRoleBinding")) {
        let role = &binding["roleRef"];
        loose.ask(objects.has(text(&role["kind"]), &role["name"]), || format!("{} binds nothing", title(binding)));
        for subject in items(&binding["subjects"]) {
            let there = objects.has("ServiceAccount", &subject["name"]) && subject["namespace"] == namespace;
            loose.ask(there, || format!("subject of {}", title(binding)));
        }
    }
    for rule in objects.kind("Role").flat_map(|role| items(&role["rules"])) {
        for name in items(&rule["resourceNames"]) {
            loose.ask(objects.has("Lease", name), || format!("no Lease {name}"));
        }
    }
}

#[test]
fn everything_that_is_named_is_there() {
    for directory in [
        "base",
        "overlays/api",
        "overlays/api-compatibility",
        "overlays/api-review",
        "overlays/cert-manager",
        "overlays/mutating-admission-policy",
        "examples/renamed",
    ] {
        let objects = Objects::of(directory);
        assert_eq!(loose_ends(&objects), Vec::<String>::new(), "{directory}");
        let names: BTreeSet<_> = objects.0.iter().map(title).collect();
        assert_eq!(names.len(), objects.0.len(), "{directory}: an object is there twice");
    }
}

#[test]
fn a_loose_end_is_seen() {
    let sound = Objects::of("base");
    for (kind, field, broken) in [
        ("Service", "/spec/selector/app.kubernetes.io~1component", json!("other")),
        ("Service", "/spec/ports/0/targetPort", json!("other")),
        ("Deployment", "/spec/template/spec/serviceAccountName", json!("other")),
        ("Deployment", "/spec/template/spec/volumes/0/configMap/name", json!("other")),
        ("Deployment", "/spec/template/spec/containers/0/volumeMounts/1/mountPath", json!("/other")),
        ("Deployment", "/spec/template/spec/containers/0/ports/0/containerPort", json!(8443)),
        ("PodDisruptionBudget", "/spec/selector/matchLabels/app.kubernetes.io~1name", json!("other")),
        ("NetworkPolicy", "/spec/ingress/0/ports/0/port", json!("other")),
        ("NetworkPolicy", "/spec/podSelector/matchLabels/app.kubernetes.io~1component", json!("other")),
        ("DaemonSet", "/spec/template/spec/serviceAccountName", json!("other")),
        ("DaemonSet", "/spec/template/spec/containers/0/args/0", json!("--policy=/etc/other/policy.yaml")),
        ("DaemonSet", "/spec/template/spec/containers/0/readinessProbe/httpGet/port", json!("other")),
        ("ClusterRoleBinding", "/roleRef/name", json!("other")),
        ("RoleBinding", "/subjects/0/namespace", json!("other")),
        ("Role", "/rules/1/resourceNames/0", json!("other")),
        ("Lease", "/metadata/name", json!("other")),
        ("ServiceAccount", "/metadata/name", json!("other")),
        ("MutatingWebhookConfiguration", "/webhooks/1/clientConfig/service/name", json!("other")),
        ("ValidatingWebhookConfiguration", "/webhooks/4/clientConfig/service/name", json!("other")),
        (
            "ValidatingAdmissionPolicyBinding",
            "/spec/matchResources/namespaceSelector/matchExpressions/0/values",
            json!([]),
        ),
        ("ValidatingAdmissionPolicyBinding", "/spec/policyName", json!("other")),
    ] {
        let mut objects = sound.clone();
        let mut of_kind = objects.0.iter_mut().filter(|object| object["kind"] == kind);
        let there = of_kind.find_map(|object| object.pointer_mut(field));
        *there.unwrap_or_else(|| panic!("no {kind} has {field}")) = broken;
        assert!(!loose_ends(&objects).is_empty(), "{kind} {field}");
    }
}

#[test]
fn every_object_says_what_it_is_part_of() {
    for directory in [
        "base",
        "sessions",
        "overlays/api-compatibility",
        "overlays/api-review",
        "overlays/cert-manager",
        "overlays/mutating-admission-policy",
        "overlays/namespaced",
        "examples/renamed",
    ] {
        for object in Objects::of(directory).0 {
            let mut carriers = vec![&object["metadata"]["labels"]];
            carriers.extend(object.pointer("/spec/template/metadata/labels"));
            for labels in carriers {
                for key in ["name", "instance", "version", "component", "part-of", "managed-by"] {
                    let label = &labels[format!("app.kubernetes.io/{key}")];
                    assert!(label.is_string(), "{directory}: {} has no {key}", title(&object));
                }
                assert_eq!(labels["app.kubernetes.io/version"], env!("CARGO_PKG_VERSION"), "{}", title(&object));
            }
        }
    }
}

/// What an apply would send again each time: fields that others own, nothings that the API server does not store, and
/// entries of lists without a merge key that lack what the API server fills in.
#[test]
fn a_second_apply_has_nothing_to_change() {
    for directory in [
        "overlays/api",
        "overlays/api-compatibility",
        "overlays/api-review",
        "overlays/cert-manager",
        "overlays/namespaced",
        "examples/renamed",
        "examples/complete",
    ] {
        for object in Objects::of(directory).0 {
            walk(&object, "", &mut |path, value| {
                let nothing = value.is_null() || *value == json!([]);
                assert!(!nothing, "{directory}: {}{path} is nothing", title(&object));
                assert!(!path.ends_with(".caBundle"), "{directory}: {}{path} is cert-manager's", title(&object));
                if !value["resourceRules"].is_null() {
                    let whole = value["namespaceSelector"].is_object() && value["objectSelector"].is_object();
                    assert!(whole, "{directory}: {}{path} is compared as a whole", title(&object));
                }
                if let Some(operations) = value.get("operations") {
                    assert!(value["scope"].is_string(), "{directory}: {}{path} {operations}: scope", title(&object));
                }
            });
            let namespaced = !object["metadata"]["namespace"].is_null();
            let cluster = [
                "Namespace",
                "PriorityClass",
                "ClusterRole",
                "ClusterRoleBinding",
                "MutatingWebhookConfiguration",
                "ValidatingWebhookConfiguration",
                "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding",
            ];
            assert_eq!(namespaced, !cluster.contains(&text(&object["kind"])), "{directory}: {}", title(&object));
        }
    }
}
