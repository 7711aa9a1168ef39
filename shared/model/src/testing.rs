//! What the tests of this crate share: pods, and one rule or the whole table run over them.

use serde_json::{Value, json};

use crate::{
    change::{Action, Change},
    harden::{Hardened, Verdict, harden},
    pod::Draft,
    policy::{Policy, Profile},
    refusal::Refusal,
    request::{Operation, Request, Scope, User},
    rules::Rule,
    rules::{Context, Occasion},
    session::SessionId,
    warning::warnings,
};

/// The uid of every request in these tests.
pub(crate) const UID: &str = "705ab4f5-6393-11e8-b7cc-42010a800002";

/// The namespace of every request in these tests.
pub(crate) const NAMESPACE: &str = "cofferdam-sessions";

/// Who asks in these tests.
pub(crate) const JANE: User<'static> = User { name: "jane", groups: &[] };

/// Two certificates of authorities, in PEM.
pub(crate) const CERTIFICATES: [&str; 2] = [
    "\
-----BEGIN CERTIFICATE-----
MIIBMjCB5aADAgECAhQoqzLV2j9HXUML1/WTd+wHqeAoPjAFBgMrZXAwDjEMMAoG
A1UEAwwDb25lMCAXDTI2MTEzMDExMzEwNloYDzIxMjYxMTA2MTEzMTA2WjAOMQww
CgYDVQQDDANvbmUwKjAFBgMrZXADIQCCenIZ4RGxnYve6n4mD5Y/TrhZZWaVW9Eo
wQS9O4OAuaNTMFEwHQYDVR0OBBYEFPhg28j2H0EdiwZulYHM5JVJMmksMB8GA1Ud
IwQYMBaAFPhg28j2H0EdiwZulYHM5JVJMmksMA8GA1UdEwEB/wQFMAMBAf8wBQYD
K2VwA0EAvZaqJOfkotfDEmMtXxIgSUacSnBxS7lyjOheIqSvrfT6q0S7BwRL2dhy
bjb+K8wt0wUxJtkJCyMbjr2w+vA6Cw==
-----END CERTIFICATE-----
",
    "\
-----BEGIN CERTIFICATE-----
MIIBMjCB5aADAgECAhRwmQrzT4WEdfvkTkPnq6i1ej7ilTAFBgMrZXAwDjEMMAoG
A1UEAwwDdHdvMCAXDTI2MTEzMDExMzEwNloYDzIxMjYxMTA2MTEzMTA2WjAOMQww
CgYDVQQDDAN0d28wKjAFBgMrZXADIQBk88qdkcoS+5QjjCcuBuzaddC2LBtrypxI
ut3sTkWsgKNTMFEwHQYDVR0OBBYEFNbsN7TpaPVxsXE4FbIRw63RH3UbMB8GA1Ud
IwQYMBaAFNbsN7TpaPVxsXE4FbIRw63RH3UbMA8GA1UdEwEB/wQFMAMBAf8wBQYD
K2VwA0EAZtkRXtSdFmJ7bC7UqWLglMSsDKSCdLX2jfsrjwM/hKR1Cl0P9Le0ivp/
Z2d3WmjZ/sDyuItpEchatwq4UuGqAQ==
-----END CERTIFICATE-----
",
];

/// A pod with this spec.
pub(crate) fn pod(spec: Value) -> Value {
    let mut pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "generateName": "s-" } });
    pod["spec"] = spec;
    pod
}

/// What a rule made of a pod.
pub(crate) struct Applied {
    pub(crate) pod: Value,
    pub(crate) warnings: Vec<String>,
    pub(crate) changes: Vec<Change>,
}

impl Applied {
    /// The value at a JSON pointer below `/spec`.
    pub(crate) fn spec(&self, pointer: &str) -> &Value {
        self.pod.pointer(&format!("/spec{pointer}")).unwrap_or(&Value::Null)
    }

    /// The paths that were injected, in order.
    pub(crate) fn injected(&self) -> Vec<&str> {
        self.changes.iter().filter(|c| c.action == Action::Inject).map(|c| c.path.as_str()).collect()
    }
}

/// Runs one rule of the default profile.
pub(crate) fn apply(rule: &Rule, pod: &Value) -> Result<Applied, Refusal> {
    apply_with(rule, pod, &Profile::default())
}

/// Runs one rule of this profile.
pub(crate) fn apply_with(rule: &Rule, pod: &Value, profile: &Profile) -> Result<Applied, Refusal> {
    apply_all(&[*rule], pod, profile)
}

/// Runs several rules of this profile.
pub(crate) fn apply_all(rules: &[Rule], pod: &Value, profile: &Profile) -> Result<Applied, Refusal> {
    apply_under(rules, pod, profile, &Policy::built_in(), Occasion::Creation)
}

/// Runs several rules of this profile and policy on some occasion.
pub(crate) fn apply_under(
    rules: &[Rule],
    pod: &Value,
    profile: &Profile,
    policy: &Policy,
    occasion: Occasion,
) -> Result<Applied, Refusal> {
    let user = (occasion != Occasion::Audit).then_some(JANE);
    run(rules, pod, profile, policy, occasion, user)
}

/// Runs one rule of this profile on another occasion.
pub(crate) fn apply_on(occasion: Occasion, rule: &Rule, pod: &Value, profile: &Profile) -> Result<Applied, Refusal> {
    apply_under(&[*rule], pod, profile, &Policy::built_in(), occasion)
}

/// Runs one rule of this profile over a pod that this user creates.
pub(crate) fn apply_as(name: &str, rule: &Rule, pod: &Value, profile: &Profile) -> Result<Applied, Refusal> {
    let user = User { name, groups: &[] };
    run(&[*rule], pod, profile, &Policy::built_in(), Occasion::Creation, Some(user))
}

fn run(
    rules: &[Rule],
    pod: &Value,
    profile: &Profile,
    policy: &Policy,
    occasion: Occasion,
    user: Option<User<'_>>,
) -> Result<Applied, Refusal> {
    let session = SessionId::derive(UID);
    let context = Context {
        policy,
        profile_name: "default",
        profile,
        session: Some(&session),
        occasion,
        namespace: NAMESPACE,
        user,
    };
    let mut draft = Draft::new(pod);
    draft.find_containers();
    for rule in rules {
        draft.enter(rule.name);
        (rule.apply)(&mut draft, &context);
    }
    let (hardened, patch, changes) = draft.finish()?;
    // Whatever a rule does, the patch does it too.
    let mut patched = pod.clone();
    assert!(json_patch::patch(&mut patched, &patch).is_ok(), "{patch:?}");
    assert_eq!(patched, hardened, "{patch:?}");
    let pod = hardened;
    Ok(Applied { pod, warnings: warnings(&changes), changes })
}

/// The fields that a refusal names, in order.
pub(crate) fn fields(refusal: &Refusal) -> Vec<&str> {
    refusal.reasons.iter().map(|reason| reason.field.as_str()).collect()
}

/// The hardened pod by this policy; fails the test where it is anything else.
pub(crate) fn hardened_by(policy: &Policy, pod: &Value) -> Hardened {
    match harden(&create(pod), policy) {
        Verdict::Hardened(hardened) => hardened,
        other => panic!("{other:?}"),
    }
}

/// The fields that a refusal by this policy names; fails the test where the pod is not refused.
pub(crate) fn refused_by(policy: &Policy, pod: &Value) -> Vec<String> {
    match harden(&create(pod), policy) {
        Verdict::Refused(refusal) => fields(&refusal).into_iter().map(str::to_owned).collect(),
        other => panic!("{other:?}"),
    }
}

/// The verdict about a pod in an enforced namespace, by the built-in policy.
pub(crate) fn verdict(pod: &Value) -> Verdict {
    harden(&create(pod), &Policy::built_in())
}

/// The request to create a pod in an enforced namespace.
pub(crate) fn create(pod: &Value) -> Request<'_> {
    Request {
        uid: Some(UID),
        namespace: NAMESPACE,
        scope: Scope::Enforced,
        user: JANE,
        operation: Operation::Create,
        pod,
    }
}

/// The hardened pod; fails the test where it is anything else.
pub(crate) fn hardened(pod: &Value) -> Hardened {
    match verdict(pod) {
        Verdict::Hardened(hardened) => hardened,
        other => panic!("{other:?}"),
    }
}

/// The refusal; fails the test where the pod is not refused.
pub(crate) fn refused(pod: &Value) -> Refusal {
    match verdict(pod) {
        Verdict::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}
