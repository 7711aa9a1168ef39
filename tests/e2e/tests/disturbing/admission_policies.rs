//! The admission policies alone, with nobody to harden a pod before: what they hold is what the rules hold. A cluster of
//! its own, without the webhook.
//!
//! Most pods are only asked about, by a server-side dry run.

use std::sync::OnceLock;

use anyhow::{Result, bail, ensure};
use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::progress::Progress;
use cofferdam_e2e::install;
use cofferdam_e2e::kubectl::{Answer, Kubectl};
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::stage::{Stage, kubernetes};
use cofferdam_e2e::wait::until;
use cofferdam_model::policy::{Policy, params};
use cofferdam_model::{Operation, Request, Scope, User, Verdict, harden};
use serde_json::{Value, json};

mod creations;
mod defaults;
mod hosts;
mod keys;
#[path = "../loosened/loosened.rs"]
mod loosened;
mod subresources;

/// What the API server judges by itself, and what it reads for that.
const IN_THE_API_SERVER: [&str; 4] =
    ["Namespace", "ConfigMap", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

/// Those that the shipped policy trusts with what our programs say of a session.
const AGENT: &str = "system:serviceaccount:cofferdam-system:cofferdam-agent";
const API: &str = "system:serviceaccount:cofferdam-system:cofferdam-api";

/// A namespace of which every pod is a session, without Pod Security, which would refuse first.
const NAMESPACE: &str = "policies";

/// A cluster with the admission policies of the manifests, each of which is heeded.
fn stage() -> &'static Stage {
    static STAGE: OnceLock<Stage> = OnceLock::new();
    STAGE.get_or_init(|| start().unwrap())
}

fn start() -> Result<Stage> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let options = Options { name: "e2e-policies".to_owned(), kubernetes: kubernetes(), ..Options::default() };
    let cluster = runtime.block_on(Cluster::up(&options, &Progress::new()))?;
    let kubectl = Kubectl::of(&cluster)?;
    let objects: Vec<Value> = serde_saphyr::from_multiple(&install::render(&kubectl, install::IMAGE)?)?;
    let mut items: Vec<Value> =
        objects.into_iter().filter(|object| IN_THE_API_SERVER.iter().any(|kind| object["kind"] == *kind)).collect();
    for item in items.iter_mut().filter(|item| item["metadata"]["name"] == "cofferdam-policy-params") {
        item["data"] = json!(params(policy()));
    }
    let manifests = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    kubectl.run_with(["apply", "--filename=-"], &manifests)?;
    let labelled = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"cofferdam.dev/sessions": "enforced"}}});
    kubectl.run_with(["apply", "--filename=-"], &labelled.to_string())?;
    let stage = Stage { cluster, kubectl, manifests };
    heeded(&stage)?;
    Ok(stage)
}

/// The policy whose parameters they read: the shipped profile `default`, and some that ask for more.
fn policy() -> &'static Policy {
    static POLICY: OnceLock<Policy> = OnceLock::new();
    POLICY.get_or_init(|| Policy::parse("policy.yaml", include_str!("admission_policies/policy.yaml")).unwrap())
}

/// Waits until the API server goes by every policy, which it learns of a moment after it is there.
fn heeded(stage: &Stage) -> Result<()> {
    let namespace = format!("--namespace={NAMESPACE}");
    let hard = hardened(&json!({"containers": [{"name": "app", "image": "cofferdam.test/none:1"}]}));
    let create = |pod: &Value, dry_run: &str| {
        stage.kubectl.ask(["create", &namespace, "--filename=-", dry_run], &pod.to_string())
    };
    until("the policies know their parameters", PATIENCE, || {
        let answer = create(&hard, "--dry-run=none")?;
        ensure!(answer.success || answer.stderr.contains("AlreadyExists"), "{}", answer.stderr);
        Ok(())
    })?;
    for (policy, pointer, loose) in [
        ("session-pod", "/spec/hostPID", json!(true)),
        ("session-containers", "/spec/containers/0/ports", json!([{"containerPort": 1, "hostPort": 1}])),
        ("session-resources", "/spec/containers/0/resources/limits/cpu", json!("64")),
    ] {
        let mut pod = hard.clone();
        loosened::set(&mut pod, pointer, loose);
        until(policy, PATIENCE, || refused_by(policy, &create(&pod, "--dry-run=server")?))?;
    }
    for (policy, arguments) in [
        ("keys", ["label", "--overwrite", "pod", "hard", "cofferdam.dev/profile=other"]),
        ("reports", ["annotate", "--overwrite", "pod", "hard", "cofferdam.dev/endpoints=forged"]),
    ] {
        until(policy, PATIENCE, || {
            let arguments = arguments.iter().copied().chain(["--dry-run=server", &namespace]);
            refused_by(policy, &stage.kubectl.ask(arguments, "")?)
        })?;
    }
    Ok(())
}

/// Whether it was this policy of ours that refused.
fn refused_by(policy: &str, answer: &Answer) -> Result<()> {
    let name = format!("ValidatingAdmissionPolicy 'cofferdam-{policy}'");
    if answer.success {
        bail!("it was not refused: {}", answer.stdout);
    }
    ensure!(answer.stderr.contains(&name), "{name} did not refuse it: {}", answer.stderr);
    Ok(())
}

/// The pod `hard` with this spec, as the webhook makes it.
fn hardened(spec: &Value) -> Value {
    hardened_by("default", spec)
}

/// The same by another profile.
fn hardened_by(profile: &str, spec: &Value) -> Value {
    let metadata = json!({"name": "hard", "labels": {"cofferdam.dev/profile": profile}});
    hardened_pod(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})).unwrap()
}

/// The pod as the webhook makes it; none where that refuses it.
fn hardened_pod(pod: &Value) -> Option<Value> {
    let user = User { name: "jane", groups: &[] };
    let (namespace, scope, operation) = (NAMESPACE, Scope::Enforced, Operation::Create);
    let request = Request { uid: Some("u-1"), namespace, scope, user, operation, pod };
    match harden(&request, policy()) {
        Verdict::Hardened(hardened) => Some(hardened.pod),
        _ => None,
    }
}
