//! What is kept of a watch, by namespace and name.

use std::collections::BTreeMap;

use kube::Resource;
use kube::runtime::watcher::Event;

/// Namespace (empty for what has none) and name.
pub(super) type Key = (String, String);

/// What a watch has shown so far. What was deleted while it was interrupted goes with the next complete list.
#[derive(Debug)]
pub(super) struct Kept<T> {
    now: BTreeMap<Key, T>,
    /// A list under way, that replaces all there is once it is complete.
    next: Option<BTreeMap<Key, T>>,
    is_complete: bool,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self { now: BTreeMap::new(), next: None, is_complete: false }
    }
}

impl<T> Kept<T> {
    /// Takes in what the watch shows; `read` says what is kept of an object.
    pub(super) fn take<K: Resource>(&mut self, event: Event<K>, read: impl Fn(&K) -> T) {
        match event {
            Event::Init => self.next = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                self.next.get_or_insert_default().insert(key(&object), read(&object));
            }
            Event::InitDone => {
                self.now = self.next.take().unwrap_or_default();
                self.is_complete = true;
            }
            Event::Apply(object) => {
                self.now.insert(key(&object), read(&object));
            }
            Event::Delete(object) => {
                self.now.remove(&key(&object));
            }
        }
    }

    /// All there is; none before the first list is complete.
    pub(super) fn all(&self) -> Option<&BTreeMap<Key, T>> {
        self.is_complete.then_some(&self.now)
    }
}

fn key<K: Resource>(object: &K) -> Key {
    let metadata = object.meta();
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use kube::ResourceExt;

    use super::*;

    fn node(name: &str) -> Node {
        let mut node = Node::default();
        node.metadata.name = Some(name.to_owned());
        node
    }

    fn names(kept: &Kept<String>) -> Option<Vec<&str>> {
        kept.all().map(|all| all.values().map(String::as_str).collect())
    }

    #[test]
    fn b109_what_is_not_listed_again_is_gone_and_what_is_half_listed_is_not_believed() {
        let mut kept = Kept::default();
        let mut take = |event, expected: Option<&[&str]>| {
            kept.take(event, Node::name_any);
            assert_eq!(names(&kept).as_deref(), expected);
        };
        take(Event::Init, None);
        take(Event::InitApply(node("a")), None);
        take(Event::InitApply(node("b")), None);
        take(Event::InitDone, Some(&["a", "b"]));
        take(Event::Apply(node("c")), Some(&["a", "b", "c"]));
        take(Event::Delete(node("c")), Some(&["a", "b"]));
        take(Event::Init, Some(&["a", "b"]));
        take(Event::InitApply(node("a")), Some(&["a", "b"]));
        take(Event::InitDone, Some(&["a"]));
    }
}
