//! The decision: one pod in, a hardened pod or a refusal out. Pure; it never panics whatever the JSON holds.

use serde_json::Value;

pub use crate::{
    change::{Action, Change, Told},
    refusal::{Reason, Refusal},
};
use crate::{
    keys,
    pod::{Draft, Path},
    policy::{Policy, Profile, nearest},
    rules::RULES,
    session::SessionId,
    warning::warnings,
};

/// Which webhook entry brought the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The namespace is labelled `enforced`: every pod in it becomes a session.
    Enforced,
    /// Any other namespace: a pod becomes a session by its own label.
    Labelled,
}

/// A pod about to be created.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The uid of the admission request; a missing session id is derived from it.
    pub uid: &'a str,
    /// The namespace of the request. The one in the object is not believed.
    pub namespace: &'a str,
    /// Which webhook entry brought the pod.
    pub scope: Scope,
    /// Who asks.
    pub user: User<'a>,
    /// The pod as the API server sent it.
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

/// What becomes of a pod.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It is none of our business.
    Untouched(Untouched),
    /// It may be created in this form.
    Hardened(Hardened),
    /// It may not be created.
    Refused(Refusal),
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
    /// The session's id.
    pub session: SessionId,
    /// The name of the profile it was hardened by.
    pub profile: String,
}

/// What the rules go by.
pub(crate) struct Context<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) profile_name: &'a str,
    pub(crate) profile: &'a Profile,
    /// The id that the pod brings, or the one derived for it.
    pub(crate) session: &'a SessionId,
}

/// Decides about a pod that is about to be created.
#[must_use]
pub fn harden(request: &Request<'_>, policy: &Policy) -> Verdict {
    if keys::EXEMPT_NAMESPACES.contains(&request.namespace) {
        return Verdict::Untouched(Untouched::ExemptNamespace);
    }
    let mut draft = Draft::new(request.pod);
    if request.scope == Scope::Labelled && !draft.is_set(&label(keys::SESSION)) && !draft.is_refused() {
        return Verdict::Untouched(Untouched::NotASession);
    }
    let mirror = Path::of(&["metadata", "annotations", keys::MIRROR_POD]);
    if draft.is_set(&mirror) {
        if request.user.groups.iter().any(|group| group == keys::KUBELETS) {
            return Verdict::Untouched(Untouched::MirrorPod);
        }
        draft.refuse(&mirror, "marks the mirror of a static pod, which only a kubelet may create; remove it");
    }
    draft.find_containers();
    let session = session_id(&mut draft, request.uid);
    let profile_name = draft.text(&label(keys::PROFILE)).unwrap_or_else(|| keys::DEFAULT_PROFILE.to_owned());
    let Some(profile) = policy.profile(&profile_name) else {
        draft.refuse(&label(keys::PROFILE), unknown_profile(&profile_name, policy));
        return Verdict::Refused(draft.into_refusal());
    };
    let context = Context { policy, profile_name: &profile_name, profile, session: &session };
    for rule in RULES {
        draft.enter(rule.name);
        (rule.apply)(&mut draft, &context);
    }
    match draft.finish() {
        Err(refusal) => Verdict::Refused(refusal),
        Ok((pod, changes)) => Verdict::Hardened(Hardened {
            patch: json_patch::diff(request.pod, &pod),
            warnings: warnings(&changes),
            pod,
            changes,
            session,
            profile: profile_name,
        }),
    }
}

fn label(key: &'static str) -> Path {
    Path::of(&["metadata", "labels", key])
}

/// The id that the pod brings, or one derived for it; a bad one is refused, and the derived one stands in so that the
/// rules can name what else is wrong.
fn session_id(draft: &mut Draft, request_uid: &str) -> SessionId {
    let brought = draft.text(&label(keys::SESSION)).filter(|id| !id.is_empty());
    brought
        .and_then(|id| {
            SessionId::parse(&id).map_err(|error| draft.refuse(&label(keys::SESSION), error.to_string())).ok()
        })
        .unwrap_or_else(|| SessionId::derive(request_uid))
}

fn unknown_profile(name: &str, policy: &Policy) -> String {
    let hint = nearest(name, policy.profile_names()).map_or_else(
        || format!("there are: {}", policy.profile_names().collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    format!("names no profile of the policy; {hint}")
}

#[cfg(test)]
mod tests;
