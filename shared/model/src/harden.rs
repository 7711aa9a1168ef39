//! The decision: one pod in, a hardened pod or a refusal out. Pure; it never panics whatever the JSON holds.

use serde_json::Value;

use crate::{
    audit::loosened,
    change::{Change, tightened},
    keys,
    pod::{Draft, List, Path},
    policy::Policy,
    refusal::Refusal,
    request::{Operation, Request, Scope, User},
    rules::Occasion,
    session::SessionId,
    walk::{Ran, profile_name, walk},
    warning::{advice, warnings},
};

/// What becomes of a pod.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It is let through as it is.
    Untouched(Untouched),
    /// It may be created in this form.
    Hardened(Hardened),
    /// It may not be created or changed like that.
    Refused(Refusal),
    /// It is let through as it is, and this is what would happen to it in an enforced namespace.
    Advised(Advice),
}

/// Why a pod is let through as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untouched {
    /// Neither its namespace nor its label makes it a session.
    NotASession,
    /// It belongs to the cluster or to Cofferdam itself.
    ExemptNamespace,
    /// A kubelet shows the API server a static pod that already runs.
    MirrorPod,
    /// The update loosens nothing.
    NothingLoosened,
}

/// A hardened pod.
#[derive(Clone, Debug)]
pub struct Hardened {
    /// The pod as it is to be created.
    pub pod: Value,
    /// What turns the request's pod into it; empty where there was nothing to do.
    pub patch: json_patch::Patch,
    /// One for each tightened field, ready for the answer.
    pub warnings: Vec<String>,
    /// Everything that was changed, in the order it was.
    pub changes: Vec<Change>,
    /// The session's id; none where the pod brings none and the request has no uid, or is about a
    /// template.
    pub session: Option<SessionId>,
    /// The name of the profile it was hardened by.
    pub profile: String,
}

impl Hardened {
    /// The changes that the author is told of.
    pub fn tightened(&self) -> impl Iterator<Item = &Change> {
        tightened(&self.changes)
    }
}

/// What would become of a pod.
#[derive(Clone, Debug)]
pub struct Advice {
    /// One for each field that would be tightened or is a reason to refuse, ready for the answer.
    pub warnings: Vec<String>,
    /// Whether the pod would be refused.
    pub would_refuse: bool,
    /// The rules that have something to say, each once.
    pub rules: Vec<&'static str>,
}

/// Decides about a pod.
#[must_use]
pub fn harden(request: &Request<'_>, policy: &Policy) -> Verdict {
    if policy.exempts(request.namespace) {
        return Verdict::Untouched(Untouched::ExemptNamespace);
    }
    let mut draft = Draft::new(request.pod);
    let was_session = request.operation.old().is_some_and(|old| !old["metadata"]["labels"][keys::SESSION].is_null());
    // An update that takes the label away is still one of a session.
    let is_session = was_session || draft.is_set(&Path::label(keys::SESSION));
    if request.scope == Scope::Labelled && !is_session && !draft.is_refused() {
        return Verdict::Untouched(Untouched::NotASession);
    }
    let mirror = Path::annotation(keys::MIRROR_POD);
    if draft.is_set(&mirror) && request.user.groups.iter().any(|group| group == keys::KUBELETS) {
        return Verdict::Untouched(Untouched::MirrorPod);
    }
    let verdict = match request.operation {
        Operation::Create => run(draft, request, policy, Occasion::Creation),
        Operation::Template(template) => run(draft, request, policy, Occasion::Template(template)),
        Operation::AddEphemeralContainers { old } => add_ephemeral_containers(old, request, policy),
        Operation::Update { old } => match loosened(old, request.pod, policy, user(request)) {
            reasons if reasons.is_empty() => Verdict::Untouched(Untouched::NothingLoosened),
            reasons => Verdict::Refused(Refusal { reasons }),
        },
    };
    if request.scope == Scope::Warn { advised(verdict) } else { verdict }
}

fn run(mut draft: Draft, request: &Request<'_>, policy: &Policy, occasion: Occasion) -> Verdict {
    draft.find_containers();
    finish(draft, request, policy, occasion)
}

/// Whatever else the request holds is dropped by the API server, once the webhooks have seen it: the rest of the pod is
/// the one that lives.
fn add_ephemeral_containers(old: &Value, request: &Request<'_>, policy: &Policy) -> Verdict {
    let key = List::EphemeralContainers.key();
    let mut pod = old.clone();
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        match request.pod["spec"].get(key) {
            Some(containers) => spec.insert(key.to_owned(), containers.clone()),
            None => spec.remove(key),
        };
    }
    let mut draft = Draft::new(&pod);
    draft.find_containers();
    let names: Vec<&Value> = old["spec"][key]
        .as_array()
        .map(|items| items.iter().map(|container| &container["name"]).collect())
        .unwrap_or_default();
    let added: Vec<Path> = draft
        .containers()
        .iter()
        .filter(|container| container.list == List::EphemeralContainers)
        .filter(|container| !draft.value(&container.path.at(&["name"])).is_some_and(|name| names.contains(&&name)))
        .map(|container| container.path.clone())
        .collect();
    draft.look_only_at(|container| added.contains(&container.path));
    finish(draft, request, policy, Occasion::Debugging)
}

/// Runs the rules over a pod whose containers are known.
fn finish(mut draft: Draft, request: &Request<'_>, policy: &Policy, occasion: Occasion) -> Verdict {
    // Each pod of a template is a session of its own.
    let uid = request.uid.filter(|_| !matches!(occasion, Occasion::Template(_)));
    let profile = profile_name(&mut draft);
    let ran = walk(&mut draft, policy, occasion, &profile, request.namespace, uid, user(request));
    let Some(Ran { session }) = ran else { return Verdict::Refused(draft.into_refusal()) };
    match draft.finish() {
        Err(refusal) => Verdict::Refused(refusal),
        Ok((pod, patch, changes)) => {
            Verdict::Hardened(Hardened { patch, warnings: warnings(&changes), pod, changes, session, profile })
        }
    }
}

/// Who asks, where anybody is known to.
fn user<'a>(request: &Request<'a>) -> Option<User<'a>> {
    Some(request.user).filter(|user| !user.name.is_empty())
}

/// What would have been done, told instead of done.
fn advised(verdict: Verdict) -> Verdict {
    let mut rules: Vec<&'static str> = match &verdict {
        Verdict::Untouched(_) | Verdict::Advised(_) => return verdict,
        Verdict::Hardened(hardened) => hardened.changes.iter().map(|change| change.rule).collect(),
        Verdict::Refused(refusal) => refusal.reasons.iter().map(|reason| reason.rule).collect(),
    };
    // The rules run one after the other, so each one's words are side by side.
    rules.dedup();
    let would_refuse = matches!(verdict, Verdict::Refused(_));
    Verdict::Advised(Advice { warnings: advice(&verdict, ""), would_refuse, rules })
}

#[cfg(test)]
mod tests;
