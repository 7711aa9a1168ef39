//! All objects of a kind, as a watch has shown them.

use std::collections::HashMap;

use serde_json::Value;

use super::Change;

/// What is kept of each object, by a key. What was there stays until a list is over: what only seems missing meanwhile would
/// be told, and what the list does not show is gone then (case B109).
#[derive(Debug)]
pub struct Collected<T> {
    now: HashMap<String, T>,
    next: Option<HashMap<String, T>>,
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self { now: HashMap::new(), next: None }
    }
}

impl<T> Collected<T> {
    /// Takes in what is told; `read` says what is kept of an object, and by which key. Whether all there is may be another
    /// now.
    pub fn take(&mut self, change: Change, read: impl Fn(Value) -> (String, T)) -> bool {
        match change {
            Change::Begun => self.next = Some(HashMap::new()),
            Change::Seen(object) => {
                let (key, kept) = read(object);
                self.next.as_mut().unwrap_or(&mut self.now).insert(key, kept);
            }
            Change::Gone(object) => drop(self.now.remove(&read(object).0)),
            Change::Listed => self.now = self.next.take().unwrap_or_default(),
            Change::Unreadable(_) => return false,
        }
        self.next.is_none()
    }

    /// All there is.
    #[must_use]
    pub fn all(&self) -> &HashMap<String, T> {
        &self.now
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
            let changed = collected.take(change, |object| (object.as_str().unwrap_or_default().to_owned(), ()));
            let mut keys: Vec<String> = collected.all().keys().cloned().collect();
            keys.sort();
            (changed, keys.concat())
        };
        let is = |changed: bool, keys: &str| (changed, keys.to_owned());
        assert_eq!(take(Change::Begun), is(false, ""));
        assert_eq!(take(Change::Seen(json!("a"))), is(false, ""));
        assert_eq!(take(Change::Listed), is(true, "a"));
        assert_eq!(take(Change::Seen(json!("b"))), is(true, "ab"));
        assert_eq!(take(Change::Begun), is(false, "ab"));
        assert_eq!(take(Change::Seen(json!("b"))), is(false, "ab"));
        assert_eq!(take(Change::Listed), is(true, "b"));
        assert_eq!(take(Change::Gone(json!("b"))), is(true, ""));
    }
}
