//! What was told last, as much of it as fits.

use std::collections::VecDeque;

/// What an entry costs beside its content: its place in the queue, which doubles when it is full, and what an allocator
/// keeps for itself. Without it, a program that writes byte by byte would cost many times what is counted.
const OVERHEAD: usize = 128;

/// Entries with ids that rise by one, of a limited size together: the oldest are dropped, the last is always kept.
#[derive(Debug)]
pub struct Ring<T> {
    entries: VecDeque<(usize, T)>,
    next: u64,
    size: usize,
    limit: usize,
}

impl<T> Ring<T> {
    /// An empty one of at most `limit` bytes, whose first entry gets the id `first`; ids begin with 1, since 0 stands for
    /// the time before all of them.
    #[must_use]
    pub fn new(limit: usize, first: u64) -> Self {
        Self { entries: VecDeque::new(), next: first.max(1), size: 0, limit }
    }

    /// Adds an entry with `size` bytes of content, and gives its id.
    pub fn push(&mut self, entry: T, size: usize) -> u64 {
        let (id, size) = (self.next, size.saturating_add(OVERHEAD));
        self.next = self.next.saturating_add(1);
        self.size = self.size.saturating_add(size);
        self.entries.push_back((size, entry));
        while self.size > self.limit && self.entries.len() > 1 {
            if let Some((dropped, _)) = self.entries.pop_front() {
                self.size -= dropped;
            }
        }
        id
    }

    /// The oldest entry that is kept of those after `id`, and its id.
    #[must_use]
    pub fn after(&self, id: u64) -> Option<(u64, &T)> {
        let id = id.saturating_add(1).max(self.oldest());
        let place = usize::try_from(id - self.oldest()).ok()?;
        self.entries.get(place).map(|(_, entry)| (id, entry))
    }

    /// Whether the entry that follows `id` is not kept any more, or was never here.
    #[must_use]
    pub fn lacks_after(&self, id: u64) -> bool {
        id.saturating_add(1) < self.oldest()
    }

    /// The id of the last entry, kept or not; before the first one, the id before it.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.next - 1
    }

    /// The id of the oldest entry that is kept; where there is none, of the next one.
    fn oldest(&self) -> u64 {
        self.next - self.entries.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM_FOR_THREE: usize = 3 * (OVERHEAD + 10);

    #[test]
    fn buf_01_the_oldest_are_dropped_and_the_last_is_kept_whatever_its_size() {
        let mut ring = Ring::new(ROOM_FOR_THREE, 1);
        let ids: Vec<u64> = (0..4).map(|n| ring.push(n, 10)).collect();
        assert_eq!(ids, [1, 2, 3, 4]);
        assert_eq!((ring.lacks_after(0), ring.after(0)), (true, Some((2, &1))));
        assert_eq!((ring.lacks_after(1), ring.after(1)), (false, Some((2, &1))));
        assert_eq!((ring.lacks_after(3), ring.after(3)), (false, Some((4, &3))));
        assert_eq!((ring.lacks_after(4), ring.after(4)), (false, None));
        ring.push(4, ROOM_FOR_THREE);
        assert_eq!((ring.lacks_after(3), ring.after(3)), (true, Some((5, &4))));
    }

    #[test]
    fn d15_entries_without_content_cost_something_too() {
        let mut ring = Ring::new(1_000_000, 1);
        (0..100_000).for_each(|n| {
            ring.push(n, 0);
        });
        assert!(ring.entries.len() * OVERHEAD <= 1_000_000);
        assert!(size_of::<(usize, crate::session::hub::Chunk)>() * 2 <= OVERHEAD);
    }

    #[test]
    fn buf_02_what_was_told_before_the_first_id_is_missing_even_where_nothing_was_told_since() {
        let mut ring = Ring::new(ROOM_FOR_THREE, 5_000);
        assert_eq!((ring.lacks_after(0), ring.after(0)), (true, None));
        assert_eq!((ring.lacks_after(4_999), ring.after(4_999)), (false, None));
        assert_eq!(ring.push('a', 1), 5_000);
        assert_eq!((ring.lacks_after(0), ring.after(0)), (true, Some((5_000, &'a'))));
        assert_eq!(ring.after(u64::MAX), None);
        assert_eq!(Ring::<u8>::new(0, 0).last(), 0, "ids begin with 1");
    }
}
