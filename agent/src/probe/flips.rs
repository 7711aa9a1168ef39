//! When a verdict changes: slowly to the worse, at once to the better.

use std::time::Duration;

use tokio::time::Instant;

/// How long a program may take to begin (contract row RCH-02): failures before that are no verdict.
pub(crate) const GRACE: Duration = Duration::from_secs(30);

/// What is found for so long is worth telling before it is a verdict; most programs begin sooner, and nothing more is told
/// of them.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// A verdict, and what leads to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flips<T, E> {
    verdict: Option<Result<T, E>>,
    first: Option<Instant>,
    /// Failures since the last success.
    failed: u32,
    /// The last of them, and how often it came in a row.
    last: Option<(E, u32)>,
    /// What failed again and again before there was a verdict.
    so_far: Option<E>,
}

impl<T: PartialEq, E: Clone + PartialEq> Flips<T, E> {
    /// Begins with what is known already; with none where nothing is.
    pub(crate) fn new(verdict: Option<Result<T, E>>) -> Self {
        Self { verdict, first: None, failed: 0, last: None, so_far: None }
    }

    /// The verdict; none before there is one.
    pub(crate) fn verdict(&self) -> Option<&Result<T, E>> {
        self.verdict.as_ref()
    }

    /// What is found before there is a verdict, for [`SOON`] at least; as with a verdict, another one takes its place once it
    /// came as often in a row.
    pub(crate) fn so_far(&self) -> Option<&E> {
        self.so_far.as_ref()
    }

    /// Takes in a probe's result and says whether the verdict is another one now.
    ///
    /// One success makes it good. `failures` failures in a row make it bad, the first time only once [`GRACE`] is over;
    /// the last of them is the reason, and stays it until another one came as often in a row, so that reasons that take
    /// turns are not told again and again.
    pub(crate) fn saw(&mut self, now: Instant, failures: u32, result: Result<T, E>) -> bool {
        let first = *self.first.get_or_insert(now);
        let Err(error) = result else {
            self.failed = 0;
            self.last = None;
            return self.set(result);
        };
        self.failed = self.failed.saturating_add(1);
        let before = self.last.take().filter(|(last, _)| *last == error);
        let in_a_row = before.map_or(1, |(_, count)| count.saturating_add(1));
        self.last = Some((error.clone(), in_a_row));
        let flips = match &self.verdict {
            None => self.failed >= failures && now.duration_since(first) >= GRACE,
            Some(Ok(_)) => self.failed >= failures,
            Some(Err(_)) => in_a_row >= failures,
        };
        if flips {
            return self.set(Err(error));
        }
        if self.verdict.is_none() && in_a_row >= failures && now.duration_since(first) >= SOON {
            self.so_far = Some(error);
        }
        false
    }

    fn set(&mut self, verdict: Result<T, E>) -> bool {
        let verdict = Some(verdict);
        let changes = self.verdict != verdict;
        self.so_far = None;
        self.verdict = verdict;
        changes
    }
}

#[cfg(test)]
mod tests;
