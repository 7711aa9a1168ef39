//! Which sessions are kept, and for how long.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// How many sessions there may be, unless the operator says otherwise.
pub const CAPACITY: usize = 32;

/// How long a session that has ended is kept, for those who come back to it, unless the operator says otherwise.
pub const KEPT: Duration = Duration::from_hours(4);

/// A session that takes a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<I> {
    /// Which.
    pub id: I,
    /// When it ended; none while it lives.
    pub ended: Option<Timestamp>,
}

/// Whether another session may be begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room<I> {
    /// It may, when these are forgotten: those that ended first.
    After(Vec<I>),
    /// All places are taken by sessions that live.
    None,
}

/// Makes room for one more session where `capacity` are kept. One that lives is never forgotten for it.
pub fn room<I: Ord>(capacity: usize, places: impl IntoIterator<Item = Place<I>>) -> Room<I> {
    let (mut ended, mut live) = (Vec::new(), 0);
    for place in places {
        match place.ended {
            Some(at) => ended.push((at, place.id)),
            None => live += 1,
        }
    }
    if live >= capacity {
        return Room::None;
    }
    // Of those that ended at once always the same one, whoever asks.
    ended.sort();
    let too_many = (live + ended.len() + 1).saturating_sub(capacity);
    Room::After(ended.into_iter().take(too_many).map(|(_, id)| id).collect())
}

/// Whether a session that ended at `ended` has been kept long enough.
#[must_use]
pub fn is_forgotten(ended: Timestamp, now: Timestamp, kept: Duration) -> bool {
    // A span that no clock can count is never over.
    SignedDuration::try_from(kept).is_ok_and(|kept| now.duration_since(ended) >= kept)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn place(id: u32, ended: Option<i64>) -> Place<u32> {
        Place { id, ended: ended.map(at) }
    }

    #[test]
    fn ses_12_the_session_that_ended_first_makes_room_and_one_that_lives_never_does() {
        let places = [place(1, None), place(2, Some(9)), place(3, Some(5)), place(4, Some(5))];
        assert_eq!(room(5, places), Room::After(vec![]));
        assert_eq!(room(4, places), Room::After(vec![3]));
        assert_eq!(room(2, places), Room::After(vec![3, 4, 2]), "where the capacity has become less");
        assert_eq!(room(1, places), Room::None);
        assert_eq!(room(0, []), Room::<u32>::None);
    }

    #[test]
    fn ses_13_a_session_that_has_ended_is_kept_for_four_hours() {
        assert_eq!(KEPT.as_secs(), 14_400);
        assert!(!is_forgotten(at(0), at(14_399), KEPT));
        assert!(is_forgotten(at(0), at(14_400), KEPT));
        assert!(!is_forgotten(at(60), at(0), KEPT), "a clock that was put back");
        assert!(!is_forgotten(at(0), at(14_400), Duration::MAX));
    }

    proptest! {
        #[test]
        fn ses_12_there_are_never_more_than_places_and_no_live_one_goes(
            capacity in 0_usize..8,
            ended in prop::collection::vec(prop::option::of(0_i64..5), 0..12),
        ) {
            let places: Vec<_> = (0..).zip(&ended).map(|(id, ended)| place(id, *ended)).collect();
            let live = ended.iter().filter(|ended| ended.is_none()).count();
            match room(capacity, places.iter().copied()) {
                Room::None => prop_assert!(live >= capacity),
                Room::After(forgotten) => {
                    let kept = places.len() - forgotten.len();
                    prop_assert!(kept < capacity);
                    prop_assert!(forgotten.is_empty() || kept + 1 == capacity, "not one more than is needed");
                    prop_assert!(forgotten.iter().all(|id| ended[*id as usize].is_some()));
                }
            }
        }
    }
}
