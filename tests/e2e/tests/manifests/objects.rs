//! What kustomize renders, and how its objects are looked at.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use cofferdam_cluster::programs::Programs;
use cofferdam_cluster::progress::Progress;
use cofferdam_e2e::stage::kubernetes;
use serde_json::Value;

/// The kubectl that renders: `COFFERDAM_KUBECTL`, or the harness's of the Kubernetes version under test.
pub(crate) fn kubectl() -> &'static Path {
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

/// The manifests of the checkout.
pub(crate) fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests").canonicalize().expect("manifests/ is in the checkout")
}

/// Objects by what they are called; a list, because a rendering may hold one twice and a test wants to see that.
#[derive(Clone)]
pub(crate) struct Objects(pub(crate) Vec<Value>);

impl Objects {
    /// Renders a directory below `manifests/`.
    pub(crate) fn of(directory: &str) -> Self {
        Self::render(&manifests().join(directory))
    }

    pub(crate) fn render(directory: &Path) -> Self {
        let output = Command::new(kubectl()).arg("kustomize").arg(directory).output().expect("kubectl starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "kubectl kustomize {}: {errors}", directory.display());
        let text = String::from_utf8(output.stdout).expect("YAML is UTF-8");
        Self(serde_saphyr::from_multiple(&text).expect("kustomize writes YAML"))
    }

    pub(crate) fn kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |object| object["kind"] == kind)
    }

    pub(crate) fn named(&self, kind: &str, name: &str) -> Option<&Value> {
        self.kind(kind).find(|object| object["metadata"]["name"] == name)
    }

    /// Whether there is one of this kind and name.
    pub(crate) fn has(&self, kind: &str, name: &Value) -> bool {
        name.as_str().is_some_and(|name| self.named(kind, name).is_some())
    }

    /// What runs our programs.
    pub(crate) fn workloads(&self) -> impl Iterator<Item = &Value> {
        self.kind("Deployment").chain(self.kind("DaemonSet"))
    }

    /// The only object of its kind.
    pub(crate) fn only(&self, kind: &str) -> &Value {
        let found: Vec<_> = self.kind(kind).collect();
        assert_eq!(found.len(), 1, "objects of kind {kind}");
        found[0]
    }

    /// The only object of its kind that is of that program.
    pub(crate) fn of_program(&self, kind: &str, component: &str) -> &Value {
        let is_its = |object: &&Value| object["metadata"]["labels"]["app.kubernetes.io/component"] == component;
        let found: Vec<_> = self.kind(kind).filter(is_its).collect();
        assert_eq!(found.len(), 1, "objects of kind {kind} of {component}");
        found[0]
    }

    pub(crate) fn mutating(&self) -> &[Value] {
        items(&self.only("MutatingWebhookConfiguration")["webhooks"])
    }

    pub(crate) fn validating(&self) -> &[Value] {
        items(&self.only("ValidatingWebhookConfiguration")["webhooks"])
    }

    pub(crate) fn webhooks(&self) -> impl Iterator<Item = &Value> {
        self.mutating().iter().chain(self.validating())
    }
}

pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string"))
}

pub(crate) fn title(object: &Value) -> String {
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

pub(crate) type Labels = BTreeMap<String, String>;

pub(crate) fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn labels_of(value: &Value) -> Labels {
    serde_json::from_value(value.clone()).expect("labels are strings")
}

/// A `metav1.LabelSelector` as the API server reads it; one that is absent selects everything.
pub(crate) fn selects(selector: &Value, labels: &Labels) -> bool {
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
pub(crate) fn walk(value: &Value, path: &str, visit: &mut dyn FnMut(&str, &Value)) {
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

/// A kustomization of somebody else: `settings` over the base and cert-manager. Returns its directory.
pub(crate) fn overlay(name: &str, settings: &str) -> PathBuf {
    overlay_with(name, settings, &["cert-manager"])
}

/// The same over the base and these components.
pub(crate) fn overlay_with(name: &str, settings: &str, components: &[&str]) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).expect("the test's directory is writable");
    let directory = directory.canonicalize().expect("it was just made");
    // Kustomize takes relative paths only.
    let up = "../".repeat(directory.components().count() - 1);
    let root = manifests();
    let root = format!("{up}{}", root.strip_prefix("/").expect("it is absolute").display());
    let components: Vec<_> = components.iter().map(|name| format!("{root}/components/{name}")).collect();
    let text = format!("{settings}resources: [{root}/base]\ncomponents: [{}]\n", components.join(", "));
    fs::write(directory.join("kustomization.yaml"), text.replace("NAMES", &format!("{root}/names")))
        .expect("the test's directory is writable");
    directory
}
