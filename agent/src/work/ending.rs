//! Pods that are deleted: finished ones after a while, and ones that slipped through where the profile says so.

use std::time::{Duration, Instant, SystemTime};

use cofferdam_kubernetes::{Backoff, Resource};
use cofferdam_model::policy::Policy;

use super::Crew;
use crate::events::Tone;
use crate::session::{Phase, Seen, Session};

/// Before a deletion is tried again.
const AGAIN: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The end of one session.
#[derive(Debug)]
pub(super) struct Ending {
    was_counted: bool,
    room: Room,
    is_deleted: bool,
    backoff: Backoff,
    not_before: Option<Instant>,
}

/// Whether there is room among the deletions of its owner's pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Unknown,
    Awaited,
    /// It has a part of it, however often it takes.
    Taken,
}

impl Default for Ending {
    fn default() -> Self {
        Self {
            was_counted: false,
            room: Room::Unknown,
            is_deleted: false,
            backoff: Backoff::new(AGAIN, LONGEST_PAUSE),
            not_before: None,
        }
    }
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
pub(super) enum Because {
    Finished,
    SlippedThrough,
}

impl Ending {
    /// Why the pod is to be deleted now, if it is, and when to look again.
    pub(super) fn look(
        &mut self,
        crew: &Crew,
        seen: &Seen,
        policy: &Policy,
        now: Now,
    ) -> (Option<Because>, Option<Instant>) {
        let session = &seen.session;
        if has_slipped_through(session) && !std::mem::replace(&mut self.was_counted, true) {
            crew.metrics.slipped_through();
        }
        let may = self.not_before.is_none_or(|moment| moment <= now.here);
        let because = because(seen, policy, now.unix).filter(|_| may);
        if because == Some(Because::SlippedThrough) && self.room != Room::Taken {
            match crew.deletions.take(&seen.owner, now.here) {
                Ok(()) => self.room = Room::Taken,
                Err(moment) => {
                    self.not_before = Some(moment);
                    if std::mem::replace(&mut self.room, Room::Awaited) == Room::Unknown {
                        crew.metrics.deletion_held();
                    }
                    return (None, Some(moment));
                }
            }
        }
        // What is to be done now may wait for its turn, and nothing is looked at again for it until then.
        (because, self.next(seen, policy, now).filter(|_| because.is_none()))
    }

    /// Whether it was deleted, so that there is no more to do but to wait for the end.
    pub(super) fn is_deleted(&self) -> bool {
        self.is_deleted
    }

    /// Deletes the pod.
    pub(super) async fn delete(&mut self, crew: &Crew, seen: &Seen, because: Because) {
        let session = &seen.session;
        let deleted =
            crew.cluster.delete(&Resource::core("pods"), &session.namespace, &session.name, &session.uid).await;
        self.not_before = Some(Instant::now() + self.backoff.failed());
        if let Err(error) = deleted {
            tracing::warn!(namespace = session.namespace, pod = session.name, %error, "a pod cannot be deleted");
            return;
        }
        if std::mem::replace(&mut self.is_deleted, true) {
            return;
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
    }

    /// When something is to be deleted next, if anything is.
    fn next(&self, seen: &Seen, policy: &Policy, now: Now) -> Option<Instant> {
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
    (has_slipped_through(session) && seen.is_unwelcome).then_some(Because::SlippedThrough)
}

fn has_slipped_through(session: &Session) -> bool {
    session.phase.is_live() && !session.findings.is_empty()
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
    use cofferdam_model::keys;
    use serde_json::{Value, json};

    use super::*;
    use crate::session::Membership;

    #[test]
    fn whether_a_pod_that_slipped_through_is_deleted_is_said_by_the_policy_that_found_it() {
        let delete = Policy::parse("policy.yaml", "profiles: {default: {slippedThrough: delete}}").unwrap();
        let pod = seen(|pod| *pod = json!({"metadata": {"namespace": "n", "name": "p"}}));
        assert_ne!(pod.session.findings, []);
        assert_eq!(because(&pod, &delete, 0), None, "it was judged by one that keeps it");
    }

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
    fn d14_a_pod_whose_start_failed_is_due_as_any_that_ended() {
        let policy = Policy::built_in();
        let grace = i64::from(policy.finished_grace_seconds());
        let waits = json!([{"state": {"waiting": {"reason": "PodInitializing"}}}]);
        let fetch = json!([{"state": {"terminated": {"exitCode": 10, "finishedAt": "1970-01-01T00:16:40Z"}}}]);
        let changed = json!([{"type": "Ready", "status": "False", "lastTransitionTime": "1970-01-01T00:33:20Z"}]);
        for (why, status, ended) in [
            ("no body", json!({"initContainerStatuses": fetch, "containerStatuses": waits}), 1000),
            (
                "its time was over",
                json!({"reason": "DeadlineExceeded", "containerStatuses": waits, "conditions": changed}),
                2000,
            ),
            ("no kubelet took it", json!({"reason": "OutOfcpu"}), 500),
        ] {
            let failed = seen(|pod| {
                pod["metadata"]["creationTimestamp"] = json!("1970-01-01T00:08:20Z");
                pod["status"] = status;
                pod["status"]["phase"] = json!("Failed");
            });
            assert_eq!(because(&failed, &policy, ended + grace - 1), None, "{why}");
            assert_eq!(because(&failed, &policy, ended + grace), Some(Because::Finished), "{why}");
        }
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

    #[tokio::test]
    async fn a_deletion_that_fails_takes_no_more_room_than_one_that_does_not() {
        let api = crate::work::testing::Api::default();
        let crew = api.crew();
        let strict = Policy::parse("policy.yaml", "profiles: {default: {slippedThrough: delete}}").unwrap();
        let bare = |name: &str| {
            let pod = json!({"metadata": {"namespace": "n", "name": name, "uid": name}});
            Seen::read(&pod, Membership::Enforced, &strict).unwrap()
        };
        // Another holds by now: what is done is what the one said that found something.
        let policy = Policy::built_in();
        let now = Now::read();
        let mut all: Vec<(Ending, Seen)> = ["a", "b", "c", "d", "e"].map(|name| (Ending::default(), bare(name))).into();
        for (ending, seen) in &mut all {
            api.refuse(&format!("DELETE pods/{}", seen.session.name));
            for attempt in 0..3 {
                ending.not_before = None;
                let (because, _) = ending.look(&crew, seen, &policy, now);
                assert_eq!(because, Some(Because::SlippedThrough), "attempt {attempt}");
                ending.delete(&crew, seen, Because::SlippedThrough).await;
                assert!(!ending.is_deleted());
            }
        }
        let (mut sixth, seen) = (Ending::default(), bare("f"));
        assert_eq!(sixth.look(&crew, &seen, &policy, now).0, None, "there are no more than five");
    }
}
