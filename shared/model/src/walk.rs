//! One walk over the rules, for whichever occasion.

use crate::{
    keys,
    pod::{Draft, Path},
    policy::{Policy, did_you_mean},
    request::User,
    rules::{Context, Occasion, RULES},
    session::SessionId,
};

/// The name of the profile that a pod asks for.
pub(crate) fn profile_name(draft: &mut Draft) -> String {
    draft.text(&Path::label(keys::PROFILE)).unwrap_or_else(|| keys::DEFAULT_PROFILE.to_owned())
}

/// What the rules went by.
pub(crate) struct Ran {
    pub(crate) session: Option<SessionId>,
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
