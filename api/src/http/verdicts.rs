//! Verdicts on callers, for a moment: at most so many, and none older than so long.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::access::Act;
use crate::token::TokenDigest;

/// What the cluster said of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// It may not.
    Forbidden,
    /// Nobody knows it.
    Unknown,
}

/// A token that wants to do something. It holds the token's digest, and not the token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    token: TokenDigest,
    act: Act,
}

/// What is believed.
pub struct Verdicts {
    by_key: HashMap<Key, (Verdict, Instant)>,
    most: usize,
    believed: Duration,
}

impl Key {
    /// That of a token.
    #[must_use]
    pub fn of(token: &str, act: Act) -> Self {
        Self { token: TokenDigest::of(token), act }
    }
}

impl Verdicts {
    /// None yet, of at most so many, each believed so long.
    #[must_use]
    pub fn new(most: usize, believed: Duration) -> Self {
        Self { by_key: HashMap::new(), most, believed }
    }

    /// What is believed of a caller at that time.
    #[must_use]
    pub fn find(&self, key: &Key, now: Instant) -> Option<Verdict> {
        self.by_key.get(key).filter(|(_, since)| self.is_believed(*since, now)).map(|(verdict, _)| *verdict)
    }

    /// Believes a verdict from now on. Where there are too many, those go that are believed no more; then what was refused, so
    /// that guesses displace nobody who may call; then all, which costs each caller one question.
    pub fn note(&mut self, key: Key, verdict: Verdict, now: Instant) {
        if self.by_key.len() >= self.most {
            let believed = self.believed;
            self.by_key.retain(|_, (_, since)| now.duration_since(*since) < believed);
        }
        if self.by_key.len() >= self.most {
            self.by_key.retain(|_, (verdict, _)| *verdict == Verdict::Allowed);
        }
        if self.by_key.len() >= self.most {
            self.by_key.clear();
        }
        self.by_key.insert(key, (verdict, now));
    }

    fn is_believed(&self, since: Instant, now: Instant) -> bool {
        now.duration_since(since) < self.believed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BELIEVED: Duration = Duration::from_secs(10);

    #[test]
    fn a_verdict_is_of_one_token_and_one_act_and_is_believed_for_a_moment() {
        let (mut verdicts, now) = (Verdicts::new(10, BELIEVED), Instant::now());
        verdicts.note(Key::of("a", Act::Read), Verdict::Allowed, now);
        assert_eq!(verdicts.find(&Key::of("a", Act::Read), now), Some(Verdict::Allowed));
        assert_eq!(verdicts.find(&Key::of("a", Act::Delete), now), None);
        assert_eq!(verdicts.find(&Key::of("b", Act::Read), now), None);
        assert_eq!(verdicts.find(&Key::of("a", Act::Read), now + BELIEVED), None);
        verdicts.note(Key::of("a", Act::Read), Verdict::Unknown, now + BELIEVED);
        assert_eq!(verdicts.find(&Key::of("a", Act::Read), now + BELIEVED), Some(Verdict::Unknown));
    }

    #[test]
    fn there_are_never_more_than_so_many_and_guesses_displace_nobody_who_may_call() {
        let (mut verdicts, now) = (Verdicts::new(10, BELIEVED), Instant::now());
        let good = Key::of("good", Act::Read);
        verdicts.note(good, Verdict::Allowed, now);
        for guess in 0..1000 {
            verdicts.note(Key::of(&guess.to_string(), Act::Read), Verdict::Unknown, now);
            assert!(verdicts.by_key.len() <= 10);
        }
        assert_eq!(verdicts.find(&good, now), Some(Verdict::Allowed));
        for caller in 0..1000 {
            verdicts.note(Key::of(&caller.to_string(), Act::Read), Verdict::Allowed, now);
            assert!(verdicts.by_key.len() <= 10);
        }
    }
}
