//! Which ports a session is published with: those that it asks for, but ever slower while it keeps asking for others. Each
//! change is a write of its Service, its endpoints and its routes, and whoever may annotate the pod may ask as often as
//! they like.

use std::time::{Duration, Instant};

use cofferdam_model::ports::{Ports, PortsError};

use crate::work::pace::Pace;

/// So many changes come at once; then they wait, for so long at most.
const FREE: u32 = 5;
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// The ports that a session is published with.
#[derive(Debug)]
pub(super) struct Wish {
    /// None before the first look.
    ports: Option<Ports>,
    pace: Pace,
}

impl Default for Wish {
    fn default() -> Self {
        Self { ports: None, pace: Pace::new(FREE, LONGEST_PAUSE) }
    }
}

impl Wish {
    /// The ports to publish now, and when to look again if others are asked for. The first ones are taken up at once, and
    /// what is asked for no more goes at once: somebody may have closed a door in a hurry. Each door has to be opened before
    /// it is closed, so that is no more than what waits. A list that cannot be read asks for nothing.
    pub(super) fn take_up(&mut self, asked: &Result<Ports, PortsError>, now: Instant) -> (Ports, Option<Instant>) {
        let wanted = asked.as_ref().cloned().unwrap_or_default();
        let kept = self.ports.as_ref().map(|ports| wanted.among(ports));
        let is_more = kept.as_ref().is_some_and(|kept| *kept != wanted);
        let due = if is_more { self.pace.due(now) } else { now };
        if is_more && due <= now {
            self.pace.made(now);
        }
        let waits = is_more && due > now;
        let ports = kept.filter(|_| waits).unwrap_or(wanted);
        self.ports = Some(ports.clone());
        (ports, waits.then_some(due))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ask(wish: &mut Wish, ports: &str, now: Instant) -> (String, bool) {
        let (taken, later) = wish.take_up(&Ports::parse(ports), now);
        (taken.to_string(), later.is_some())
    }

    #[test]
    fn the_first_ports_are_taken_up_at_once_and_those_that_keep_changing_wait() {
        let (mut wish, now) = (Wish::default(), Instant::now());
        for port in 1..=6 {
            assert_eq!(ask(&mut wish, &port.to_string(), now), (format!("{port}/tcp"), false));
        }
        assert_eq!(ask(&mut wish, "7", now), (String::new(), true));
        assert_eq!(ask(&mut wish, "8", now), (String::new(), true));
        let later = now + Duration::from_secs(1);
        assert_eq!(ask(&mut wish, "8,9", later), ("8/tcp,9/tcp".to_owned(), false), "the last that was asked for");
        assert_eq!(ask(&mut wish, "8,10", later), ("8/tcp".to_owned(), true), "what is kept stays");
        let quiet = later + Duration::from_mins(20);
        assert_eq!(ask(&mut wish, "8,10", quiet), ("8/tcp,10/tcp".to_owned(), false));
        assert_eq!(ask(&mut wish, "11", quiet), ("11/tcp".to_owned(), false), "all is forgotten");
    }

    #[test]
    fn what_is_asked_for_no_more_goes_at_once_and_is_no_change_that_waits() {
        let (mut wish, now) = (Wish::default(), Instant::now());
        ask(&mut wish, "1,2,3,4,5,6,7,8", now);
        for ports in ["1,2,3", "1,2", "1"] {
            assert!(!ask(&mut wish, ports, now).1);
        }
        for _ in 0..=FREE {
            assert!(!ask(&mut wish, "1", now).1);
            assert_eq!(ask(&mut wish, "x", now), (String::new(), false));
        }
        assert_eq!(ask(&mut wish, "1", now), (String::new(), true), "a list that cannot be read asks for nothing");
    }

    proptest! {
        #[test]
        fn nothing_is_published_that_is_not_asked_for_and_the_last_wish_comes_true(
            asked in prop::collection::vec("([1-5],){0,3}[1-6x]", 1..60), gaps in prop::collection::vec(0_u64..90_000, 60),
        ) {
            let (mut wish, mut now) = (Wish::default(), Instant::now());
            let mut moment = None;
            for (text, gap) in asked.iter().zip(gaps) {
                now += Duration::from_millis(gap);
                let (taken, later) = wish.take_up(&Ports::parse(text), now);
                moment = later;
                let asked = Ports::parse(text).unwrap_or_default();
                prop_assert_eq!(&taken.among(&asked), &taken);
                prop_assert_eq!(taken == asked, later.is_none());
            }
            let last = Ports::parse(asked.last().map_or("", |text| text));
            let (taken, later) = wish.take_up(&last, moment.unwrap_or(now));
            prop_assert_eq!((taken, later), (last.unwrap_or_default(), None));
        }
    }
}
