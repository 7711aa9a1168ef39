//! Who leads, decided from what the Lease says and when this agent first saw it say so.
//!
//! Clocks of machines differ, so the Lease's times are never compared with this one's: a holder that renews changes the
//! Lease, and one whose Lease has not changed for [`DURATION`] by this agent's own clock is gone.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

/// A Lease that was not renewed for so long may be taken.
pub(super) const DURATION: Duration = Duration::from_secs(15);

/// How long this agent leads after a renewal that reached the API server, counted from before it was sent. Others wait
/// longer, and begin to count later.
pub(super) const TERM: Duration = Duration::from_secs(10);

/// How often the holder renews, counted from when it sent the renewal before.
pub(super) const RENEW: Duration = Duration::from_secs(2);

/// How long a renewal may take. Two of them fit into a term: a holder whose writes take almost as long renews in time.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// How often the others look.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// The Lease as it was seen, and since when it has been so.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The object, to be written back in its version.
    pub(super) lease: Lease,
    /// When it was first seen with this holder and this time of renewal, by this agent's clock.
    pub(super) since: Instant,
}

/// What a candidate does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// There is no Lease: make it.
    Create,
    /// Nobody holds it, or its holder is gone: take it.
    Take,
    /// It is this agent's (also when the program was started again in the same pod): renew it.
    Renew,
    /// It is this agent's, who cannot lead: give it away.
    Release,
    /// Another one's, which lives.
    Wait,
}

/// The Lease was read: as before, or changed.
pub(super) fn observe(before: Option<Seen>, lease: Lease, now: Instant) -> Seen {
    let claim = |lease: &Lease| {
        lease.spec.as_ref().map(|spec| (spec.holder_identity.clone(), spec.renew_time.clone(), spec.lease_transitions))
    };
    let since = before.filter(|before| claim(&before.lease) == claim(&lease)).map_or(now, |before| before.since);
    Seen { lease, since }
}

/// What the candidate called `me` does about a Lease that was seen; none for one that is not there. `is_too_slow` is a
/// candidate that does not lead because what it wrote was not answered in time: it may have arrived, and would keep the Lease
/// from everybody who can lead.
pub(super) fn decide(me: &str, seen: Option<&Seen>, is_too_slow: bool, now: Instant) -> Action {
    let Some(seen) = seen else { return Action::Create };
    match holder(&seen.lease) {
        None => Action::Take,
        Some(holder) if holder == me && is_too_slow => Action::Release,
        Some(holder) if holder == me => Action::Renew,
        Some(_) if now.duration_since(seen.since) >= DURATION => Action::Take,
        Some(_) => Action::Wait,
    }
}

/// Who holds it. A Lease that was released names nobody, or the empty name.
pub(super) fn holder(lease: &Lease) -> Option<&str> {
    lease.spec.as_ref()?.holder_identity.as_deref().filter(|holder| !holder.is_empty())
}

/// A new Lease, held by `me`.
pub(super) fn created(name: &str, me: &str, now: Timestamp) -> Lease {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    taken(Lease { metadata, spec: None }, me, now)
}

/// The Lease, held by `me` from now on. What others put into it stays.
pub(super) fn taken(lease: Lease, me: &str, now: Timestamp) -> Lease {
    let is_new = lease.spec.is_none();
    let spec = lease.spec.unwrap_or_default();
    let before = spec.lease_transitions.unwrap_or_default();
    let lease_transitions = Some(if is_new { before } else { before.saturating_add(1) });
    let spec = LeaseSpec { acquire_time: Some(MicroTime(now)), lease_transitions, ..spec };
    renewed(Lease { spec: Some(spec), ..lease }, me, now)
}

/// The Lease, held by `me` still.
pub(super) fn renewed(lease: Lease, me: &str, now: Timestamp) -> Lease {
    let spec = LeaseSpec {
        holder_identity: Some(me.to_owned()),
        lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
        renew_time: Some(MicroTime(now)),
        ..lease.spec.unwrap_or_default()
    };
    Lease { spec: Some(spec), ..lease }
}

/// The Lease, held by nobody.
pub(super) fn released(lease: Lease, now: Timestamp) -> Lease {
    let spec = LeaseSpec { holder_identity: None, renew_time: Some(MicroTime(now)), ..lease.spec.unwrap_or_default() };
    Lease { spec: Some(spec), ..lease }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, renewed_at: i64) -> Lease {
        let at = Timestamp::from_second(renewed_at).unwrap();
        renewed(created("cofferdam-agent", holder, at), holder, at)
    }

    #[test]
    fn the_holder_renews_the_others_wait_and_take_what_is_not_renewed() {
        let start = Instant::now();
        // Its time of renewal is long past by our clock, or far ahead of it: neither matters.
        for at in [0, 99_999_999_999] {
            let seen = observe(None, lease("a", at), start);
            for (me, after, action) in [
                ("a", Duration::ZERO, Action::Renew),
                ("a", DURATION * 9, Action::Renew),
                ("b", Duration::ZERO, Action::Wait),
                ("b", DURATION.checked_sub(Duration::from_millis(1)).unwrap(), Action::Wait),
                ("b", DURATION, Action::Take),
            ] {
                assert_eq!(decide(me, Some(&seen), false, start + after), action, "{me} after {after:?}");
                let too_slow = if me == "a" { Action::Release } else { action };
                assert_eq!(decide(me, Some(&seen), true, start + after), too_slow, "{me} after {after:?}");
            }
        }
        assert_eq!(decide("a", None, false, start), Action::Create);
    }

    #[test]
    fn a_renewal_starts_the_wait_again_and_nothing_else_does() {
        let start = Instant::now();
        let later = start + DURATION;
        let seen = observe(None, lease("a", 1), start);
        let mut touched = lease("a", 1);
        touched.metadata.resource_version = Some("77".to_owned());
        let seen = observe(Some(seen), touched, later);
        assert_eq!(decide("b", Some(&seen), false, later), Action::Take);
        assert_eq!(seen.lease.metadata.resource_version.as_deref(), Some("77"), "written back in its newest version");
        let seen = observe(Some(seen), lease("a", 2), later);
        assert_eq!(decide("b", Some(&seen), false, later), Action::Wait);
        let seen = observe(Some(seen), lease("c", 2), later + DURATION);
        assert_eq!(decide("b", Some(&seen), false, later + DURATION), Action::Wait);
    }

    #[test]
    fn what_is_released_is_taken_at_once_and_every_change_of_holder_is_counted() {
        let now = Timestamp::from_second(5).unwrap();
        let made = created("cofferdam-agent", "a", now);
        assert_eq!((holder(&made), made.spec.as_ref().unwrap().lease_transitions), (Some("a"), Some(0)));
        let free = released(made, now);
        assert_eq!(holder(&free), None);
        let seen = observe(None, free, Instant::now());
        assert_eq!(decide("b", Some(&seen), false, seen.since), Action::Take);
        let taken = taken(seen.lease, "b", now);
        let spec = taken.spec.as_ref().unwrap();
        assert_eq!(
            (holder(&taken), spec.lease_transitions, spec.lease_duration_seconds),
            (Some("b"), Some(1), Some(15))
        );
        // Leases released by other libraries hold the empty name.
        assert_eq!(holder(&renewed(taken, "", now)), None);
    }

    #[test]
    fn a_leader_gives_up_before_others_may_take_over() {
        assert!(TERM < DURATION && RENEW < PATIENCE && PATIENCE * 2 <= TERM);
    }
}
