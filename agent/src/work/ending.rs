//! Pods that are deleted: finished ones after a while, and ones that slipped through where the profile says so.

use std::time::{Duration, Instant, SystemTime};

use cofferdam_model::keys;
use cofferdam_model::policy::{Policy, SlippedThrough};

use super::Crew;
use crate::cluster::Resource;
use crate::events::Tone;
use crate::session::{Phase, Seen};

/// Before a deletion that failed is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// The end of one session.
#[derive(Debug, Default)]
pub(super) struct Ending {
    was_counted: bool,
    was_held: bool,
    not_before: Option<Instant>,
}

/// A moment, as this process counts time and as others do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    here: Instant,
    /// Seconds since 1970.
    unix: i64,
}

impl Now {
    /// By the clocks of the machine.
    pub(super) fn read() -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { here: Instant::now(), unix: i64::try_from(unix.as_secs()).unwrap_or(i64::MAX) }
    }
}

/// Why a pod is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Because {
    Finished,
    SlippedThrough,
}

impl Ending {
    /// Deletes the pod if that is due: whether it did, so that there is no more to do but to wait for the end.
    pub(super) async fn delete_if_due(&mut self, crew: &Crew, seen: &Seen, policy: &Policy, now: Now) -> bool {
        let session = &seen.session;
        if session.phase.is_live() && !session.findings.is_empty() && !std::mem::replace(&mut self.was_counted, true) {
            crew.metrics.slipped_through();
        }
        let may = self.not_before.is_none_or(|moment| moment <= now.here);
        let Some(because) = because(seen, policy, now.unix).filter(|_| may) else {
            return false;
        };
        if because == Because::SlippedThrough
            && let Err(moment) = crew.deletions.take(&seen.owner, now.here)
        {
            self.not_before = Some(moment);
            if !std::mem::replace(&mut self.was_held, true) {
                crew.metrics.deletion_held();
            }
            return false;
        }
        self.not_before = Some(now.here + AGAIN);
        let pods = Resource::core("pods");
        if let Err(error) = crew.cluster.delete(&pods, &session.namespace, &session.name, &session.uid).await {
            tracing::warn!(namespace = session.namespace, pod = session.name, %error, "a pod cannot be deleted");
            return false;
        }
        let (tone, reason, note) = match because {
            Because::Finished => (Tone::Normal, "FinishedDeleted", "the pod ended a while ago and is deleted"),
            Because::SlippedThrough => (
                Tone::Warning,
                "SlippedThroughDeleted",
                "the pod is not hardened, and its profile says that such a pod is deleted",
            ),
        };
        crew.events.tell(session, tone, reason, note);
        crew.metrics.deleted(because.as_str());
        true
    }

    /// When something is to be deleted next, if anything is.
    pub(super) fn next(&self, seen: &Seen, policy: &Policy, now: Now) -> Option<Instant> {
        if because(seen, policy, now.unix).is_some() {
            return Some(self.not_before.unwrap_or(now.here));
        }
        let left = due(seen, policy)? - now.unix;
        Some(now.here + Duration::from_secs(u64::try_from(left).unwrap_or_default()))
    }
}

impl Because {
    fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::SlippedThrough => "slipped_through",
        }
    }
}

/// Why a pod is to be deleted, if it is at `now`, in seconds since 1970.
fn because(seen: &Seen, policy: &Policy, now: i64) -> Option<Because> {
    let session = &seen.session;
    if due(seen, policy).is_some_and(|due| due <= now) {
        return Some(Because::Finished);
    }
    let profile = policy.profile(&session.profile).or_else(|| policy.profile(keys::DEFAULT_PROFILE))?;
    let is_unwelcome = session.phase.is_live() && !session.findings.is_empty();
    (is_unwelcome && profile.slipped_through == SlippedThrough::Delete).then_some(Because::SlippedThrough)
}

/// When a finished pod is to be deleted, in seconds since 1970. Never one that a controller owns, which wants to count it,
/// or makes it anew.
fn due(seen: &Seen, policy: &Policy) -> Option<i64> {
    let session = &seen.session;
    if session.phase != Phase::Finished || session.is_controlled {
        return None;
    }
    let grace = session.finished_grace_seconds.unwrap_or_default().max(policy.finished_grace_seconds());
    let ended = seen.progress.ended.or(seen.progress.created)?;
    Some(ended + i64::from(grace))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::session::Membership;

    fn seen(change: impl FnOnce(&mut Value)) -> Seen {
        let mut pod = json!({"metadata": {"namespace": "n", "name": "p", "annotations": {}}, "status": {
            "phase": "Succeeded",
            "containerStatuses": [{"state": {"terminated": {"finishedAt": "1970-01-01T00:16:40Z"}}}]}});
        change(&mut pod);
        Seen::read(&pod, Membership::Enforced, &Policy::built_in()).unwrap()
    }

    #[test]
    fn d03_a_finished_pod_is_due_after_its_grace_unless_a_controller_owns_it() {
        let policy = Policy::built_in();
        let grace = i64::from(policy.finished_grace_seconds());
        assert_eq!(due(&seen(|_| ()), &policy), Some(1000 + grace));
        let longer = |pod: &mut Value| pod["metadata"]["annotations"][keys::FINISHED_GRACE] = json!("14400");
        assert_eq!(due(&seen(longer), &policy), Some(1000 + 14400));
        let shorter = |pod: &mut Value| pod["metadata"]["annotations"][keys::FINISHED_GRACE] = json!("1");
        assert_eq!(due(&seen(shorter), &policy), Some(1000 + grace), "a wish can only lengthen it");
        let owned = |pod: &mut Value| pod["metadata"]["ownerReferences"] = json!([{"uid": "u", "controller": true}]);
        assert_eq!(due(&seen(owned), &policy), None);
        assert_eq!(due(&seen(|pod| pod["status"]["phase"] = json!("Running")), &policy), None);
    }

    #[test]
    fn a_finished_pod_is_looked_at_again_when_its_grace_is_over_and_deleted_then() {
        let (policy, pod, here) = (Policy::built_in(), seen(|_| ()), Instant::now());
        let over = due(&pod, &policy).unwrap();
        let (mut ending, next_at) = (Ending::default(), Some(here + Duration::from_secs(1)));
        assert_eq!(ending.next(&pod, &policy, Now { here, unix: over - 1 }), next_at);
        assert_eq!(because(&pod, &policy, over - 1), None);
        assert_eq!(because(&pod, &policy, over), Some(Because::Finished));
        assert_eq!(ending.next(&pod, &policy, Now { here, unix: over }), Some(here));
        // A deletion that failed is tried again, and not at once.
        ending.not_before = next_at;
        assert_eq!(ending.next(&pod, &policy, Now { here, unix: over }), next_at);
        let running = seen(|pod| pod["status"]["phase"] = json!("Running"));
        assert_eq!(ending.next(&running, &policy, Now { here, unix: over }), None);
    }
}
