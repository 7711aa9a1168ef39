//! Installing Cofferdam as its README says: through the manifests, next to a cert-manager that is there.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use cofferdam_model::policy::{Policy, params_config_map};

use crate::kubectl::Kubectl;
use crate::wait::until;

/// The image that the manifests name.
pub const IMAGE: &str = "cofferdam:dev";
/// The namespace that every pod of is hardened, as shipped.
pub const SESSIONS: &str = "cofferdam-sessions";
/// Where Cofferdam itself runs.
pub const SYSTEM: &str = "cofferdam-system";

/// What selects the webhook's replicas.
pub const REPLICAS: &str = "--selector=app.kubernetes.io/component=webhook";
/// What selects the agents.
pub const AGENTS: &str = "--selector=app.kubernetes.io/component=agent";

/// What makes a policy of one's own the one that is installed, over one of our overlays.
const KUSTOMIZATION: &str = "apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- ../../../manifests/overlays/OVERLAY
configMapGenerator:
- name: cofferdam-policy
  namespace: cofferdam-system
  behavior: replace
  files: [policy.yaml]
patches:
- path: policy-params.yaml
";

/// How long a part of the installation may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);

/// The folder of one overlay of the manifests.
#[must_use]
pub fn overlay(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/overlays").join(name)
}

/// The overlay for clusters with cert-manager, with `image` in place of [`IMAGE`].
///
/// # Errors
/// In kubectl's words.
pub fn render(kubectl: &Kubectl, image: &str) -> Result<String> {
    render_overlay(kubectl, "cert-manager", image)
}

/// An overlay, by its name, with `image` in place of [`IMAGE`].
///
/// # Errors
/// In kubectl's words.
pub fn render_overlay(kubectl: &Kubectl, name: &str, image: &str) -> Result<String> {
    Ok(with_image(kubectl.run([Path::new("kustomize"), &overlay(name)])?, image))
}

fn with_image(manifests: String, image: &str) -> String {
    // Where it runs, and where it puts itself into pods.
    let parts = ["image", "value"];
    parts.iter().fold(manifests, |text, key| text.replace(&format!("{key}: {IMAGE}"), &format!("{key}: {image}")))
}

/// An overlay of the manifests, by its name, with `image` and a policy of one's own, as `examples/complete` has it.
///
/// # Errors
/// When the policy does not load, or in kubectl's words.
pub fn render_with_policy(kubectl: &Kubectl, overlay: &str, image: &str, policy: &str) -> Result<String> {
    render_with(kubectl, overlay, image, policy, "")
}

/// The same, with more of a kustomization: its `patches` go on first.
///
/// # Errors
/// When the policy does not load, or in kubectl's words.
pub fn render_with(kubectl: &Kubectl, overlay: &str, image: &str, policy: &str, more: &str) -> Result<String> {
    let folder = tempfile::Builder::new().prefix("overlay-").tempdir_in(env!("CARGO_MANIFEST_DIR"))?;
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("policy.yaml", policy)?;
    let params = params_config_map(&Policy::parse("policy.yaml", policy)?, "cofferdam-policy-params", SYSTEM);
    write("policy-params.yaml", &params)?;
    write("kustomization.yaml", &format!("{}{more}", KUSTOMIZATION.replace("OVERLAY", overlay)))?;
    Ok(with_image(kubectl.run([Path::new("kustomize"), folder.path()])?, image))
}

/// Applies what was [rendered](render) and waits until a pod that is created now would be hardened.
///
/// # Errors
/// The first step that failed, in kubectl's words.
pub fn install(kubectl: &Kubectl, manifests: &str) -> Result<()> {
    kubectl.run_with(["apply", "--filename=-"], manifests)?;
    ready(kubectl)
}

/// Waits until the certificate is issued, the authority is in the webhook configurations and the replicas serve; then
/// until the API server really asks them, which it learns of a moment later.
///
/// # Errors
/// What did not come about.
pub fn ready(kubectl: &Kubectl) -> Result<()> {
    let limit = format!("--timeout={}s", PATIENCE.as_secs());
    let namespace = format!("--namespace={SYSTEM}");
    kubectl.run(["wait", &namespace, "--for=condition=Ready", "certificate/cofferdam-webhook", &limit])?;
    kubectl.run([
        "wait",
        "mutatingwebhookconfiguration/cofferdam-webhook",
        "validatingwebhookconfiguration/cofferdam-webhook",
        "--for=jsonpath={.webhooks[1].clientConfig.caBundle}",
        &limit,
    ])?;
    kubectl.run(["rollout", "status", &namespace, "deployment/cofferdam-webhook", &limit])?;
    kubectl.run(["rollout", "status", &namespace, "daemonset/cofferdam-agent", &limit])?;
    until("a pod is hardened on a dry run", PATIENCE, || {
        let pod = kubectl.json([
            "run",
            "probe",
            "--image=cofferdam.test/none:1",
            "--dry-run=server",
            &format!("--namespace={SESSIONS}"),
        ])?;
        ensure!(pod["spec"]["securityContext"]["runAsNonRoot"] == true, "it came back unhardened");
        Ok(())
    })
}

/// Takes Cofferdam away again, first what binds: without it no creation asks a webhook that is gone, or a policy whose
/// parameters are.
///
/// # Errors
/// In kubectl's words.
pub fn uninstall(kubectl: &Kubectl, manifests: &str) -> Result<()> {
    kubectl.run([
        "delete",
        "--ignore-not-found",
        "mutatingwebhookconfiguration/cofferdam-webhook",
        "validatingwebhookconfiguration/cofferdam-webhook",
    ])?;
    kubectl.run(["delete", "validatingadmissionpolicybindings", "--selector=app.kubernetes.io/part-of=cofferdam"])?;
    kubectl.run_with(["delete", "--ignore-not-found", "--filename=-"], manifests)?;
    Ok(())
}
