//! Edits. Each writes down what it did, so warnings and recorded changes are as true as the patch.

use serde_json::{Map, Value};

use super::{Draft, Path, path::Step};
use crate::{
    change::{Action, Change, Told},
    quantity::Quantity,
    refusal::Reason,
};

/// A value that a rule may demand. Its kind also says how much of the value that it replaces may be told.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    /// true or false
    Switch(bool),
    /// a whole number
    Number(i64),
    /// a word of the API's vocabulary
    Word(&'static str),
    /// a quantity
    Amount(Quantity),
}

/// How much of a value may be told.
pub(crate) type Tell = fn(&Value) -> Option<Told>;

impl Draft {
    /// The field must be `want`: injected where it is missing, tightened where it is anything else.
    pub(crate) fn require(&mut self, path: &Path, want: impl Into<Setting>) {
        let want = want.into();
        match self.holds(path, want) {
            None => self.inject(path, want),
            Some(false) => self.tighten(path, want),
            Some(true) => {}
        }
    }

    /// As [`Draft::require`], for a field that the API server itself fills with `default`: nobody asked for that
    /// value, so it counts as missing.
    pub(crate) fn require_over(&mut self, path: &Path, want: impl Into<Setting>, default: impl Into<Setting>) {
        if self.holds(path, default.into()) == Some(true) {
            let want = want.into();
            if self.holds(path, want) == Some(false) {
                self.inject(path, want);
            }
        } else {
            self.require(path, want);
        }
    }

    /// Sets a field that nobody asked to be otherwise.
    pub(crate) fn inject(&mut self, path: &Path, want: impl Into<Setting>) {
        self.put(path, want.into(), Action::Inject);
    }

    /// Sets a field that was asked to be weaker.
    pub(crate) fn tighten(&mut self, path: &Path, want: impl Into<Setting>) {
        self.put(path, want.into(), Action::Tighten);
    }

    /// Sets a field to a list or an object, telling what `tell` finds fit of it.
    pub(crate) fn write(&mut self, path: &Path, value: Value, action: Action, tell: Tell) {
        let new = tell(&value);
        if let Some(old) = self.set(path, value) {
            self.note(path, action, tell(&old), new, &old);
        }
    }

    /// Sets a mark of ours, which is no change to what the pod is.
    pub(crate) fn stamp(&mut self, path: &Path, text: String) {
        if self.text(path).as_deref() != Some(&text) {
            self.set(path, Value::String(text));
        }
    }

    /// Appends to a list, which is made where there is none; an item is not for telling.
    pub(crate) fn append(&mut self, list: &Path, value: Value) {
        let end = self.items(list).len();
        self.insert(list, end, value);
    }

    /// Puts an item into a list, which is made where there is none; an item is not for telling.
    pub(crate) fn insert(&mut self, list: &Path, index: usize, value: Value) {
        let item = list.index(index);
        if !self.is_in_view(&item) {
            return;
        }
        match find_mut(&mut self.root, list) {
            Some(Value::Array(items)) if index <= items.len() => {
                self.operations.insert(list.steps(), index, &value);
                items.insert(index, value);
            }
            Some(other) if !other.is_null() => return,
            _ => drop(self.set(list, Value::Array(vec![value]))),
        }
        self.note(&item, Action::Inject, None, None, &Value::Null);
    }

    /// Removes a field, telling what `tell` finds fit of it.
    pub(crate) fn remove(&mut self, path: &Path, action: Action, tell: Tell) {
        let Some((Step::Key(key), parent)) = path.steps().split_last() else { return };
        let parent = path.prefix(parent.len());
        if self.is_in_view(path)
            && let Some(Value::Object(members)) = find_mut(&mut self.root, &parent)
            && let Some(old) = members.remove(key.as_ref())
        {
            self.operations.remove(path.steps());
            self.note_removed(path, action, tell, &old);
        }
    }

    /// Removes items of a list, given in ascending order.
    pub(crate) fn remove_items(&mut self, list: &Path, indices: &[usize], action: Action, tell: Tell) {
        if !self.is_in_view(list) {
            return;
        }
        let mut removed = Vec::new();
        if let Some(Value::Array(items)) = find_mut(&mut self.root, list) {
            let mut indices = indices.iter().peekable();
            for (index, item) in std::mem::take(items).into_iter().enumerate() {
                if indices.next_if_eq(&&index).is_some() {
                    removed.push((list.index(index), item));
                } else {
                    items.push(item);
                }
            }
        }
        for (item, _) in removed.iter().rev() {
            self.operations.remove(item.steps());
        }
        for (item, old) in removed {
            self.note_removed(&item, action, tell, &old);
        }
    }

    /// Whether the field is `want`; `None` where it is missing or of another type (which is then refused).
    fn holds(&mut self, path: &Path, want: Setting) -> Option<bool> {
        match want {
            Setting::Switch(want) => self.switch(path).map(|is| is == want),
            Setting::Number(want) => self.number(path).map(|is| is == want),
            Setting::Word(want) => self.text(path).map(|is| is == want),
            Setting::Amount(want) => self.amount(path).map(|is| is == want),
        }
    }

    fn put(&mut self, path: &Path, want: Setting, action: Action) {
        if let Some(old) = self.set(path, want.value()) {
            self.note(path, action, want.told_of(&old), Some(want.told()), &old);
        }
    }

    /// Sets the value at a place and returns the old one, with the objects on the way made where they are missing;
    /// nothing where something else is in the way, which the read before the edit has refused, or out of view.
    fn set(&mut self, path: &Path, value: Value) -> Option<Value> {
        if !self.is_in_view(path) {
            return None;
        }
        let mut there = 0;
        let mut slot = &mut self.root;
        for (steps, step) in path.steps().iter().enumerate() {
            if !slot.is_null() {
                there = steps;
            }
            slot = match step {
                Step::Key(key) => {
                    if slot.is_null() {
                        *slot = Value::Object(Map::new());
                    }
                    slot.as_object_mut()?.entry(key.as_ref()).or_insert(Value::Null)
                }
                Step::Index(index) => slot.as_array_mut()?.get_mut(*index)?,
            };
        }
        if !slot.is_null() {
            there = path.steps().len();
        }
        self.operations.set(path.steps(), there, &value);
        Some(std::mem::replace(slot, value))
    }

    fn note(&mut self, path: &Path, action: Action, old: Option<Told>, new: Option<Told>, was: &Value) {
        self.keep(Change { rule: self.rule, path: path.to_string(), action, old, new, removed: false }, was);
    }

    fn note_removed(&mut self, path: &Path, action: Action, tell: Tell, was: &Value) {
        let old = tell(was);
        self.keep(Change { rule: self.rule, path: path.to_string(), action, old, new: None, removed: true }, was);
    }

    fn keep(&mut self, change: Change, was: &Value) {
        if let Some(findings) = &mut self.findings {
            findings.push((Reason::of(&change), was.clone()));
        }
        self.changes.push(change);
    }
}

impl Setting {
    fn value(self) -> Value {
        match self {
            Self::Switch(value) => value.into(),
            Self::Number(value) => value.into(),
            Self::Word(value) => value.into(),
            Self::Amount(value) => value.to_string().into(),
        }
    }

    fn told(self) -> Told {
        match self {
            Self::Switch(value) => value.into(),
            Self::Number(value) => value.into(),
            Self::Word(value) => value.into(),
            Self::Amount(value) => value.into(),
        }
    }

    fn told_of(self, old: &Value) -> Option<Told> {
        match self {
            Self::Switch(_) | Self::Number(_) => Told::plain(old),
            Self::Word(_) => Told::words(old),
            Self::Amount(_) => Told::amount(old),
        }
    }
}

impl From<bool> for Setting {
    fn from(value: bool) -> Self {
        Self::Switch(value)
    }
}

impl From<i64> for Setting {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
}

impl From<&'static str> for Setting {
    fn from(value: &'static str) -> Self {
        Self::Word(value)
    }
}

impl From<Quantity> for Setting {
    fn from(value: Quantity) -> Self {
        Self::Amount(value)
    }
}

fn find_mut<'v>(root: &'v mut Value, path: &Path) -> Option<&'v mut Value> {
    path.steps().iter().try_fold(root, |value, step| match step {
        Step::Key(key) => value.as_object_mut()?.get_mut(key.as_ref()),
        Step::Index(index) => value.as_array_mut()?.get_mut(*index),
    })
}
