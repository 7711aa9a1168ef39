//! What an agent knows of its node: its sessions, their objects, and who has to be woken when something changes.
//!
//! No lock is held while something is waited for.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use cofferdam_kubernetes::json;
use serde_json::Value;
use tokio::sync::{Notify, watch};

use crate::ground::Ground;
use crate::objects::{Kind, Live, id_of};
use crate::session::Seen;

mod kept;
mod start;
mod told;

use kept::Kept;
pub(crate) use start::Start;
pub(crate) use told::Moment;
use told::Told;

/// Shared by all that read and write it.
#[derive(Debug)]
pub(crate) struct World {
    state: Mutex<State>,
    are_pods_known: watch::Sender<bool>,
    /// Whether `HTTPRoutes` were listed once, or will not be.
    are_routes_known: watch::Sender<bool>,
    /// What routes stand on.
    pub ground: ArcSwap<Ground>,
}

/// A session's id in its namespace.
type Id = (String, String);

#[derive(Debug, Default)]
struct State {
    sessions: HashMap<String, Known>,
    by_id: HashMap<Id, BTreeSet<String>>,
    objects: HashMap<Id, BTreeMap<(Kind, String), Kept>>,
    /// What was told when, so that what a list did not show can be told, and an answer that is late.
    told: Told,
    /// Namespaces that have the `NetworkPolicy` of sessions.
    protected: HashSet<String>,
    /// Kinds whose objects cannot be read now.
    unreadable: HashSet<Kind>,
    /// The version of Gateway API that `HTTPRoutes` are watched at; none while they are not.
    route_version: Option<Arc<str>>,
    /// Whether the node is not Ready; until it was seen, it is taken for Ready.
    is_node_lost: bool,
    /// How often it came to be so.
    outages: u64,
}

#[derive(Debug)]
struct Known {
    seen: Arc<Seen>,
    start: Start,
    wake: Arc<Notify>,
    round: Moment,
}

/// All that is known of one session at a moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The pod.
    pub seen: Arc<Seen>,
    /// How its start began.
    pub start: Start,
    /// Our objects that carry its id, in its namespace and from its node.
    pub live: Vec<Live>,
    /// Whether the namespace has its `NetworkPolicy`.
    pub is_protected: bool,
    /// Kinds of routes whose status cannot be read now.
    pub unreadable: HashSet<Kind>,
    /// Whether `HTTPRoutes` were listed, or will not be: before, those that are there seem missing.
    pub are_routes_known: bool,
    /// The version of Gateway API that `HTTPRoutes` are watched at; none while they are not.
    pub route_version: Option<Arc<str>>,
    /// What wakes the work on it.
    pub wake: Arc<Notify>,
    /// Whether the node is lost, so that the elected agent speaks for its sessions.
    pub is_node_lost: bool,
    /// How often it was, this time included.
    pub outages: u64,
}

impl World {
    /// Nothing is known yet.
    #[must_use]
    pub(crate) fn new(ground: Ground) -> Self {
        Self {
            state: Mutex::default(),
            are_pods_known: watch::Sender::new(false),
            are_routes_known: watch::Sender::new(false),
            ground: ArcSwap::from_pointee(ground),
        }
    }

    /// All that is known of the pod of that uid; nothing once it is gone.
    #[must_use]
    pub(crate) fn snapshot(&self, uid: &str) -> Option<Snapshot> {
        let state = self.state();
        let known = state.sessions.get(uid)?;
        let (seen, start, wake) = (Arc::clone(&known.seen), known.start, Arc::clone(&known.wake));
        let session = &seen.session;
        let kept = session.id.as_ref().and_then(|id| state.objects.get(&key(&session.namespace, id.as_str())));
        // Read outside of the lock: it takes longer than copying.
        let kept: Vec<_> = kept.into_iter().flatten().map(|(name, kept)| (name.clone(), kept.clone())).collect();
        let is_protected = state.protected.contains(&session.namespace);
        let (unreadable, is_node_lost, outages) = (state.unreadable.clone(), state.is_node_lost, state.outages);
        let (are_routes_known, route_version) = (*self.are_routes_known.borrow(), state.route_version.clone());
        drop(state);
        let live = kept.into_iter().map(|((kind, name), kept)| kept.live(kind, name)).collect();
        Some(Snapshot {
            seen,
            start,
            live,
            is_protected,
            unreadable,
            are_routes_known,
            route_version,
            wake,
            is_node_lost,
            outages,
        })
    }

    /// Whether the pod of that uid is known, and live.
    #[must_use]
    pub(crate) fn is_live(&self, uid: &str) -> Option<bool> {
        self.state().sessions.get(uid).map(|known| known.seen.session.phase.is_live())
    }

    /// A pod is there, or has changed. What wakes its work, if the pod was not known.
    pub(crate) fn pod(&self, seen: Seen) -> Option<Arc<Notify>> {
        let mut state = self.state();
        let round = state.told.now();
        let uid = seen.session.uid.clone();
        let id = seen.session.id.as_ref().map(|id| key(&seen.session.namespace, id.as_str()));
        let gives_up = !seen.session.phase.is_live();
        if let Some(known) = state.sessions.get_mut(&uid) {
            known.round = round;
            if seen.resource_version < known.seen.resource_version || *known.seen == seen {
                return None;
            }
            known.start.goes_on(&seen);
            known.seen = Arc::new(seen);
            known.wake.notify_one();
            if let Some(id) = id.filter(|_| gives_up) {
                state.wake_others(&id, &uid);
            }
            return None;
        }
        let wake = Arc::new(Notify::new());
        if let Some(id) = id {
            state.by_id.entry(id).or_default().insert(uid.clone());
        }
        let start = Start::new(&seen);
        state.sessions.insert(uid, Known { seen: Arc::new(seen), start, wake: Arc::clone(&wake), round });
        Some(wake)
    }

    /// A pod is gone, or no session any more. Its work wakes and finds that out; who waits for its id does too.
    pub(crate) fn pod_gone(&self, uid: &str) {
        self.state().forget(uid);
    }

    /// A list of pods begins.
    pub(crate) fn pods_begin(&self) -> Moment {
        self.begin()
    }

    /// A list of pods, which began at `round`, is over: what it did not show is gone (case B109).
    pub(crate) fn pods_listed(&self, round: Moment) {
        let mut state = self.state();
        let missing: Vec<String> =
            state.sessions.iter().filter(|(_, known)| known.round < round).map(|(uid, _)| uid.clone()).collect();
        for uid in &missing {
            state.forget(uid);
        }
        drop(state);
        self.are_pods_known.send_replace(true);
    }

    /// Waits until all pods that were there are known: before, of their objects only an outline would be kept.
    pub(crate) async fn pods_known(&self) {
        // The other end is here, and so never gone.
        let _ = self.are_pods_known.subscribe().wait_for(|known| *known).await;
    }

    /// An object of ours is there, or has changed, as a watch tells.
    pub(crate) fn object(&self, kind: Kind, object: &Value) {
        let Some((id, name)) = identity(kind, object) else { return };
        let mut state = self.state();
        let round = state.told.now();
        state.take_in(kind, &id, name, object, round);
    }

    /// Now, for the answer to a write that begins.
    #[must_use]
    pub(crate) fn moment(&self) -> Moment {
        self.state().told.now()
    }

    /// The answer to a write of ours that began then, mostly before the watch tells of it. An answer may be late: the object may
    /// be gone again, and no watch would ever tell so once more.
    pub(crate) fn answer(&self, kind: Kind, object: &Value, begun: Moment) {
        let Some((id, name)) = identity(kind, object) else { return };
        let uid = json::uid(object);
        let mut state = self.state();
        let its = state.objects.get(&id).and_then(|objects| objects.get(&(kind, name.clone())));
        let is_known = its.is_some_and(|kept| kept.uid == uid);
        if is_known || !state.told.may_be_gone(kind, uid, begun) {
            // No list has shown it.
            state.take_in(kind, &id, name, object, begun);
        }
    }

    /// An object of ours is gone.
    pub(crate) fn object_gone(&self, kind: Kind, object: &Value) {
        let Some((id, name)) = identity(kind, object) else { return };
        let uid = json::uid(object);
        let mut state = self.state();
        state.told.gone(uid);
        if let Some(objects) = state.objects.get_mut(&id)
            // One that we have made anew meanwhile is another.
            && objects.get(&(kind, name.clone())).is_some_and(|kept| kept.uid == uid)
        {
            objects.remove(&(kind, name));
            if objects.is_empty() {
                state.objects.remove(&id);
            }
        }
        state.wake_all_of(&id);
    }

    /// A list of objects of a kind begins.
    pub(crate) fn objects_begin(&self) -> Moment {
        self.begin()
    }

    /// Lists of several kinds go on side by side, so each remembers its own round.
    fn begin(&self) -> Moment {
        self.state().told.next()
    }

    /// A list of objects of a kind, which began at `round`, is over: what it did not show is gone (case B109).
    pub(crate) fn objects_listed(&self, kind: Kind, round: Moment) {
        let mut state = self.state();
        let mut touched = Vec::new();
        for (id, objects) in &mut state.objects {
            let before = objects.len();
            objects.retain(|(its, _), kept| *its != kind || kept.round >= round);
            if objects.len() < before {
                touched.push(id.clone());
            }
        }
        state.objects.retain(|_, objects| !objects.is_empty());
        state.told.listed(kind);
        for id in &touched {
            state.wake_all_of(id);
        }
        drop(state);
        self.asked(kind);
    }

    /// Tells when `HTTPRoutes` were listed once, or will not be.
    #[must_use]
    pub(crate) fn routes_known(&self) -> watch::Receiver<bool> {
        self.are_routes_known.subscribe()
    }

    /// Objects of a kind were listed, or will not be.
    fn asked(&self, kind: Kind) {
        let is_first = |known: &mut bool| !std::mem::replace(known, true);
        if kind == Kind::HttpRoute && self.are_routes_known.send_if_modified(is_first) {
            self.wake_everyone();
        }
    }

    /// `HTTPRoutes` are watched at this version of Gateway API.
    pub(crate) fn routes_watched(&self, version: &str) {
        self.state().route_version = Some(version.into());
    }

    /// Whether objects of a kind can be read now.
    pub(crate) fn readable(&self, kind: Kind, is_readable: bool) {
        let mut state = self.state();
        let changed = if is_readable { state.unreadable.remove(&kind) } else { state.unreadable.insert(kind) };
        if changed {
            state.wake_everyone();
        }
    }

    /// Objects of a kind are not waited for: there is no such kind, or no right to read it.
    pub(crate) fn refused(&self, kind: Kind) {
        self.asked(kind);
    }

    /// Whether a namespace has the `NetworkPolicy` of sessions.
    pub(crate) fn protected(&self, namespace: &str, is_protected: bool) {
        let mut state = self.state();
        let changed =
            if is_protected { state.protected.insert(namespace.to_owned()) } else { state.protected.remove(namespace) };
        if changed {
            state.wake_namespace(namespace);
        }
    }

    /// Whether the node is lost.
    pub(crate) fn node_lost(&self, is_lost: bool) {
        let mut state = self.state();
        if std::mem::replace(&mut state.is_node_lost, is_lost) != is_lost {
            state.outages += u64::from(is_lost);
            state.wake_everyone();
        }
    }

    /// Everything has to be looked at again.
    pub(crate) fn wake_everyone(&self) {
        self.state().wake_everyone();
    }

    /// What is there is whole after any panic.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_in(&mut self, kind: Kind, id: &Id, name: String, object: &Value, round: Moment) {
        // Whoever likes can name one for a session that is nowhere, or carry its label under any name.
        let may_be_wanted = id_of(kind, &name).is_some() && self.by_id.contains_key(id);
        let (mut round, slot) = (round, (kind, name));
        let objects = self.objects.entry(id.clone()).or_default();
        if let Some(kept) = objects.get_mut(&slot) {
            round = round.max(kept.round);
            kept.round = round;
            if json::version(object) <= kept.version {
                return;
            }
        }
        objects.insert(slot, Kept::new(object, round, may_be_wanted));
        self.wake_all_of(id);
    }

    fn forget(&mut self, uid: &str) {
        let Some(known) = self.sessions.remove(uid) else { return };
        known.wake.notify_one();
        let session = &known.seen.session;
        let Some(id) = session.id.as_ref().map(|id| key(&session.namespace, id.as_str())) else { return };
        if let Some(pods) = self.by_id.get_mut(&id) {
            pods.remove(uid);
            if pods.is_empty() {
                self.by_id.remove(&id);
            }
        }
        self.wake_all_of(&id);
    }

    fn wake(&self, uid: &str) {
        if let Some(known) = self.sessions.get(uid) {
            known.wake.notify_one();
        }
    }

    fn wake_all_of(&self, id: &Id) {
        self.by_id.get(id).into_iter().flatten().for_each(|uid| self.wake(uid));
    }

    fn wake_others(&self, id: &Id, but: &str) {
        self.by_id.get(id).into_iter().flatten().filter(|uid| *uid != but).for_each(|uid| self.wake(uid));
    }

    fn wake_namespace(&self, namespace: &str) {
        let of = |known: &&Known| known.seen.session.namespace == namespace;
        self.sessions.values().filter(of).for_each(|known| known.wake.notify_one());
    }

    fn wake_everyone(&self) {
        self.sessions.values().for_each(|known| known.wake.notify_one());
    }
}

fn key(namespace: &str, id: &str) -> Id {
    (namespace.to_owned(), id.to_owned())
}

/// The session that an object of ours belongs to, and its name. The name tells, which nobody can change; the label only
/// where a name is none of ours.
fn identity(kind: Kind, object: &Value) -> Option<(Id, String)> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str()?;
    let id = id_of(kind, name).or(json::label(object, cofferdam_model::keys::SESSION))?;
    Some((key(metadata["namespace"].as_str()?, id), name.to_owned()))
}

#[cfg(test)]
mod tests;
