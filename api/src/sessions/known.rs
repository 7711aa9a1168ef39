//! What is known of one session. Pure: what is told comes in, and facts come out.

use std::sync::Arc;

use cofferdam_kubernetes::json;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::session::informer::Seen;
use crate::session::marks::Mark;
use crate::session::record::Record;
use crate::session::start::Outcome;
use crate::session::state::{Facts, Sighting};

/// What is known of one session by now.
#[derive(Debug, Default)]
pub(super) struct Known {
    seen: Seen,
    /// Its pod as it was last there.
    last: Option<Arc<Value>>,
    /// Whether anything of it was ever seen.
    was_seen: bool,
    /// What was noted of its end; that outlives whatever it was noted on.
    mark: Option<Mark>,
    /// What has become of its start, where that was here.
    outcome: Option<Outcome>,
    /// Since when somebody wants its end.
    stops_at: Option<Timestamp>,
}

impl Known {
    /// Of a session that is found.
    pub(super) fn of(seen: Seen) -> Self {
        let mut known = Self::default();
        known.see(seen);
        known
    }

    /// Takes in what there is of it now.
    pub(super) fn see(&mut self, seen: Seen) {
        let marked = [&seen.secret, &seen.pod].into_iter().flatten().find_map(|object| Mark::read(object));
        self.mark = marked.or(self.mark.take());
        self.was_seen |= seen != Seen::default();
        self.last = seen.pod.clone().or(self.last.take());
        self.seen = seen;
    }

    /// Takes in what has become of its start.
    pub(super) fn has_begun(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    /// Somebody wants its end, who may not be the first.
    pub(super) fn is_to_stop(&mut self, at: Timestamp) {
        self.stops_at.get_or_insert(at);
    }

    /// Since when somebody wants its end.
    pub(super) fn stops_at(&self) -> Option<Timestamp> {
        self.stops_at
    }

    /// What there is of it now.
    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Whether it is not there any more, and only waits to be collected as garbage: its Secret goes with a pod that is gone.
    pub(super) fn is_going(&self) -> bool {
        let is_owned = self.seen.secret.as_deref().is_some_and(|secret| json::owners(secret).next().is_some());
        self.seen.pod.is_none() && self.mark.is_none() && is_owned
    }

    /// When the first of its objects that is there was made.
    pub(super) fn created_at(&self) -> Option<Timestamp> {
        [&self.seen.pod, &self.seen.secret]
            .into_iter()
            .flatten()
            .find_map(|object| json::parsed(&object["metadata"]["creationTimestamp"]))
    }

    /// When its end was noted, or asked for.
    pub(super) fn noted_at(&self) -> Option<Timestamp> {
        self.mark.as_ref().map(Mark::at).or(self.stops_at)
    }

    /// What is to be made of it.
    pub(super) fn facts<'a>(&'a self, record: &'a Record) -> Facts<'a> {
        let refused = match (&self.mark, &self.outcome) {
            (Some(Mark::Refused { message, .. }), _)
            | (_, Some(Outcome::Refused(message) | Outcome::NotMade(message))) => Some(message),
            _ => None,
        };
        let is_stopped = self.stops_at.is_some()
            || matches!(self.mark, Some(Mark::Stopped { .. }))
            || self.outcome == Some(Outcome::Stopped);
        Facts { record, pod: self.sighting(), is_stopped, refused: refused.map(String::as_str) }
    }

    fn sighting(&self) -> Sighting<'_> {
        let is_never_made = matches!(self.mark, Some(Mark::Stopped { .. })) || self.outcome == Some(Outcome::Stopped);
        match (&self.seen.pod, &self.last) {
            (Some(pod), _) => Sighting::There(pod),
            (None, Some(last)) => Sighting::Gone(Some(last)),
            (None, None) if is_never_made || (self.was_seen && self.seen.secret.is_none()) => Sighting::Gone(None),
            (None, None) => Sighting::Awaited,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::state::{State, state};
    use crate::wire::{Mode, Status};

    fn record() -> Record {
        Record {
            created_at: Timestamp::UNIX_EPOCH,
            mode: Mode::Run,
            inspect: false,
            image: None,
            stream_token: None,
            apps: vec![],
        }
    }

    fn seen(pod: Option<Value>, secret: Option<Value>) -> Seen {
        Seen { pod: pod.map(Arc::new), secret: secret.map(Arc::new) }
    }

    /// How it ended; none while it has not.
    fn end(known: &Known) -> Option<Status> {
        match state(&known.facts(&record())) {
            State::Ended(ended) => Some(ended.status),
            _ => None,
        }
    }

    #[test]
    fn a_pod_that_has_not_come_yet_is_awaited_and_one_that_went_is_gone() {
        let mut known = Known::default();
        assert_eq!(end(&known), None);
        known.see(seen(None, Some(json!({}))));
        assert_eq!(end(&known), None, "its Secret comes first");
        known.see(seen(Some(json!({"status": {"phase": "Running"}})), Some(json!({}))));
        assert_eq!(end(&known), None);
        known.see(seen(None, Some(json!({}))));
        assert!(matches!(end(&known), Some(Status::Failed { .. })));
        let mut known = Known::of(seen(None, Some(json!({}))));
        known.see(Seen::default());
        assert!(matches!(end(&known), Some(Status::Failed { .. })), "and one that never came, with its Secret");
    }

    #[test]
    fn d07_who_is_stopped_has_not_failed_whoever_tells_it_first() {
        let at = Timestamp::UNIX_EPOCH;
        let stopped = Mark::Stopped { at }.on_secret();
        let known = Known::of(seen(None, Some(stopped.clone())));
        assert_eq!(end(&known), Some(Status::Stopped), "after a restart");
        let mut known = Known::of(seen(Some(Mark::Stopped { at }.on_pod()), Some(json!({}))));
        known.see(Seen::default());
        assert_eq!(end(&known), Some(Status::Stopped), "it was noted on the pod alone");
        let mut known = Known::default();
        known.is_to_stop(at);
        assert_eq!(end(&known), None, "there may be a pod yet");
        known.has_begun(Outcome::Stopped);
        assert_eq!(end(&known), Some(Status::Stopped));
        let mut known = Known::default();
        known.is_to_stop(at);
        known.has_begun(Outcome::Refused("create: no".to_owned()));
        assert_eq!(end(&known), Some(Status::Stopped));
    }

    #[test]
    fn why_a_session_was_never_made_is_told_here_and_after_a_restart() {
        let failed = Some(Status::Failed { message: "create: no".to_owned() });
        let mut known = Known::default();
        known.has_begun(Outcome::NotMade("create: no".to_owned()));
        assert_eq!(end(&known), failed);
        let mark = Mark::Refused { at: Timestamp::UNIX_EPOCH, message: "create: no".to_owned() };
        assert_eq!(end(&Known::of(seen(None, Some(mark.on_secret())))), failed);
    }

    #[test]
    fn what_only_waits_to_be_collected_is_no_session() {
        let owned = json!({"metadata": {"ownerReferences": [{"kind": "Pod"}]}});
        assert!(Known::of(seen(None, Some(owned.clone()))).is_going());
        assert!(!Known::of(seen(Some(json!({})), Some(owned))).is_going());
        assert!(!Known::of(seen(None, Some(json!({})))).is_going(), "its pod is on its way");
    }
}
