//! What of a program's output was given away: so much that what comes again is known.
//!
//! The log and the terminal carry the same bytes, and neither says where in them it begins. A log ends with the last whole
//! line, so what was written without one may be missing between the two. And containerd's has no carriage return where a line
//! ends, as a terminal does: none of them counts for a place, on either side.

/// So many of the last bytes are kept.
const TAIL: usize = 64 * 1024;

/// So many of them tell a place in a log.
const NEEDLE: usize = 256;

/// How much was given away, and the last of it, both without carriage returns.
#[derive(Debug, Default)]
pub(super) struct Shown {
    count: u64,
    tail: Vec<u8>,
}

impl Shown {
    /// That is given away.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let bytes: Vec<u8> = counted(bytes).collect();
        self.count = self.count.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let bytes = &bytes[bytes.len().saturating_sub(TAIL)..];
        let kept = TAIL - bytes.len();
        self.tail.drain(..self.tail.len().saturating_sub(kept));
        self.tail.extend_from_slice(bytes);
    }

    /// So many [counted](skip) bytes of a log were given away for sure; what follows has to be looked at.
    pub(super) fn certain(&self) -> u64 {
        self.count.saturating_sub(u64::try_from(TAIL).unwrap_or(u64::MAX))
    }

    /// Of a log without its [`certain`](Self::certain) bytes, the place from which it is new. That is where what was given away
    /// last stands, nearest to where it ought to.
    pub(super) fn place(&self, log: &[u8]) -> usize {
        let all = log;
        let log: &[u8] = &counted(log).collect::<Vec<_>>();
        let expected = usize::try_from(self.count - self.certain()).unwrap_or(usize::MAX);
        let needle = &self.tail[self.tail.len().saturating_sub(NEEDLE)..];
        let found = (0..log.len()).filter(|start| !needle.is_empty() && log[*start..].starts_with(needle));
        let place = found.map(|start| start + needle.len()).min_by_key(|place| place.abs_diff(expected));
        let place = place.unwrap_or(expected.min(log.len()));
        // A log ends its last line, also where the program did not.
        let is_added = &log[place..] == b"\n" && !self.tail.is_empty() && self.tail.last() != Some(&b'\n');
        let mut skipped = u64::try_from(if is_added { log.len() } else { place }).unwrap_or(u64::MAX);
        skip(all, &mut skipped)
    }
}

/// Skips as much of the bytes as is to be skipped, and says how much that was. Carriage returns are passed over, and do not
/// count.
pub(super) fn skip(bytes: &[u8], count: &mut u64) -> usize {
    let mut skipped = 0;
    while *count > 0 && skipped < bytes.len() {
        *count -= u64::from(bytes[skipped] != b'\r');
        skipped += 1;
    }
    skipped
}

fn counted(bytes: &[u8]) -> impl Iterator<Item = u8> {
    bytes.iter().copied().filter(|byte| *byte != b'\r')
}

/// Where in a log the terminal begins, by the first of what came of it.
#[derive(Debug)]
pub(super) struct Beginning {
    early: Vec<u8>,
    borders: Vec<usize>,
    /// How many of the first early bytes are the last of the log.
    length: usize,
    /// So much of the log was from the beginning on when all of them were found last, and since.
    found: Option<u64>,
}

impl Beginning {
    /// Is looked for in what of the log is read from now on.
    pub(super) fn new(early: &[u8]) -> Self {
        let early: Vec<u8> = counted(early).collect();
        Self { borders: borders(&early), early, length: 0, found: None }
    }

    /// That comes next in the log.
    pub(super) fn look(&mut self, log: &[u8]) {
        for byte in counted(log) {
            self.length = longer(&self.early, &self.borders, self.length, byte);
            let since = self.found.map(|found| found.saturating_add(1));
            let is_found = self.length > 0 && self.length == self.early.len();
            self.found = if is_found { u64::try_from(self.length).ok() } else { since };
        }
    }

    /// So many of the terminal's first bytes, those that [count](skip), are in the log. The last of those places counts where there are several: the log is
    /// read as soon as the terminal has begun.
    pub(super) fn in_log(&self) -> u64 {
        self.found.or_else(|| u64::try_from(self.length).ok()).unwrap_or_default()
    }
}

/// For each beginning of a text the longest shorter one that it ends with (Knuth, Morris and Pratt): whoever writes may choose
/// a text for which trying each would take for ever.
fn borders(text: &[u8]) -> Vec<usize> {
    let mut borders = Vec::with_capacity(text.len());
    for (place, byte) in text.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| borders[before]);
        borders.push(before.map_or(0, |length| longer(text, &borders, length, *byte)));
    }
    borders
}

/// How long a beginning of the text ends with this byte, after one of that length.
fn longer(text: &[u8], borders: &[usize], mut length: usize, byte: u8) -> usize {
    loop {
        match text.get(length) {
            Some(next) if *next == byte => return length + 1,
            _ if length == 0 => return 0,
            _ => length = borders[length - 1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Shown {
        let mut shown = Shown::default();
        shown.add(text.as_bytes());
        shown
    }

    #[test]
    fn d04_what_was_given_away_is_not_given_again_and_the_rest_is() {
        for (before, log, new) in [
            ("", "one\ntwo\n", "one\ntwo\n"),
            ("one\n", "one\ntwo\n", "two\n"),
            ("one\ntwo\n", "one\ntwo\n", ""),
            ("one\nA> ", "one\n", ""),
            // The log adds the end of the last line.
            ("one\nA> ", "one\nA> \n", ""),
            ("one\nA> ", "one\nA> yes\n", "yes\n"),
            // What was written without a line's end before one was attached is missing in what was shown.
            ("x\nx\n", "x\n> x\nx\nend\n", "end\n"),
            // The same again and again: what is nearest to its place.
            ("a\na\n", "a\na\na\na\n", "a\na\n"),
            // The log was rotated.
            ("one\ntwo\n", "three\n", ""),
        ] {
            let place = shown(before).place(log.as_bytes());
            assert_eq!(&log[place..], new, "{log:?} after {before:?}");
            // As a terminal gives it.
            let place = shown(&before.replace('\n', "\r\n")).place(log.as_bytes());
            assert_eq!(&log[place..], new, "{log:?} after {before:?}");
        }
        let log = "1 %\r2 %\r3 %\n\rdone\n";
        assert_eq!(&log[shown("1 %\r2 %\r").place(log.as_bytes())..], "\r3 %\n\rdone\n");
    }

    #[test]
    fn what_is_in_the_log_and_on_the_terminal_is_one() {
        for (log, early, seen) in [
            ("", "one\n", 0),
            ("one\n", "", 0),
            ("one\ntwo\n", "two\nthree\n", 4),
            ("one\ntwo\n", "three\n", 0),
            ("one\n", "one\n", 4),
            ("a\na\n", "a\nb\n", 2),
            ("abab", "ababc", 4),
            ("xaab", "aabaab", 3),
            ("aaab", "aaaa", 0),
            ("aaa", "aab", 2),
            // More is in the log by now than has come: the rest is still to come.
            ("one\ntwo\nthree\nfour\n", "two\n", 15),
            ("one\ntwo\n", "e\ntw", 6),
            // All of it in its place is more than some of it at the end.
            ("one\ntwo\nthree\n", "\ntwo\n", 11),
            ("a\na\na\nb\n", "a\n", 4),
        ] {
            for part in 1..=log.len().max(1) {
                for early in [early.to_owned(), early.replace('\n', "\r\n")] {
                    let mut beginning = Beginning::new(early.as_bytes());
                    log.as_bytes().chunks(part).for_each(|log| beginning.look(log));
                    assert_eq!(beginning.in_log(), seen, "{early:?} after {log:?}");
                }
            }
        }
    }

    #[test]
    fn much_is_counted_and_little_kept() {
        let mut shown = Shown::default();
        let text: Vec<u8> = (0_u32..300_000).flat_map(|number| format!("{number}\n").into_bytes()).collect();
        let (before, after) = text.split_at(text.len() - 5000);
        before.chunks(1000).for_each(|chunk| shown.add(chunk));
        assert_eq!((shown.tail.len(), shown.tail.capacity() < 4 * TAIL), (TAIL, true));
        let log = &text[usize::try_from(shown.certain()).unwrap()..];
        assert_eq!(&log[shown.place(log)..], after);
        shown.add(&text);
        assert_eq!(shown.tail, text[text.len() - TAIL..]);
    }
}
