//! Edits of JSON by pointers, for pods that are to be loosened in one place.

use serde_json::{Value, json};

/// Sets what the pointer names, making the objects on its way; null takes it out. A list grows by an index one past its
/// end.
///
/// # Panics
/// When the pointer leads through something else.
pub(crate) fn set(value: &mut Value, pointer: &str, new: Value) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    let last = last.replace("~1", "/").replace("~0", "~");
    let mut at = value;
    for step in parent.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        at = match at {
            Value::Array(items) => &mut items[step.parse::<usize>().unwrap()],
            object => object.as_object_mut().unwrap().entry(step).or_insert_with(|| json!({})),
        };
    }
    match (at, new) {
        (Value::Array(items), Value::Null) => drop(items.remove(last.parse().unwrap())),
        (Value::Array(items), new) => match items.get_mut(last.parse::<usize>().unwrap()) {
            Some(item) => *item = new,
            None => items.push(new),
        },
        (object, Value::Null) => drop(object.as_object_mut().unwrap().remove(&last)),
        (object, new) => drop(object.as_object_mut().unwrap().insert(last, new)),
    }
}
