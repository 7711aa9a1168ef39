//! What the watches told while a write was on its way: its answer may be older than that.

use std::collections::{HashMap, VecDeque};

use crate::objects::Kind;

/// So many objects that are gone are remembered. An answer that may be about one that is forgotten is not taken: the watch
/// tells of all that is there, only later.
const MOST: usize = 1024;

/// A moment in what the watches told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

/// What was told to be gone.
#[derive(Debug, Default)]
pub(super) struct Told {
    now: Moment,
    /// The uids of objects that went, and when, the newest last.
    gone: VecDeque<(Moment, String)>,
    /// When the newest went of those that are forgotten.
    forgotten: Moment,
    /// When a kind was listed last: what the list did not show is gone, whether it was known or not.
    listed: HashMap<Kind, Moment>,
}

impl Told {
    pub(super) fn now(&self) -> Moment {
        self.now
    }

    pub(super) fn gone(&mut self, uid: &str) {
        let now = self.next();
        self.gone.push_back((now, uid.to_owned()));
        if self.gone.len() > MOST {
            self.forgotten = self.gone.pop_front().map_or(now, |(moment, _)| moment);
        }
    }

    pub(super) fn listed(&mut self, kind: Kind) {
        let now = self.next();
        self.listed.insert(kind, now);
    }

    /// Whether an object of that uid that was there at some time after `begun` may be gone since.
    pub(super) fn may_be_gone(&self, kind: Kind, uid: &str, begun: Moment) -> bool {
        let mut since = self.gone.iter().rev().take_while(|(moment, _)| *moment > begun);
        self.forgotten > begun
            || self.listed.get(&kind).is_some_and(|moment| *moment > begun)
            || since.any(|(_, gone)| gone == uid)
    }

    /// The next moment.
    pub(super) fn next(&mut self) -> Moment {
        self.now.0 += 1;
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_after_the_moment_is_gone_and_what_is_forgotten_may_be() {
        let mut told = Told::default();
        told.gone("a");
        let begun = told.now();
        assert!(!told.may_be_gone(Kind::Service, "a", begun), "another watch told of it before");
        told.gone("b");
        assert!(told.may_be_gone(Kind::Service, "b", begun) && !told.may_be_gone(Kind::Service, "c", begun));
        told.listed(Kind::Ingress);
        assert!(told.may_be_gone(Kind::Ingress, "c", begun) && !told.may_be_gone(Kind::Service, "c", begun));
        assert!(!told.may_be_gone(Kind::Ingress, "c", told.now()));
        (0..MOST).for_each(|_| told.gone("others"));
        assert!(told.may_be_gone(Kind::Service, "c", begun));
        assert_eq!(told.gone.len(), MOST);
    }
}
