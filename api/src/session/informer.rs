//! What the cluster has of our sessions: one list and watch of their pods, and one of their Secrets' metadata (defect D20).

use std::collections::BTreeSet;
use std::sync::Arc;

use cofferdam_kubernetes::json;
use cofferdam_kubernetes::watch::{Change, Collected, Lookout, Watches};
use cofferdam_model::keys;
use cofferdam_model::session::SessionId;
use serde_json::Value;

use crate::cluster::Home;

/// How the names of sessions' pods begin.
const POD: &str = "run-";

/// How the names of their Secrets begin.
const SECRET: &str = "s-";

/// What there is of a session now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Its pod, without `managedFields`.
    pub pod: Option<Arc<Value>>,
    /// The metadata of its Secret, below `metadata`.
    pub secret: Option<Arc<Value>>,
}

/// What is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Of this session there is something else now; both are gone where nothing is there any more. What changes fast is told
    /// once, as it last was.
    Session(SessionId, Seen),
    /// Of every session that was there it has been told.
    All,
    /// Whether what is told is up to date: false while pods or Secrets cannot be read, and until they were listed anew.
    Current(bool),
}

/// Watches until it is dropped, and tells of each session that has changed. Nothing is told before both lists are over: half
/// of a session would look like one that has lost the other half. Ends where a watch has panicked, and all has to begin anew.
pub async fn follow(home: Home, watches: Watches, mut tell: impl FnMut(Told)) {
    let selection = home.ours();
    let mut lookout = Lookout::new(home.cluster, watches, Picture::default());
    lookout.watch("pods", Home::pods(), selection.clone(), |picture: &mut Picture, change| picture.pods(change));
    lookout.watch("secrets", Home::secrets(), selection, |picture: &mut Picture, change| picture.secrets(change));
    let (mut is_first, mut is_current) = (true, true);
    while lookout.changed().await {
        let (told, unreadable) = {
            let mut picture = lookout.seen();
            (picture.drain(), picture.unreadable.len())
        };
        if std::mem::replace(&mut is_current, unreadable == 0) != is_current {
            tell(Told::Current(is_current));
        }
        let Some(told) = told else { continue };
        for (id, seen) in told {
            tell(Told::Session(id, seen));
        }
        if std::mem::take(&mut is_first) {
            tell(Told::All);
        }
    }
}

/// All that was seen, and what has changed since that was told.
#[derive(Debug, Default)]
struct Picture {
    pods: Collected<Arc<Value>>,
    secrets: Collected<Arc<Value>>,
    changed: BTreeSet<String>,
    /// What cannot be read now, by how its names begin.
    unreadable: BTreeSet<&'static str>,
}

impl Picture {
    /// Takes in what is told of pods; whether there may be something to tell.
    fn pods(&mut self, change: Change) -> bool {
        let is_other = self.reads(&change, POD);
        take(&mut self.pods, &mut self.changed, change, POD) || is_other
    }

    /// The same of Secrets.
    fn secrets(&mut self, change: Change) -> bool {
        let is_other = self.reads(&change, SECRET);
        take(&mut self.secrets, &mut self.changed, change, SECRET) || is_other
    }

    /// Takes in whether they can be read; whether that is another now.
    fn reads(&mut self, change: &Change, prefix: &'static str) -> bool {
        match change {
            Change::Unreadable { .. } => self.unreadable.insert(prefix),
            Change::Listed => self.unreadable.remove(prefix),
            _ => false,
        }
    }

    /// What has changed; none before all is known.
    fn drain(&mut self) -> Option<Vec<(SessionId, Seen)>> {
        let (pods, secrets) = (self.pods.all()?, self.secrets.all()?);
        let told = std::mem::take(&mut self.changed).into_iter().filter_map(|id| {
            let seen = Seen { pod: pods.get(&id).cloned(), secret: secrets.get(&id).cloned() };
            Some((SessionId::parse(&id).ok()?, seen))
        });
        Some(told.collect())
    }
}

fn take(
    collected: &mut Collected<Arc<Value>>,
    changed: &mut BTreeSet<String>,
    change: Change,
    prefix: &'static str,
) -> bool {
    let change = match change {
        // What is named or labelled as none of ours is not there.
        Change::Seen(object) if id_of(&object, prefix).is_none() => Change::Gone(object),
        change => change,
    };
    let id = |object: &Value| json::name(object).strip_prefix(prefix).unwrap_or_default().to_owned();
    let read = |object: &Value| (id(object), Arc::new(object.clone()));
    let differs = |id: &str, _: Option<&Arc<Value>>, _: Option<&Arc<Value>>| {
        changed.insert(id.to_owned());
    };
    collected.take_each(change, read, differs).is_some()
}

/// The id of the session that an object is named and labelled for.
fn id_of<'a>(object: &'a Value, prefix: &str) -> Option<&'a str> {
    let id = json::name(object).strip_prefix(prefix)?;
    (json::label(object, keys::SESSION) == Some(id) && SessionId::parse(id).is_ok()).then_some(id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(prefix: &str, id: &str, version: u64) -> Value {
        json!({"metadata": {"name": format!("{prefix}{id}"), "resourceVersion": version.to_string(),
            "labels": {keys::SESSION: id}}})
    }

    fn seen(prefix: &str, id: &str, version: u64) -> Change {
        Change::Seen(object(prefix, id, version))
    }

    fn listed(picture: &mut Picture, pods: Vec<Change>, secrets: Vec<Change>) {
        for change in [Change::Begun].into_iter().chain(pods).chain([Change::Listed]) {
            picture.pods(change);
        }
        for change in [Change::Begun].into_iter().chain(secrets).chain([Change::Listed]) {
            picture.secrets(change);
        }
    }

    /// Whose what has changed, and the versions of pod and Secret.
    fn told(picture: &mut Picture) -> Vec<String> {
        let version = |object: Option<Arc<Value>>| object.map_or(0, |object| json::version(&object));
        let told = picture.drain().unwrap().into_iter();
        told.map(|(id, seen)| format!("{id} {} {}", version(seen.pod), version(seen.secret))).collect()
    }

    #[test]
    fn nothing_is_told_before_pods_and_secrets_are_known() {
        let mut picture = Picture::default();
        for change in [Change::Begun, seen("run-", "a", 1), Change::Listed] {
            picture.pods(change);
        }
        assert_eq!(picture.drain(), None, "it would look like a pod without a Secret");
        picture.secrets(Change::Begun);
        picture.secrets(seen("s-", "a", 2));
        assert_eq!(picture.drain(), None);
        assert!(picture.secrets(Change::Listed));
        assert_eq!(told(&mut picture), ["a 1 2"]);
        assert!(told(&mut picture).is_empty(), "it was told");
    }

    #[test]
    fn what_cannot_be_read_is_old_until_it_was_listed_anew() {
        let mut picture = Picture::default();
        listed(&mut picture, vec![seen("run-", "a", 1)], vec![]);
        told(&mut picture);
        let unreadable = || Change::Unreadable { is_conclusive: true };
        assert!(picture.pods(unreadable()) && picture.secrets(unreadable()) && !picture.pods(unreadable()));
        assert!(!picture.pods(Change::Begun));
        assert_eq!(picture.unreadable.len(), 2);
        assert!(picture.pods(Change::Listed), "that is news even where nothing is another");
        picture.secrets(Change::Begun);
        assert!(picture.secrets(Change::Listed) && picture.unreadable.is_empty());
        assert_eq!(told(&mut picture), ["a 0 0"], "what was not there when it was listed");
    }

    #[test]
    fn b109_what_a_later_list_does_not_show_is_gone() {
        let mut picture = Picture::default();
        let both = |prefix: &str| vec![seen(prefix, "a", 1), seen(prefix, "b", 1)];
        listed(&mut picture, both("run-"), both("s-"));
        assert_eq!(told(&mut picture), ["a 1 1", "b 1 1"]);
        // The watch broke; meanwhile b went.
        listed(&mut picture, vec![seen("run-", "a", 1)], both("s-"));
        assert_eq!(told(&mut picture), ["b 0 1"]);
        listed(&mut picture, vec![seen("run-", "a", 1)], vec![seen("s-", "a", 1)]);
        assert_eq!(told(&mut picture), ["b 0 0"]);
    }

    #[test]
    fn what_changes_is_told_as_it_last_was() {
        let mut picture = Picture::default();
        listed(&mut picture, vec![], vec![]);
        assert!(picture.pods(seen("run-", "a", 1)) && picture.pods(seen("run-", "a", 2)));
        assert!(!picture.pods(seen("run-", "a", 2)), "it is the same");
        assert!(picture.secrets(seen("s-", "a", 3)));
        assert_eq!(told(&mut picture), ["a 2 3"]);
        assert!(picture.pods(Change::Gone(object("run-", "a", 2))));
        assert_eq!(told(&mut picture), ["a 0 3"]);
    }

    #[test]
    fn what_only_looks_like_one_of_ours_is_none() {
        let mut picture = Picture::default();
        let renamed = |name: &str, label: &str| {
            Change::Seen(json!({"metadata": {"name": name, "labels": {keys::SESSION: label}}}))
        };
        listed(
            &mut picture,
            vec![seen("run-", "a", 1), renamed("run-b", "a"), renamed("watch-a", "a"), renamed("run-", "")],
            vec![renamed("run-a", "a"), renamed("s-A", "A")],
        );
        assert_eq!(told(&mut picture), ["a 1 0"]);
        // Somebody took its label away.
        picture.pods(renamed("run-a", "b"));
        assert_eq!(told(&mut picture), ["a 0 0"]);
    }
}
