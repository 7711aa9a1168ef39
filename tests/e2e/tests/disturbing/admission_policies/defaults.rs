//! The mutating policy of the overlay: the API server does a part of the hardening itself, and the webhook's answer is the
//! same as without it.

use cofferdam_e2e::dry_run;
use cofferdam_e2e::install::overlay;
use cofferdam_e2e::namespace::PATIENCE;
use cofferdam_e2e::wait::until;
use cofferdam_model::{Operation, Request, Scope, User, Verdict, harden, keys};
use serde_json::{Value, json};

use super::{loosened, policy, stage};

/// The policy of the overlay that the test looks at.
const NAME: &str = "cofferdam-session-defaults";

/// A namespace in which it holds and no other policy does.
const MUTATED: &str = "policies-mutated";

/// What it puts in for a pod, and takes nobody's word for.
const FIELDS: [&str; 9] = [
    "/spec/automountServiceAccountToken",
    "/spec/enableServiceLinks",
    "/spec/shareProcessNamespace",
    "/spec/activeDeadlineSeconds",
    "/spec/restartPolicy",
    "/spec/securityContext/runAsNonRoot",
    "/spec/securityContext/seccompProfile",
    "/spec/containers/0/securityContext/capabilities",
    "/spec/initContainers/0/securityContext/allowPrivilegeEscalation",
];

/// Has it hold in [`MUTATED`]; `false` where the API server knows no such policies.
fn installed() -> bool {
    let kubectl = &stage().kubectl;
    let kinds = kubectl.run(["api-resources", "--api-group=admissionregistration.k8s.io", "--output=name"]).unwrap();
    if !kinds.contains("mutatingadmissionpolicies") {
        return false;
    }
    let rendered = kubectl.run([std::path::Path::new("kustomize"), &overlay("mutating-admission-policy")]).unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&rendered).unwrap();
    let mut shipped = objects.into_iter().find(|object| object["metadata"]["name"] == NAME).unwrap();
    // A mistake in it is to be seen here.
    shipped["spec"]["failurePolicy"] = json!("Fail");
    let binding = json!({"apiVersion": shipped["apiVersion"], "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": MUTATED}, "spec": {"policyName": NAME,
            "paramRef": {"name": "cofferdam-policy-params", "namespace": "cofferdam-system", "parameterNotFoundAction": "Deny"},
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MUTATED}}}}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MUTATED}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [namespace, shipped, binding]});
    kubectl.run_with(["apply", "--filename=-"], &list.to_string()).unwrap();
    until("the policy is heeded", PATIENCE, || {
        let namespace = format!("--namespace={MUTATED}");
        let pod = kubectl.json(["run", "probe", "--image=cofferdam.test/none:1", "--dry-run=server", &namespace])?;
        anyhow::ensure!(pod["spec"]["automountServiceAccountToken"] == false, "it came back as it was");
        Ok(())
    })
    .unwrap();
    true
}

/// What the webhook would make of what the API server shows it.
fn said(stored: &Value) -> Verdict {
    let mut pod = stored.clone();
    pod.as_object_mut().unwrap().remove("status");
    for filled_in_later in ["uid", "creationTimestamp", "generation", "managedFields", "namespace"] {
        pod["metadata"].as_object_mut().unwrap().remove(filled_in_later);
    }
    let user = User { name: "jane", groups: &[] };
    let (namespace, scope, operation) = ("default", Scope::Enforced, Operation::Create);
    harden(&Request { uid: Some("u-1"), namespace, scope, user, operation, pod: &pod }, policy())
}

#[test]
fn with_a_part_done_by_the_api_server_the_webhook_makes_the_same_of_a_pod_and_says_the_same() {
    if !installed() {
        return;
    }
    let pods = loosened::mixed(200);
    let plain = dry_run::create(stage(), "default", &pods).unwrap();
    let mutated = dry_run::create(stage(), MUTATED, &pods).unwrap();
    let (mut wrong, mut hardened) = (Vec::new(), 0);
    for (plain, mutated) in plain.iter().zip(&mutated) {
        // The API server's validation may mind what only the webhook would have repaired.
        let (Ok(plain), Ok(mutated)) = (plain, mutated) else { continue };
        match (said(plain), said(mutated)) {
            (Verdict::Hardened(mut without), Verdict::Hardened(mut with)) => {
                hardened += 1;
                for pod in [&mut without.pod, &mut with.pod] {
                    pod["metadata"]["annotations"].as_object_mut().unwrap().remove(keys::CHANGES);
                }
                if without.pod != with.pod || without.warnings != with.warnings {
                    wrong.push(format!(
                        "without {} {:?}\nwith {} {:?}",
                        without.pod, without.warnings, with.pod, with.warnings
                    ));
                }
                if with.changes.len() >= without.changes.len() {
                    wrong.push(format!("nothing was done before: {mutated}"));
                }
                for field in FIELDS.iter().filter(|_| with.warnings.is_empty()) {
                    if mutated.pointer(field) != with.pod.pointer(field) {
                        wrong.push(format!("{field} is left to the webhook in {mutated}"));
                    }
                }
            }
            (Verdict::Refused(without), Verdict::Refused(with)) if without == with => {}
            (without, with) => wrong.push(format!("without {without:?}\nwith {with:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(hardened > 80, "{hardened} were hardened");
}
