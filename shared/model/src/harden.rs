//! The decision: one pod in, a hardened pod or a refusal out. Pure; it never panics whatever the JSON holds.

use serde_json::Value;

use crate::{
    audit::loosened,
    change::{Change, tightened},
    keys,
    pod::{Draft, List, Path},
    policy::{Policy, Profile, did_you_mean},
    refusal::Refusal,
    rules::RULES,
    session::SessionId,
    warning::{advice, warnings},
};

/// Which webhook entry brought the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The namespace is labelled `enforced`: every pod in it becomes a session.
    Enforced,
    /// The namespace is labelled `warn`: what would happen to a pod is told, and nothing is done.
    Warn,
    /// Any other namespace: a pod becomes a session by its own label.
    Labelled,
}

/// What is about to happen to a pod.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// It is created.
    Create,
    /// It is the template that a workload makes pods from, as `{"metadata": …, "spec": …}`.
    Template(Template),
    /// A live pod gets containers for debugging (subresource `ephemeralcontainers`). The new ones are hardened.
    AddEphemeralContainers {
        /// The pod before.
        old: &'a Value,
    },
    /// A live pod is changed in place, its resources (subresource `resize`) or anything else that an update may
    /// change. What is no looser than before is allowed; nothing is patched.
    Update {
        /// The pod before.
        old: &'a Value,
    },
}

impl<'a> Operation<'a> {
    /// The pod before, where it was there.
    fn old(&self) -> Option<&'a Value> {
        match *self {
            Self::Create | Self::Template(_) => None,
            Self::AddEphemeralContainers { old } | Self::Update { old } => Some(old),
        }
    }
}

/// What a workload's controller forbids in its template. Its pods get that when they are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// A Deployment's and its like: restarted always, without a deadline.
    RunsForever,
    /// A Job's: it may have a deadline, and its restart policy is the Job's affair.
    RunsToCompletion,
}

/// A question about a pod.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The uid of the admission request; a missing session id is derived from it. Without a uid none is made up.
    pub uid: Option<&'a str>,
    /// The namespace of the request. The one in the object is not believed.
    pub namespace: &'a str,
    /// Which webhook entry brought the pod.
    pub scope: Scope,
    /// Who asks.
    pub user: User<'a>,
    /// What is about to happen.
    pub operation: Operation<'a>,
    /// The pod as it is to be.
    pub pod: &'a Value,
}

/// Who asks, as the API server authenticated them.
#[derive(Clone, Copy, Debug)]
pub struct User<'a> {
    /// The user's name.
    pub name: &'a str,
    /// The user's groups.
    pub groups: &'a [String],
}

impl User<'_> {
    /// Nobody is known to ask, as of a file. What hangs on who asks is left open.
    pub const UNKNOWN: Self = Self { name: "", groups: &[] };
}

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

/// What the rules go by.
pub(crate) struct Context<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) profile_name: &'a str,
    pub(crate) profile: &'a Profile,
    /// The id that the pod brings, or the one derived for it.
    pub(crate) session: Option<&'a SessionId>,
    pub(crate) occasion: Occasion,
    pub(crate) namespace: &'a str,
    /// Who asks; nobody where a live pod is looked at.
    pub(crate) user: Option<User<'a>>,
}

/// On which occasion the rules are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A pod is about to be created.
    Creation,
    /// A workload's template is looked at.
    Template(Template),
    /// New ephemeral containers are about to be added; nothing else is in view.
    Debugging,
    /// A pod is there, and is only looked at.
    Audit,
    /// A pod is there, and is looked at before and after somebody changes it.
    Update,
}

impl Occasion {
    /// Whether the whole pod is there already. It has by nature what nobody may ask for, such as a node, and what only
    /// its creation can settle is settled.
    pub(crate) fn is_afterwards(self) -> bool {
        matches!(self, Self::Audit | Self::Update)
    }
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
        spec.insert(key.to_owned(), request.pod["spec"][key].clone());
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

/// The name of the profile that a pod asks for.
pub(crate) fn profile_name(draft: &mut Draft) -> String {
    draft.text(&Path::label(keys::PROFILE)).unwrap_or_else(|| keys::DEFAULT_PROFILE.to_owned())
}

/// What the rules went by.
pub(crate) struct Ran {
    session: Option<SessionId>,
}

/// Runs the rules of a profile; `None` where it is not there, which is then a reason against the pod. What an update of
/// such a pod loosens is told by the default profile: it may live on, and not have all that it likes.
pub(crate) fn walk(
    draft: &mut Draft,
    policy: &Policy,
    occasion: Occasion,
    profile_name: &str,
    namespace: &str,
    uid: Option<&str>,
    user: Option<User<'_>>,
) -> Option<Ran> {
    let mirror = Path::annotation(keys::MIRROR_POD);
    if draft.is_set(&mirror) {
        draft.refuse(&mirror, "marks the mirror of a static pod, which only a kubelet may create; remove it");
    }
    let session = session_id(draft, uid);
    let Some(profile) = policy.profile(profile_name) else {
        draft.look_at_everything();
        draft.refuse(&Path::label(keys::PROFILE), unknown_profile(profile_name, policy));
        if let (Occasion::Update, Some(profile)) = (occasion, policy.profile(keys::DEFAULT_PROFILE)) {
            let (profile_name, session) = (keys::DEFAULT_PROFILE, session.as_ref());
            apply(draft, &Context { policy, profile_name, profile, session, occasion, namespace, user });
        }
        return None;
    };
    apply(draft, &Context { policy, profile_name, profile, session: session.as_ref(), occasion, namespace, user });
    Some(Ran { session })
}

fn apply(draft: &mut Draft, context: &Context<'_>) {
    for rule in RULES {
        if rule.audits || !context.occasion.is_afterwards() {
            draft.enter(rule.name);
            (rule.apply)(draft, context);
        }
    }
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

/// The id that the pod brings, or one derived for it; a bad one is refused, and the derived one stands in so that the
/// rules can name what else is wrong.
fn session_id(draft: &mut Draft, request_uid: Option<&str>) -> Option<SessionId> {
    let brought = draft.text(&Path::label(keys::SESSION)).filter(|id| !id.is_empty());
    brought
        .and_then(|id| {
            SessionId::parse(&id).map_err(|error| draft.refuse(&Path::label(keys::SESSION), error.to_string())).ok()
        })
        .or_else(|| request_uid.map(SessionId::derive))
}

fn unknown_profile(name: &str, policy: &Policy) -> String {
    let all = || format!("there are: {}", policy.profile_names().collect::<Vec<_>>().join(", "));
    let hint = did_you_mean(name, policy.profile_names(), all);
    format!("names no profile of the policy; {hint}")
}

#[cfg(test)]
mod tests;
