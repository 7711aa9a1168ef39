//! What `kubectl kustomize` makes of `manifests/`, judged without a cluster.
#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests fail the test that called them")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use cofferdam_cluster::programs::Programs;
use cofferdam_cluster::progress::Progress;
use cofferdam_e2e::stage::kubernetes;
use cofferdam_model::keys;
use cofferdam_model::rules::{Cel, RULES};
use serde_json::{Value, json};

/// The kubectl that renders: `COFFERDAM_KUBECTL`, or the harness's of the Kubernetes version under test.
fn kubectl() -> &'static Path {
    static KUBECTL: OnceLock<PathBuf> = OnceLock::new();
    KUBECTL.get_or_init(|| {
        std::env::var_os("COFFERDAM_KUBECTL").map_or_else(
            || {
                let programs = Programs::ensure(&kubernetes(), &Progress::new()).expect("the harness has its programs");
                programs.path("kubectl").expect("kubectl is one of them")
            },
            PathBuf::from,
        )
    })
}

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests").canonicalize().expect("manifests/ is in the checkout")
}

const WEBHOOK_CONFIGURATIONS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Objects by what they are called; a list, because a rendering may hold one twice and a test wants to see that.
#[derive(Clone)]
struct Objects(Vec<Value>);

impl Objects {
    /// Renders a directory below `manifests/`.
    fn of(directory: &str) -> Self {
        Self::render(&manifests().join(directory))
    }

    fn render(directory: &Path) -> Self {
        let output = Command::new(kubectl()).arg("kustomize").arg(directory).output().expect("kubectl starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "kubectl kustomize {}: {errors}", directory.display());
        let text = String::from_utf8(output.stdout).expect("YAML is UTF-8");
        Self(serde_saphyr::from_multiple(&text).expect("kustomize writes YAML"))
    }

    fn kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |object| object["kind"] == kind)
    }

    fn named(&self, kind: &str, name: &str) -> Option<&Value> {
        self.kind(kind).find(|object| object["metadata"]["name"] == name)
    }

    /// The only object of its kind.
    fn only(&self, kind: &str) -> &Value {
        let found: Vec<_> = self.kind(kind).collect();
        assert_eq!(found.len(), 1, "objects of kind {kind}");
        found[0]
    }

    fn mutating(&self) -> &[Value] {
        items(&self.only("MutatingWebhookConfiguration")["webhooks"])
    }

    fn validating(&self) -> &[Value] {
        items(&self.only("ValidatingWebhookConfiguration")["webhooks"])
    }

    fn webhooks(&self) -> impl Iterator<Item = &Value> {
        self.mutating().iter().chain(self.validating())
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string"))
}

fn title(object: &Value) -> String {
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

type Labels = BTreeMap<String, String>;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn labels_of(value: &Value) -> Labels {
    serde_json::from_value(value.clone()).expect("labels are strings")
}

/// A `metav1.LabelSelector` as the API server reads it; one that is absent selects everything.
fn selects(selector: &Value, labels: &Labels) -> bool {
    let equal = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.get(key).is_some_and(|label| value == label));
    equal
        && items(&selector["matchExpressions"]).iter().all(|expression| {
            let value = labels.get(text(&expression["key"]));
            let listed = value.is_some_and(|value| items(&expression["values"]).iter().any(|listed| listed == value));
            match text(&expression["operator"]) {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                "DoesNotExist" => value.is_none(),
                operator => panic!("no selector has the operator {operator}"),
            }
        })
}

/// Every value in an object, with the path to it.
fn walk(value: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
    visit(path, value);
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, field)| walk(field, &format!("{path}.{key}"), visit));
        }
        Value::Array(entries) => {
            entries.iter().enumerate().for_each(|(index, entry)| walk(entry, &format!("{path}[{index}]"), visit));
        }
        _ => {}
    }
}

/// What Pod Security `restricted` would say of a pod of ours, and what we ask of it beyond: numeric users, a read-only
/// root, requests and limits, no token.
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
    ask(pod["automountServiceAccountToken"] == false, "automountServiceAccountToken");
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

/// Says what does not hold together: names that lead nowhere, selectors that select nothing, ports that nobody has.
fn loose_ends(objects: &Objects) -> Vec<String> {
    let mut loose = Vec::new();
    let mut ask = |holds: bool, what: String| {
        if !holds {
            loose.push(what);
        }
    };
    let namespace = text(&objects.only("Service")["metadata"]["namespace"]);
    for object in &objects.0 {
        let at = &object["metadata"]["namespace"];
        ask(at.is_null() || at == namespace, format!("{} is in namespace {at}", title(object)));
    }
    ask(objects.named("Namespace", namespace).is_some(), format!("no Namespace {namespace}"));

    let deployment = objects.only("Deployment");
    let template = &deployment["spec"]["template"];
    let (pod, pod_labels) = (&template["spec"], labels_of(&template["metadata"]["labels"]));
    let container = &pod["containers"][0];
    let port = |name: &Value| items(&container["ports"]).iter().find(|port| port["name"] == *name);
    let exists = |kind: &str, name: &Value| name.as_str().is_some_and(|name| objects.named(kind, name).is_some());
    ask(exists("ServiceAccount", &pod["serviceAccountName"]), "ServiceAccount of the pods".into());
    ask(exists("PriorityClass", &pod["priorityClassName"]), "PriorityClass of the pods".into());

    let mut mounted = BTreeSet::new();
    for volume in items(&pod["volumes"]) {
        let name = text(&volume["name"]);
        if !volume["configMap"].is_null() {
            ask(exists("ConfigMap", &volume["configMap"]["name"]), format!("ConfigMap of volume {name}"));
        }
        if !volume["secret"].is_null() && objects.kind("Certificate").next().is_some() {
            let secret = &volume["secret"]["secretName"];
            let issued = objects.kind("Certificate").any(|certificate| certificate["spec"]["secretName"] == *secret);
            ask(issued, format!("Certificate for volume {name}"));
        }
        let mount = items(&container["volumeMounts"]).iter().find(|mount| mount["name"] == name);
        ask(mount.is_some(), format!("mount of volume {name}"));
        mounted.extend(mount.map(|mount| text(&mount["mountPath"])));
    }
    for argument in items(&container["args"]).iter().map(text) {
        let Some((flag, value)) = argument.split_once('=') else { continue };
        if value.starts_with('/') {
            let directory = Path::new(value).parent().and_then(Path::to_str).unwrap_or_default();
            ask(mounted.contains(directory), format!("{flag} lies in no mount"));
        } else if let Some((_, number)) = value.rsplit_once(':') {
            let declared =
                items(&container["ports"]).iter().any(|port| port["containerPort"].as_u64() == number.parse().ok());
            ask(declared, format!("{flag} is no declared port"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe"] {
        ask(port(&container[probe]["httpGet"]["port"]).is_some(), format!("port of the {probe}"));
    }

    let service = objects.only("Service");
    let pods_of = |selector: &Value| selects(&json!({"matchLabels": selector}), &pod_labels);
    ask(pods_of(&service["spec"]["selector"]), "Service selects no pod".into());
    ask(selects(&deployment["spec"]["selector"], &pod_labels), "Deployment selects no pod".into());
    for constraint in items(&pod["topologySpreadConstraints"]) {
        ask(selects(&constraint["labelSelector"], &pod_labels), "spread counts no pod".into());
    }
    let budget = objects.only("PodDisruptionBudget");
    ask(selects(&budget["spec"]["selector"], &pod_labels), "PodDisruptionBudget selects no pod".into());
    let network = objects.only("NetworkPolicy");
    ask(selects(&network["spec"]["podSelector"], &pod_labels), "NetworkPolicy selects no pod".into());
    for rule in items(&network["spec"]["ingress"]).iter().flat_map(|rule| items(&rule["ports"])) {
        ask(port(&rule["port"]).is_some(), "NetworkPolicy opens a port that nobody has".into());
    }

    for webhook in objects.webhooks() {
        let target = &webhook["clientConfig"]["service"];
        let name = text(&webhook["name"]);
        ask(target["name"] == service["metadata"]["name"], format!("{name}: Service"));
        ask(target["namespace"] == namespace, format!("{name}: namespace of the Service"));
        let open = items(&service["spec"]["ports"]).iter().find(|open| open["port"] == target["port"]);
        ask(open.is_some_and(|open| port(&open["targetPort"]).is_some()), format!("{name}: port"));
    }
    let bindings = ["Validating", "Mutating"]
        .map(|kind| objects.kind(&format!("{kind}AdmissionPolicyBinding")).collect::<Vec<_>>());
    for binding in bindings.concat() {
        let policy = &binding["spec"]["policyName"];
        let kind = text(&binding["kind"]).trim_end_matches("Binding");
        ask(exists(kind, policy), format!("{} binds nothing", title(binding)));
        let params = &binding["spec"]["paramRef"];
        if !params.is_null() {
            let there = exists("ConfigMap", &params["name"]) && params["namespace"] == namespace;
            ask(there, format!("parameters of {}", title(binding)));
        }
        let exempt = binding.pointer("/spec/matchResources/namespaceSelector/matchExpressions/0/values");
        let own = exempt.is_none_or(|values| *values == json!([namespace, keys::KUBE_SYSTEM]));
        ask(own, format!("{}: own namespace is not left out", title(binding)));
    }
    for certificate in objects.kind("Certificate") {
        let issuer = &certificate["spec"]["issuerRef"]["name"];
        ask(exists("Issuer", issuer), format!("{}: issuer", title(certificate)));
    }
    loose
}

/// Says where the certificate chain does not reach the API server's call: names, injected CA, issuer.
fn broken_trust(objects: &Objects) -> Vec<String> {
    let service = &objects.only("Service")["metadata"];
    let (name, namespace) = (text(&service["name"]), text(&service["namespace"]));
    let mut broken = Vec::new();
    let mut ask = |holds: bool, what: &str| {
        if !holds {
            broken.push(what.to_owned());
        }
    };
    let (authorities, leaves): (Vec<_>, Vec<_>) =
        objects.kind("Certificate").partition(|certificate| certificate["spec"]["isCA"] == true);
    let ([authority], [leaf]) = (authorities.as_slice(), leaves.as_slice()) else {
        return vec!["one CA certificate and one leaf".to_owned()];
    };
    let called = json!([format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")]);
    ask(leaf["spec"]["dnsNames"] == called, "dnsNames");
    let demanded = items(&objects.only("Deployment")["spec"]["template"]["spec"]["containers"][0]["env"]);
    let demanded = demanded.iter().find(|variable| variable["name"] == "COFFERDAM_WEBHOOK_TLS_SERVER_NAME");
    ask(demanded.is_some_and(|variable| variable["value"] == called[0]), "name that the program demands");
    let injected = format!("{namespace}/{}", text(&authority["metadata"]["name"]));
    for kind in WEBHOOK_CONFIGURATIONS {
        let annotations = &objects.only(kind)["metadata"]["annotations"];
        ask(annotations["cert-manager.io/inject-ca-from"] == injected, "inject-ca-from");
    }
    let issuer = |certificate: &Value| objects.named("Issuer", text(&certificate["spec"]["issuerRef"]["name"]));
    ask(issuer(authority).is_some_and(|issuer| issuer["spec"] == json!({"selfSigned": {}})), "issuer of the CA");
    let authority_secret = json!({"ca": {"secretName": authority["spec"]["secretName"]}});
    ask(issuer(leaf).is_some_and(|issuer| issuer["spec"] == authority_secret), "issuer of the leaf");
    for webhook in objects.webhooks() {
        let own = items(&webhook["namespaceSelector"]["matchExpressions"]).iter().any(|expression| {
            expression["key"] == "kubernetes.io/metadata.name"
                && expression["operator"] == "NotIn"
                && expression["values"] == json!([namespace, "kube-system"])
        });
        ask(own, "own namespace is not left out");
    }
    broken
}

/// A kustomization of somebody else: `settings` over the base and cert-manager. Returns its directory.
fn overlay(name: &str, settings: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).expect("the test's directory is writable");
    let directory = directory.canonicalize().expect("it was just made");
    // Kustomize takes relative paths only.
    let up = "../".repeat(directory.components().count() - 1);
    let root = manifests();
    let root = format!("{up}{}", root.strip_prefix("/").expect("it is absolute").display());
    let text = format!("{settings}resources: [{root}/base]\ncomponents: [{root}/components/cert-manager]\n");
    fs::write(directory.join("kustomization.yaml"), text.replace("NAMES", &format!("{root}/names")))
        .expect("the test's directory is writable");
    directory
}

#[test]
fn everything_that_is_named_is_there() {
    for directory in ["base", "overlays/cert-manager", "overlays/mutating-admission-policy", "examples/renamed"] {
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
        let object = objects.0.iter_mut().find(|object| object["kind"] == kind).expect("the base has one");
        *object.pointer_mut(field).unwrap_or_else(|| panic!("{kind} has no {field}")) = broken;
        assert!(!loose_ends(&objects).is_empty(), "{kind} {field}");
    }
}

#[test]
fn the_certificate_is_valid_for_what_api_servers_call() {
    assert_eq!(broken_trust(&Objects::of("overlays/cert-manager")), Vec::<String>::new());
    assert_eq!(broken_trust(&Objects::of("examples/renamed")), Vec::<String>::new());
}

#[test]
fn b97_names_stay_in_step_however_an_overlay_renames() {
    for (directory, settings, service, namespace) in [
        ("renamed-both", "namespace: guard\nnamePrefix: acme-\n", "acme-cofferdam-webhook", "guard"),
        ("renamed-namespace", "namespace: guard\n", "cofferdam-webhook", "guard"),
        ("renamed-prefix", "namePrefix: acme-\n", "acme-cofferdam-webhook", "cofferdam-system"),
        ("renamed-suffix", "nameSuffix: -two\n", "cofferdam-webhook-two", "cofferdam-system"),
    ] {
        let objects = Objects::render(&overlay(directory, &format!("{settings}transformers: [NAMES]\n")));
        let metadata = &objects.only("Service")["metadata"];
        assert_eq!((text(&metadata["name"]), text(&metadata["namespace"])), (service, namespace), "{directory}");
        assert_eq!(loose_ends(&objects), Vec::<String>::new(), "{directory}");
        assert_eq!(broken_trust(&objects), Vec::<String>::new(), "{directory}");
    }
}

#[test]
fn a_renamed_overlay_that_forgets_its_names_is_seen() {
    let objects = Objects::render(&overlay("renamed-forgotten", "namespace: guard\nnamePrefix: acme-\n"));
    let mut expected = vec!["dnsNames", "name that the program demands", "inject-ca-from", "inject-ca-from"];
    expected.extend(objects.webhooks().map(|_| "own namespace is not left out"));
    assert_eq!(broken_trust(&objects), expected);
}

#[test]
fn a_renewed_leaf_has_a_new_key_and_a_renewed_ca_the_old_one() {
    let objects = Objects::of("overlays/cert-manager");
    for (name, rotation) in [("cofferdam-webhook", "Always"), ("cofferdam-ca", "Never")] {
        let spec = &objects.named("Certificate", name).expect("the overlay has it")["spec"];
        assert_eq!(spec["privateKey"]["rotationPolicy"], rotation, "{name}");
        // In the form in which cert-manager writes it back.
        for period in ["duration", "renewBefore"] {
            let period = text(&spec[period]);
            assert!(period.ends_with("h0m0s"), "{name}: {period}");
        }
    }
}

/// The webhooks that would be shown an object with these labels, in a namespace with those.
fn shown<'a>(webhooks: impl Iterator<Item = &'a Value>, namespace: &Labels, object: &Labels) -> Vec<&'a str> {
    webhooks
        .filter(|webhook| {
            selects(&webhook["namespaceSelector"], namespace) && selects(&webhook["objectSelector"], object)
        })
        .map(|webhook| text(&webhook["name"]))
        .collect()
}

#[test]
fn b89_no_pod_is_shown_to_two_entries_and_none_that_a_cluster_needs_to_start_to_any() {
    let objects = Objects::of("overlays/cert-manager");
    let sessions = |name, value| labels(&[("kubernetes.io/metadata.name", name), ("cofferdam.dev/sessions", value)]);
    let ordinary = |name| labels(&[("kubernetes.io/metadata.name", name)]);
    let plain = labels(&[("app", "x")]);
    let session = labels(&[("cofferdam.dev/session", "abc")]);
    let opted_in = labels(&[("cofferdam.dev/session", "")]);
    let shipped = labels_of(&objects.named("Namespace", "cofferdam-sessions").expect("it ships")["metadata"]["labels"]);
    // Who is shown its creation, and who its update; nobody holds up an update where nothing is enforced.
    for (namespace, pod, created, updated) in [
        (shipped, &plain, &["enforced.cofferdam.dev"][..], &["enforced.pods.cofferdam.dev"][..]),
        (sessions("team", "enforced"), &plain, &["enforced.cofferdam.dev"], &["enforced.pods.cofferdam.dev"]),
        (sessions("team", "enforced"), &session, &["enforced.cofferdam.dev"], &["enforced.pods.cofferdam.dev"]),
        (sessions("team", "warn"), &plain, &["warn.cofferdam.dev"], &[]),
        (sessions("team", "warn"), &session, &["warn.cofferdam.dev"], &[]),
        (ordinary("default"), &session, &["labelled.cofferdam.dev"], &["labelled.pods.cofferdam.dev"]),
        (ordinary("default"), &opted_in, &["labelled.cofferdam.dev"], &["labelled.pods.cofferdam.dev"]),
        (ordinary("default"), &plain, &[], &[]),
        (ordinary("cert-manager"), &plain, &[], &[]),
        (ordinary("kube-system"), &session, &[], &[]),
        (sessions("kube-system", "enforced"), &plain, &[], &[]),
        (sessions("kube-system", "warn"), &plain, &[], &[]),
        (ordinary("cofferdam-system"), &session, &[], &[]),
        (sessions("cofferdam-system", "enforced"), &plain, &[], &[]),
    ] {
        let of_pods = objects.validating().iter().filter(|webhook| webhook["rules"][0]["resources"] == json!(["pods"]));
        assert_eq!(shown(objects.mutating().iter(), &namespace, pod), created, "{namespace:?} {pod:?}");
        assert_eq!(shown(of_pods, &namespace, pod), updated, "{namespace:?} {pod:?}");
        // One answer about a workload, wherever it is.
        let of_workloads = objects.validating().iter().filter(|webhook| webhook["failurePolicy"] == "Ignore");
        let name = namespace.get("kubernetes.io/metadata.name").map(String::as_str);
        let exempt = matches!(name, Some("kube-system" | "cofferdam-system"));
        assert_eq!(shown(of_workloads, &namespace, &plain).len(), usize::from(!exempt), "{namespace:?}");
    }
}

#[test]
fn the_program_and_the_entries_use_the_same_words() {
    let objects = Objects::of("overlays/cert-manager");
    for webhook in objects.webhooks() {
        let expressions = items(&webhook["namespaceSelector"]["matchExpressions"]);
        assert_eq!(expressions[0]["values"], json!([keys::SYSTEM_NAMESPACE, keys::KUBE_SYSTEM]));
        assert_eq!(expressions[1]["key"], keys::SESSIONS);
        if let Some(expression) = items(&webhook["objectSelector"]["matchExpressions"]).first() {
            assert_eq!(expression["key"], keys::SESSION);
        }
        let path = text(&webhook["clientConfig"]["service"]["path"]);
        let scope = text(&webhook["name"]).split('.').next().expect("a name has a first part");
        assert!(path.ends_with(&format!("/{scope}")), "{path}");
        let expected = if scope == "labelled" { json!(["enforced", "warn"]) } else { json!([scope]) };
        assert_eq!(expressions[1]["values"], expected, "{path}");
    }
    for (policy, key) in [("cofferdam-session-label", keys::SESSIONS), ("cofferdam-session-selector", keys::SESSION)] {
        let policy = objects.named("ValidatingAdmissionPolicy", policy).expect("the policy is shipped").to_string();
        assert!(policy.contains(&format!("['{key}']")), "{policy}");
    }
    let asks = objects.validating().last().expect("there are some")["matchConditions"].to_string();
    assert!(asks.contains(&format!("'{}'", keys::SESSION)), "{asks}");
}

/// Operations and resources that a webhook is registered for, as `OPERATION group/resource`.
fn registered(webhook: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rule in items(&webhook["rules"]) {
        assert_eq!((&rule["apiVersions"], &rule["scope"]), (&json!(["v1"]), &json!("Namespaced")));
        for operation in items(&rule["operations"]) {
            for resource in items(&rule["resources"]) {
                found.insert(format!("{} {}/{}", text(operation), text(&rule["apiGroups"][0]), text(resource)));
            }
        }
    }
    found
}

#[test]
fn a_pod_is_judged_by_the_admission_policies_where_an_entry_shows_it_to_the_webhook() {
    let objects = Objects::of("overlays/cert-manager");
    let sessions = |name, value| labels(&[("kubernetes.io/metadata.name", name), ("cofferdam.dev/sessions", value)]);
    let ordinary = |name| labels(&[("kubernetes.io/metadata.name", name)]);
    let (plain, session) = (labels(&[("app", "x")]), labels(&[("cofferdam.dev/session", "")]));
    for (namespace, pod, kind) in [
        (sessions("team", "enforced"), &plain, Some("enforced")),
        (sessions("team", "enforced"), &session, Some("enforced")),
        (sessions("team", "warn"), &session, None),
        (ordinary("default"), &session, Some("labelled")),
        (ordinary("default"), &plain, None),
        (ordinary("kube-system"), &session, None),
        (sessions("cofferdam-system", "enforced"), &plain, None),
    ] {
        let judged: BTreeSet<_> = objects
            .kind("ValidatingAdmissionPolicyBinding")
            .filter(|binding| {
                let matched = &binding["spec"]["matchResources"];
                text(&binding["spec"]["policyName"]).starts_with("cofferdam-session-")
                    && matched.is_object()
                    && selects(&matched["namespaceSelector"], &namespace)
                    && selects(&matched["objectSelector"], pod)
            })
            .map(|binding| text(&binding["metadata"]["name"]))
            .collect();
        let expected: Vec<_> = ["containers", "pod", "resources"]
            .into_iter()
            .filter_map(|policy| kind.map(|kind| format!("cofferdam-session-{policy}-{kind}")))
            .collect();
        assert!(judged.iter().eq(&expected), "{namespace:?} {pod:?}: {judged:?}");
    }
    for (policy, words) in [
        ("cofferdam-keys", &[keys::SESSION, keys::PROFILE, keys::HARDENED, keys::CHANGES, keys::ENTRY][..]),
        ("cofferdam-keys", &[keys::BODY_URL, keys::BODY_SHA256, keys::BODY_TOKEN_SECRET]),
        ("cofferdam-reports", &[keys::ENDPOINTS]),
        ("cofferdam-session-containers", &[keys::PROFILE, keys::MIRROR_POD, keys::KUBELETS, keys::FETCH_CONTAINER]),
    ] {
        let policy = objects.named("ValidatingAdmissionPolicy", policy).expect("the policy is shipped").to_string();
        for word in words {
            assert!(policy.contains(&format!("'{word}'")), "{word} is not in {policy}");
        }
    }
}

#[test]
fn every_refusal_of_the_admission_policies_says_by_which_rule() {
    let objects = Objects::of("base");
    let mut stated = BTreeSet::new();
    for policy in objects.kind("ValidatingAdmissionPolicy") {
        assert_eq!(policy["spec"]["failurePolicy"], "Fail");
        for validation in items(&policy["spec"]["validations"]) {
            let message = text(&validation["message"]);
            let rule = message.rsplit_once(" (").and_then(|(_, rule)| rule.strip_suffix(')'));
            let rule = rule.unwrap_or_else(|| panic!("{message:?} names no rule"));
            assert!(message.contains(": ") && message.len() <= 256, "{message}");
            stated.insert(rule.to_owned());
        }
    }
    let mut known: BTreeSet<_> =
        RULES.iter().filter(|rule| !matches!(rule.cel, Cel::WebhookOnly(_))).map(|rule| rule.name.to_owned()).collect();
    // What keeps any rule from being applied, and what is no rule about a new pod.
    known.extend(["pod", "keys", "reports"].map(str::to_owned));
    assert_eq!(stated, known);
}

#[test]
fn b22_b91_every_entry_that_enforces_fails_closed_and_none_has_a_side_effect() {
    let objects = Objects::of("overlays/cert-manager");
    let mut paths = Vec::new();
    for webhook in objects.webhooks() {
        let name = text(&webhook["name"]);
        let only_tells = name.starts_with("warn.") || name.contains(".workloads.");
        assert_eq!(webhook["failurePolicy"], if only_tells { "Ignore" } else { "Fail" }, "{name}");
        assert_eq!(webhook["sideEffects"], "None");
        assert_eq!(webhook["timeoutSeconds"], 3);
        assert_eq!(webhook["matchPolicy"], "Equivalent");
        assert_eq!(webhook["admissionReviewVersions"], json!(["v1"]));
        paths.push(text(&webhook["clientConfig"]["service"]["path"]));
    }
    for webhook in objects.mutating() {
        assert_eq!(webhook["reinvocationPolicy"], "IfNeeded");
    }
    let expected = ["mutate/enforced", "mutate/warn", "mutate/labelled", "validate/enforced", "validate/labelled"];
    assert_eq!(paths[..5], expected.map(|path| format!("/{path}")));
    assert_eq!(paths[5..], ["/validate/enforced", "/validate/warn", "/validate/labelled"]);
}

#[test]
fn b28_b32_what_changes_a_pod_is_registered_and_what_keeps_it_going_is_not() {
    let objects = Objects::of("overlays/cert-manager");
    for webhook in objects.mutating() {
        let expected = ["CREATE /pods", "UPDATE /pods/ephemeralcontainers", "UPDATE /pods/resize"];
        assert_eq!(registered(webhook), expected.map(str::to_owned).into(), "{}", webhook["name"]);
    }
    for webhook in objects.validating() {
        let registered = registered(webhook);
        if text(&webhook["name"]).contains(".pods.") {
            assert_eq!(registered, ["UPDATE /pods".to_owned()].into());
            let conditions = items(&webhook["matchConditions"]);
            let expression = text(&conditions[0]["expression"]);
            for field in ["containers", "initContainers", "tolerations", "nodeName", "nodeSelector", "affinity"] {
                assert!(
                    expression.contains(&format!("spec.{field}")) || expression.contains(&format!("spec.?{field}"))
                );
            }
            assert!(conditions.len() == 1 && !expression.contains("metadata"), "{expression}");
        } else {
            assert_eq!(registered.len(), 14, "{registered:?}");
        }
    }
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
    let objects = Objects::of("overlays/cert-manager");
    for workload in objects.kind("Deployment").chain(objects.kind("DaemonSet")) {
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
    let objects = Objects::of("overlays/cert-manager");
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
    let network = &objects.only("NetworkPolicy")["spec"];
    assert_eq!(network["policyTypes"], json!(["Ingress", "Egress"]));
    assert!(network["egress"].is_null(), "Egress without a rule is none");
}

#[test]
fn every_object_says_what_it_is_part_of() {
    for directory in
        ["base", "sessions", "overlays/cert-manager", "overlays/mutating-admission-policy", "examples/renamed"]
    {
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

#[test]
fn an_image_is_set_where_kustomize_users_set_it() {
    let images = "images: [{name: cofferdam, newName: registry.example/guard, newTag: v9}]\n";
    let pod_image = |objects: &Objects| {
        let container = objects.only("Deployment")["spec"]["template"]["spec"]["containers"][0].clone();
        let variable = items(&container["env"]).iter().find(|variable| variable["name"] == "COFFERDAM_WEBHOOK_IMAGE");
        let told = variable.expect("the program is told its image")["value"].clone();
        (text(&container["image"]).to_owned(), text(&told).to_owned())
    };
    let both = |image: &str| (image.to_owned(), image.to_owned());
    assert_eq!(pod_image(&Objects::of("base")), both("cofferdam:dev"));
    let told = Objects::render(&overlay("other-image", &format!("{images}transformers: [NAMES]\n")));
    assert_eq!(pod_image(&told), both("registry.example/guard:v9"));
    let forgotten = Objects::render(&overlay("image-forgotten", images));
    assert_eq!(pod_image(&forgotten), ("registry.example/guard:v9".to_owned(), "cofferdam:dev".to_owned()));
}

/// What an apply would send again each time: fields that others own, nothings that the API server does not store, and
/// entries of lists without a merge key that lack what the API server fills in.
#[test]
fn a_second_apply_has_nothing_to_change() {
    for directory in ["overlays/cert-manager", "examples/renamed"] {
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
                "MutatingWebhookConfiguration",
                "ValidatingWebhookConfiguration",
                "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding",
            ];
            assert_eq!(namespaced, !cluster.contains(&text(&object["kind"])), "{directory}: {}", title(&object));
        }
    }
}
