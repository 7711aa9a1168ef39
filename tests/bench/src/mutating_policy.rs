//! The overlay whose policy makes the API server do a part of the hardening itself, held in one namespace only, so that
//! one cluster shows creations with it and without.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use cofferdam_e2e::install::overlay;
use cofferdam_e2e::kubectl::Kubectl;
use cofferdam_e2e::namespace::{PATIENCE, TestNamespace};
use cofferdam_e2e::wait::until;
use serde_json::{Value, json};

/// Whether this API server knows mutating policies: from Kubernetes 1.36 on.
///
/// # Errors
/// In kubectl's words.
pub fn is_known(kubectl: &Kubectl) -> Result<bool> {
    let kinds = kubectl.run(["api-resources", "--api-group=admissionregistration.k8s.io", "--output=name"])?;
    Ok(kinds.contains("mutatingadmissionpolicies"))
}

/// Has the policy hold in `namespace`, and then the webhook and all that the label brings as well.
///
/// # Errors
/// When the overlay holds no such policy, or the API server does not heed it.
pub fn hold_in(kubectl: &Kubectl, namespace: &TestNamespace) -> Result<()> {
    let rendered = kubectl.run([Path::new("kustomize"), &overlay("mutating-admission-policy")])?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&rendered).context("the overlay is no YAML")?;
    let find =
        |kind| objects.iter().find(|object| object["kind"] == kind).cloned().context("the overlay has no policy");
    let mut binding = find("MutatingAdmissionPolicyBinding")?;
    binding["metadata"]["name"] = namespace.name().into();
    binding["spec"]["matchResources"] =
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name()}}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [find("MutatingAdmissionPolicy")?, binding]});
    kubectl.run_with(["apply", "--filename=-"], &list.to_string())?;
    // What the policy does is seen only while the webhook does not do it too.
    comes_back_with(namespace, "/spec/automountServiceAccountToken", &json!(false))?;
    let labels = ["cofferdam.dev/sessions=enforced", "pod-security.kubernetes.io/enforce=restricted"];
    kubectl.run([&["label", "namespace", namespace.name()], labels.as_slice()].concat())?;
    comes_back_with(namespace, "/spec/securityContext/runAsUser", &json!(1000))
}

/// Waits until a pod that says nothing would be created with that value.
fn comes_back_with(namespace: &TestNamespace, field: &str, value: &Value) -> Result<()> {
    until(&format!("a pod with {field} {value}"), PATIENCE, || {
        let pod = namespace.json(["run", "probe", "--image=cofferdam.test/none:1", "--dry-run=server"])?;
        ensure!(pod.pointer(field) == Some(value), "it came back as {pod}");
        Ok(())
    })
}
