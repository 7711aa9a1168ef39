//! Typed reads. A missing member and `null` read as nothing; a wrong type is a refusal that names the field.

use serde_json::{Map, Value};

use super::{Container, Draft, List, Path, path::Step};
use crate::quantity::Quantity;

/// A step of a path that leads through something that is no object or no list.
struct Blocked {
    /// Steps that could be taken.
    steps: usize,
    wanted: &'static str,
}

/// Items of a list that are looked at.
const MOST_ITEMS: usize = 4096;

const OBJECT: &str = "must be an object";
const LIST: &str = "must be a list";

impl Draft {
    /// A switch.
    pub(crate) fn switch(&mut self, path: &Path) -> Option<bool> {
        self.read(path, "must be true or false", Value::as_bool)
    }

    /// A whole number that Kubernetes can hold.
    pub(crate) fn number(&mut self, path: &Path) -> Option<i64> {
        self.read(path, "must be a whole number", Value::as_i64)
    }

    /// A text.
    pub(crate) fn text(&mut self, path: &Path) -> Option<String> {
        self.read(path, "must be a string", |value| value.as_str().map(str::to_owned))
    }

    /// Whether this text is there.
    pub(crate) fn is(&mut self, path: &Path, text: &str) -> bool {
        self.read(path, "must be a string", |value| value.as_str().map(|is| is == text)).unwrap_or(false)
    }

    /// Whether the list has an item of that name.
    pub(crate) fn has_named(&mut self, list: &Path, name: &str) -> bool {
        self.items(list).iter().any(|item| self.is(&item.at(&["name"]), name))
    }

    /// Whether this is an init container that runs beside the pod's containers.
    pub(crate) fn is_native_sidecar(&mut self, container: &Container) -> bool {
        container.list == List::InitContainers && self.is(&container.path.at(&["restartPolicy"]), "Always")
    }

    /// A quantity that is none too little: less than nothing is refused like any other garbage.
    pub(crate) fn amount(&mut self, path: &Path) -> Option<Quantity> {
        match self.read(path, "", |value| Some(Quantity::from_json(value)))? {
            Ok(amount) if amount.is_negative() => self.refuse(path, "must not be negative"),
            Ok(amount) => return Some(amount),
            Err(error) => self.refuse(path, error.to_string()),
        }
        None
    }

    /// The places of a list's items; none where there is no list. A list longer than any pod needs is refused, lest
    /// a small request make a huge answer.
    pub(crate) fn items(&mut self, path: &Path) -> Vec<Path> {
        let length = self.read(path, LIST, |value| value.as_array().map(Vec::len)).unwrap_or(0);
        if length > MOST_ITEMS {
            self.refuse(path, format!("has more than {MOST_ITEMS} items"));
            return Vec::new();
        }
        (0..length).map(|index| path.index(index)).collect()
    }

    /// The names of an object's members that are not `null`; none where there is no object.
    pub(crate) fn members(&mut self, path: &Path) -> Vec<String> {
        let names = |object: &Map<String, Value>| {
            object.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name.clone()).collect()
        };
        self.read(path, OBJECT, |value| value.as_object().map(names)).unwrap_or_default()
    }

    /// The pod's annotations whose keys begin with one of these, and what they hold.
    pub(crate) fn annotations(&mut self, beginnings: &[&str]) -> Vec<(Path, String)> {
        let all = Path::of(&["metadata", "annotations"]);
        let mut keys = self.members(&all);
        keys.retain(|key| beginnings.iter().any(|beginning| key.starts_with(beginning)));
        let read = |key: String| {
            let annotation = all.key(key);
            let text = self.text(&annotation).unwrap_or_default();
            (annotation, text)
        };
        keys.into_iter().map(read).collect()
    }

    /// Whether there is an object; anything else but nothing is refused.
    pub(crate) fn is_object(&mut self, path: &Path) -> bool {
        self.read(path, OBJECT, |value| value.as_object().map(|_| ())).is_some()
    }

    /// A copy of whatever is there.
    pub(crate) fn value(&mut self, path: &Path) -> Option<Value> {
        self.read(path, "", |value| Some(value.clone()))
    }

    /// Whether anything but `null` is there.
    pub(crate) fn is_set(&mut self, path: &Path) -> bool {
        self.read(path, "", |_| Some(())).is_some()
    }

    /// Reads by `take`; `None` from it means that the type is wrong.
    fn read<T>(&mut self, path: &Path, wanted: &'static str, take: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        match find(&self.root, path) {
            Ok(None) => None,
            Ok(Some(value)) => {
                let taken = take(value);
                if taken.is_none() {
                    self.refuse(path, wanted);
                }
                taken
            }
            Err(Blocked { steps, wanted }) => {
                self.refuse(&path.prefix(steps), wanted);
                None
            }
        }
    }
}

fn find<'v>(root: &'v Value, path: &Path) -> Result<Option<&'v Value>, Blocked> {
    let mut value = root;
    for (steps, step) in path.steps().iter().enumerate() {
        let next = match (step, value) {
            (_, Value::Null) => None,
            (Step::Key(key), Value::Object(members)) => members.get(key.as_ref()),
            (Step::Index(index), Value::Array(items)) => items.get(*index),
            (Step::Key(_), _) => return Err(Blocked { steps, wanted: OBJECT }),
            (Step::Index(_), _) => return Err(Blocked { steps, wanted: LIST }),
        };
        let Some(next) = next else { return Ok(None) };
        value = next;
    }
    Ok((!value.is_null()).then_some(value))
}
