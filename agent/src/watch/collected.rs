//! All objects of a kind, as a watch has shown them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Change;

/// What is kept of each object, by a key. What was there stays until a list is over: what only seems missing meanwhile would
/// be told, and what the list does not show is gone then (case B109).
#[derive(Debug)]
pub struct Collected<T> {
    now: Option<BTreeMap<String, T>>,
    next: Option<BTreeMap<String, T>>,
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self { now: None, next: None }
    }
}

impl<T> Collected<T> {
    /// Takes in what is told; `read` says what is kept of an object, and by which key. All there is, where that may be
    /// another now.
    pub fn take(&mut self, change: Change, read: impl Fn(Value) -> (String, T)) -> Option<&BTreeMap<String, T>> {
        match change {
            Change::Begun => self.next = Some(BTreeMap::new()),
            Change::Seen(object) => {
                let (key, kept) = read(object);
                self.next.as_mut().or(self.now.as_mut())?.insert(key, kept);
            }
            Change::Gone(object) => drop(self.now.as_mut()?.remove(&read(object).0)),
            Change::Listed => self.now = self.next.take(),
            Change::Unreadable(_) => return None,
        }
        if self.next.is_some() { None } else { self.all() }
    }

    /// All there is; none before the first list is over: half of it would make what is there seem missing.
    #[must_use]
    pub fn all(&self) -> Option<&BTreeMap<String, T>> {
        self.now.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b109_what_a_list_does_not_show_is_gone_once_it_is_over_and_not_before() {
        let mut collected = Collected::default();
        let mut take = |change| {
            let read = |object: Value| (object.as_str().unwrap_or_default().to_owned(), ());
            let changed = collected.take(change, read).is_some();
            (changed, collected.all().map(|all| all.keys().map(String::as_str).collect::<String>()))
        };
        let is = |changed: bool, keys: &str| (changed, Some(keys.to_owned()));
        assert_eq!(take(Change::Begun), (false, None));
        assert_eq!(take(Change::Seen(json!("a"))), (false, None), "half a list says nothing");
        assert_eq!(take(Change::Listed), is(true, "a"));
        assert_eq!(take(Change::Seen(json!("b"))), is(true, "ab"));
        assert_eq!(take(Change::Begun), is(false, "ab"));
        assert_eq!(take(Change::Seen(json!("b"))), is(false, "ab"));
        assert_eq!(take(Change::Listed), is(true, "b"));
        assert_eq!(take(Change::Gone(json!("b"))), is(true, ""));
    }
}
