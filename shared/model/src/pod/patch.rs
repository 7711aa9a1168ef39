//! The patch, written as the edits are made: every pointer comes from here, so escaping, missing parents and order are
//! settled in one place.
//!
//! An edit below something that an earlier operation has put in becomes a part of that operation, so a missing map is
//! added once, whole, and an existing one is never replaced (RFC 6902).

use json_patch::{
    AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation,
    jsonptr::{PointerBuf, Token},
};
use serde_json::{Map, Value};

use super::path::Step;

/// The operations so far.
#[derive(Debug, Default)]
pub(super) struct Operations {
    list: Vec<PatchOperation>,
    /// Places of maps and lists that an operation has put in, and which one.
    made: Vec<(Vec<Step>, usize)>,
}

impl Operations {
    /// The value at `steps` was set; `there` of the steps led to something before, all of them if the value itself was
    /// there.
    pub(super) fn set(&mut self, steps: &[Step], there: usize, value: &Value) {
        if let Some((parent, index)) = self.made_around(steps) {
            if let Some(PatchOperation::Add(AddOperation { value: whole, .. })) = self.list.get_mut(index)
                && let Some(slot) = grow(whole, &steps[parent..])
            {
                slot.clone_from(value);
            }
            return;
        }
        if there == steps.len() {
            self.list.push(PatchOperation::Replace(ReplaceOperation { path: pointer(steps), value: value.clone() }));
            return;
        }
        let (existing, missing) = steps.split_at(there + 1);
        let value = missing.iter().rev().fold(value.clone(), |value, step| match step {
            Step::Key(key) => Value::Object(Map::from_iter([(key.clone().into_owned(), value)])),
            Step::Index(_) => Value::Array(vec![value]),
        });
        self.add(existing, value);
    }

    /// An item was put into a list at `index`, which was there before.
    pub(super) fn insert(&mut self, list: &[Step], index: usize, value: &Value) {
        if let Some((parent, operation)) = self.made_around(list) {
            if let Some(PatchOperation::Add(AddOperation { value: whole, .. })) = self.list.get_mut(operation)
                && let Some(Value::Array(items)) = grow(whole, &list[parent..])
            {
                items.insert(index.min(items.len()), value.clone());
            }
            return;
        }
        self.forget(list);
        let mut steps = list.to_vec();
        steps.push(Step::Index(index));
        self.add(&steps, value.clone());
    }

    /// What was at `steps` is gone. Items of one list are to be taken out from its end to its beginning.
    pub(super) fn remove(&mut self, steps: &[Step]) {
        let Some((last, parents)) = steps.split_last() else { return };
        if let Some((parent, operation)) = self.made_around(parents) {
            if let Some(PatchOperation::Add(AddOperation { value: whole, .. })) = self.list.get_mut(operation)
                && let Some(around) = grow(whole, &parents[parent..])
            {
                match (last, around) {
                    (Step::Key(key), Value::Object(members)) => drop(members.remove(key.as_ref())),
                    (Step::Index(index), Value::Array(items)) if *index < items.len() => drop(items.remove(*index)),
                    _ => {}
                }
            }
            return;
        }
        self.forget(if matches!(last, Step::Index(_)) { parents } else { steps });
        self.list.push(PatchOperation::Remove(RemoveOperation { path: pointer(steps) }));
    }

    pub(super) fn into_patch(self) -> Patch {
        Patch(self.list)
    }

    fn add(&mut self, steps: &[Step], value: Value) {
        if value.is_object() || value.is_array() {
            self.made.push((steps.to_vec(), self.list.len()));
        }
        self.list.push(PatchOperation::Add(AddOperation { path: pointer(steps), value }));
    }

    /// The operation that put in what is around this place, and how many steps lead to it.
    fn made_around(&self, steps: &[Step]) -> Option<(usize, usize)> {
        let around = self.made.iter().find(|(made, _)| steps.starts_with(made));
        around.map(|(made, operation)| (made.len(), *operation))
    }

    /// Places below this one are no longer what they were called.
    fn forget(&mut self, steps: &[Step]) {
        self.made.retain(|(made, _)| !made.starts_with(steps));
    }
}

/// The place inside a value that an operation puts in, with the maps on the way.
fn grow<'v>(value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => {
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
            Some(value.as_object_mut()?.entry(key.as_ref()).or_insert(Value::Null))
        }
        Step::Index(index) => {
            if value.is_null() {
                *value = Value::Array(Vec::new());
            }
            let items = value.as_array_mut()?;
            if *index == items.len() {
                items.push(Value::Null);
            }
            items.get_mut(*index)
        }
    })
}

/// The JSON pointer (RFC 6901), each token escaped once.
fn pointer(steps: &[Step]) -> PointerBuf {
    PointerBuf::from_tokens(steps.iter().map(|step| match step {
        Step::Key(key) => Token::new(key.as_ref()),
        Step::Index(index) => Token::from(*index),
    }))
}
