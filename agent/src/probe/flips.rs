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
    /// Whether it ever was good, or was waited for before: what has begun, or had its time, is not waited for again.
    had_its_time: bool,
    first: Option<Instant>,
    /// Failures that counted since the last success or change of the verdict.
    failed: u32,
    /// The last failure, and how often it came in a row.
    last: Option<(E, u32)>,
    /// What failed again and again before there was a verdict.
    so_far: Option<E>,
}

impl<T: PartialEq, E: Clone + PartialEq> Flips<T, E> {
    /// Begins with what is known already; with none where nothing is.
    pub(crate) fn new(verdict: Option<Result<T, E>>) -> Self {
        let had_its_time = matches!(verdict, Some(Ok(_)));
        Self { verdict, had_its_time, first: None, failed: 0, last: None, so_far: None }
    }

    /// Not waited for any more, if it `was` before: by somebody else, who may have found it bad.
    pub(crate) fn waited_for(self, was: bool) -> Self {
        Self { had_its_time: self.had_its_time || was, ..self }
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
    /// One success makes it good. `failures` failures in a row make it bad; of what never was good, and was not
    /// [`waited_for`](Self::waited_for), only once [`GRACE`] is over, since the first result or, where a failure such as this one is
    /// a matter of course for longer, `since` that ended, which may be `now`. The last failure is the reason, and stays it until
    /// another one came as often in a row, so that reasons that take turns are not told again and again. Where that one does not
    /// count yet there is no verdict any more.
    pub(crate) fn saw(&mut self, now: Instant, failures: u32, since: Option<Instant>, result: Result<T, E>) -> bool {
        let first = *self.first.get_or_insert(now);
        let Err(error) = result else {
            self.had_its_time = true;
            self.last = None;
            return self.set(Some(result));
        };
        let before = self.last.take().filter(|(last, _)| *last == error);
        let in_a_row = before.map_or(1, |(_, count)| count.saturating_add(1));
        self.last = Some((error.clone(), in_a_row));
        let age = now.saturating_duration_since(since.map_or(first, |since| since.max(first)));
        let (stays, counts) = (in_a_row >= failures, self.had_its_time || age >= GRACE);
        self.failed = self.failed.saturating_add(counts.into());
        let flips = match &self.verdict {
            None | Some(Ok(_)) => counts && (stays || self.failed >= failures),
            Some(Err(_)) => stays,
        };
        if flips {
            return self.set(counts.then_some(Err(error)));
        }
        if self.verdict.is_none() && stays && age >= SOON {
            self.so_far = Some(error);
        }
        false
    }

    fn set(&mut self, verdict: Option<Result<T, E>>) -> bool {
        let changes = self.verdict != verdict;
        (self.verdict, self.failed, self.so_far) = (verdict, 0, None);
        changes
    }
}

#[cfg(test)]
mod tests;
