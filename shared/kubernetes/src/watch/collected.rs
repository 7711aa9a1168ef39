//! All objects of a kind, as a watch has shown them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Change;

/// What is kept of each object, by a key. What was there stays until a list is over: what only seems missing meanwhile would
/// be told, and what the list does not show is gone then (case B109).
///
/// For whoever looks at all of them. Who wakes what belongs to single ones, and takes in the answers to its own writes too,
/// keeps that in another way.
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

impl<T: PartialEq> Collected<T> {
    /// Takes in what is told; `read` says what is kept of an object, and by which key. All there is, where that is another
    /// now, or was not known before.
    pub fn take(&mut self, change: Change, read: impl Fn(&Value) -> (String, T)) -> Option<&BTreeMap<String, T>> {
        self.take_each(change, read, |_, _, _| {})
    }

    /// The same; `differs` is told the key of each object of which something else is known now, what was known of it, and
    /// what is.
    pub fn take_each(
        &mut self,
        change: Change,
        read: impl Fn(&Value) -> (String, T),
        mut differs: impl FnMut(&str, Option<&T>, Option<&T>),
    ) -> Option<&BTreeMap<String, T>> {
        let mut is_another = self.now.is_none();
        let mut differs = |key: &str, before: Option<&T>, now: Option<&T>| {
            is_another = true;
            differs(key, before, now);
        };
        match change {
            Change::Begun => self.next = Some(BTreeMap::new()),
            Change::Seen(object) => {
                let (key, kept) = read(&object);
                if let Some(next) = &mut self.next {
                    next.insert(key, kept);
                } else {
                    let now = self.now.get_or_insert_default();
                    let before = now.get(&key);
                    if before != Some(&kept) {
                        differs(&key, before, Some(&kept));
                        now.insert(key, kept);
                    }
                }
            }
            Change::Gone(object) => {
                let key = read(&object).0;
                if let Some(before) = self.now.as_mut().and_then(|now| now.remove(&key)) {
                    differs(&key, Some(&before), None);
                }
            }
            Change::Listed => {
                let before = self.now.take().unwrap_or_default();
                let now = self.now.insert(self.next.take().unwrap_or_default());
                for (key, before) in before.iter().filter(|(key, _)| !now.contains_key(*key)) {
                    differs(key, Some(before), None);
                }
                for (key, now) in now.iter().filter(|(key, now)| before.get(*key) != Some(now)) {
                    differs(key, before.get(key), Some(now));
                }
            }
            Change::Unreadable { .. } => return None,
        }
        if is_another && self.next.is_none() { self.all() } else { None }
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

    /// Two letters: an object, and what is kept of it.
    fn read(object: &Value) -> (String, char) {
        let mut letters = object.as_str().unwrap().chars();
        (letters.next().unwrap().to_string(), letters.next().unwrap())
    }

    #[test]
    fn b109_what_a_list_does_not_show_is_gone_once_it_is_over_and_not_before() {
        let mut collected = Collected::default();
        let mut after = |change| {
            let mut told = Vec::new();
            let differs = |key: &str, before: Option<&char>, now: Option<&char>| {
                let letter = |known: Option<&char>| known.copied().unwrap_or('-');
                told.push(format!("{key}{}{}", letter(before), letter(now)));
            };
            let is_other = collected.take_each(change, read, differs).is_some();
            let shown = |all: &BTreeMap<String, char>| {
                all.iter().flat_map(|(key, kept)| [key.clone(), kept.to_string()]).collect::<String>()
            };
            let all = collected.all().map(shown);
            (is_other, all.unwrap_or("nothing is known".to_owned()), told.join(" "))
        };
        let is = |is_other: bool, all: &str, told: &str| (is_other, all.to_owned(), told.to_owned());
        let seen = |object: &str| Change::Seen(json!(object));
        assert_eq!(after(Change::Begun), is(false, "nothing is known", ""));
        assert_eq!(after(seen("a1")), is(false, "nothing is known", ""), "half a list says nothing");
        assert_eq!(after(Change::Listed), is(true, "a1", "a-1"));
        assert_eq!(after(seen("b1")), is(true, "a1b1", "b-1"));
        assert_eq!(after(seen("b2")), is(true, "a1b2", "b12"));
        assert_eq!(after(seen("b2")), is(false, "a1b2", ""));
        assert_eq!(after(Change::Begun), is(false, "a1b2", ""));
        assert_eq!(after(seen("b3")), is(false, "a1b2", ""));
        assert_eq!(after(seen("c3")), is(false, "a1b2", ""));
        assert_eq!(after(Change::Listed), is(true, "b3c3", "a1- b23 c-3"));
        assert_eq!(after(Change::Gone(json!("a9"))), is(false, "b3c3", ""), "it was not there");
        assert_eq!(after(Change::Gone(json!("b9"))), is(true, "c3", "b3-"));
        assert_eq!(after(Change::Begun), is(false, "c3", ""));
        assert_eq!(after(seen("c3")), is(false, "c3", ""));
        assert_eq!(after(Change::Listed), is(false, "c3", ""), "nothing is another");
    }

    #[test]
    fn that_there_is_nothing_is_news_once() {
        let mut collected = Collected::default();
        let mut is_news = |change| collected.take(change, read).is_some();
        for expected in [true, false] {
            assert!(!is_news(Change::Begun));
            assert_eq!(is_news(Change::Listed), expected);
        }
    }
}
