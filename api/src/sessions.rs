//! All sessions that there are, each with a task that follows it.
//!
//! ```text
//!             order ─▶ session::start ─▶ the cluster ─▶ session::informer
//!               │                            ▲                 │ Told
//! POST ─▶ Sessions (who is there) ───────────┼── stop, sweep   ▼
//!               └─────────▶ keeper: Known ─▶ Story ─▶ hub ◀─ terminal
//! ```
//!
//! What is here is gone with the process, and nothing is lost by that: whatever a session is lies in its pod and its Secret,
//! and a process that begins finds it there. What it counts on from is the age of the pod, so its numbers never go back.
//!
//! * [`Sessions`]: who is there; who makes room for another; what was kept for long enough;
//! * [`Order`]: what a session is made from, once nothing is wrong with it; [`Workshop`]: with what;
//! * `known`: what is known of one; `keeper`: its task; `forgetting`: what is kept no more; [`args`]: the flags.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cofferdam_kubernetes::{Class, Failed};
use cofferdam_model::session::SessionId;
use k8s_openapi::jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::cluster::Home;
use crate::routes::Live;
use crate::session::hub::{self, first_id};
use crate::session::informer::{Seen, Told};
use crate::session::marks::Mark;
use crate::session::record::{Record, secret_name};
use crate::session::retention::{self, Room};
use crate::session::start::{self, Outcome};
use crate::session::stop;
use crate::token::NoRandomness;
use crate::wire;

pub mod args;
mod forgetting;
mod keeper;
mod known;
mod order;

use forgetting::forget;
use keeper::{Session, insist};
use known::Known;
pub use order::{Kind, Order, Parcel, Workshop};

/// All sessions. Clones share them.
#[derive(Clone)]
pub struct Sessions(Arc<Inner>);

/// How many there may be, and how much is kept of each.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many sessions, with those that ended and are kept.
    pub capacity: usize,
    /// How long one that ended is kept.
    pub kept: Duration,
    /// What is kept of each for those who come back.
    pub replay: hub::Limits,
}

struct Inner {
    home: Home,
    bounds: Bounds,
    workshop: Workshop,
    all: Mutex<BTreeMap<SessionId, Place>>,
    /// Whether what the informer told last is up to date.
    is_current: watch::Sender<bool>,
    /// Those that are being made.
    making: TaskTracker,
}

/// What is here of a session.
enum Place {
    Kept(Arc<Session>),
    /// It was forgotten, and something of it may still be in the cluster.
    Forgotten,
}

/// Why no session is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotBegun {
    /// There are as many as there may be, and all of them live.
    #[error("all places are taken by sessions that live; stop one, or try again when one has ended")]
    Full,
    /// There can be no id.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

impl Sessions {
    /// None yet: the informer tells of those that are there.
    #[must_use]
    pub fn new(home: Home, bounds: Bounds, workshop: Workshop) -> Self {
        let (all, is_current, making) = (Mutex::default(), watch::Sender::new(true), TaskTracker::new());
        Self(Arc::new(Inner { home, bounds, workshop, all, is_current, making }))
    }

    /// What sessions are made with.
    #[must_use]
    pub fn workshop(&self) -> &Workshop {
        &self.0.workshop
    }

    /// Where they are.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.0.home
    }

    /// Takes in what the informer tells. It spawns tasks, so there has to be a runtime.
    pub fn told(&self, told: Told) {
        let (id, seen) = match told {
            Told::Session(id, seen) => (id, seen),
            Told::Current(is_current) => {
                self.0.is_current.send_replace(is_current);
                return;
            }
            Told::All => return,
        };
        let is_gone = seen == Seen::default();
        let mut all = self.all();
        match all.get(&id) {
            Some(Place::Kept(session)) => session.see(seen),
            Some(Place::Forgotten) if is_gone => {
                all.remove(&id);
            }
            Some(Place::Forgotten) => {}
            None => {
                if let Some(session) = self.found(&id, seen) {
                    all.insert(id, Place::Kept(session));
                }
            }
        }
        if is_gone {
            self.trim(&mut all);
        }
    }

    /// The session of that id, for its streams.
    #[must_use]
    pub fn find(&self, id: &SessionId) -> Option<Live> {
        self.kept(id).map(|session| session.live())
    }

    /// Whether that was given to who made the session, to open its streams. Who knows no such session opens none.
    #[must_use]
    pub fn opens(&self, id: &SessionId, sent: &str) -> bool {
        self.kept(id).is_some_and(|session| session.is_opened_by(sent))
    }

    /// The session of that id, as clients are told of it.
    #[must_use]
    pub fn get(&self, id: &SessionId) -> Option<wire::Session> {
        self.kept(id).map(|session| session.shown())
    }

    /// Whether there is a session of that id, or a moment ago was one.
    #[must_use]
    pub fn knows(&self, id: &str) -> bool {
        SessionId::parse(id).is_ok_and(|id| self.all().contains_key(&id))
    }

    /// How many live, and how many have ended and are kept.
    #[must_use]
    pub fn count(&self) -> (usize, usize) {
        let all = self.all();
        let kept = all.values().filter_map(Place::session);
        let (ended, live): (Vec<_>, Vec<_>) = kept.partition(|session| session.ended().is_some());
        (live.len(), ended.len())
    }

    /// Makes a session, and gives its id as soon as its pod is there, and after a second at the latest: what becomes of it is
    /// told by its events (SES-04). The session that ended first goes where there is no room.
    ///
    /// # Errors
    /// When there can be none. Nothing was begun then.
    pub async fn create(&self, order: Order) -> Result<SessionId, NotBegun> {
        let id = new_id()?;
        let session = self.begin(&id, &order.record)?;
        let (making, its_id, its_session) = (self.0.making.token(), id.clone(), Arc::clone(&session));
        let its_sessions = self.clone();
        let made = async move {
            let outcome = its_sessions.make(its_id, order, &its_session).await;
            drop(making);
            outcome
        };
        start::begin(made, move |outcome| session.has_begun(outcome)).await;
        Ok(id)
    }

    /// Waits until none is being made: what was promised is there then, or is told as failed.
    pub async fn settled(&self) {
        self.0.making.close();
        self.0.making.wait().await;
    }

    /// Stops a session. One that nobody knows, or that has ended, is a success.
    ///
    /// # Errors
    /// When the API server fails or refuses; the session is told as stopped all the same once it ends.
    pub async fn stop(&self, id: &SessionId) -> Result<(), Failed> {
        let now = Timestamp::now();
        let home = &self.0.home;
        let session = match self.all().get(id) {
            Some(Place::Forgotten) => return Ok(()),
            Some(Place::Kept(session)) => Some(Arc::clone(session)),
            None => None,
        };
        match session {
            Some(session) if session.ended().is_some() => Ok(()),
            Some(session) => {
                session.is_to_stop(now);
                stop::stop(home, id, now).await
            }
            // Another replica may have begun it a moment ago. What has no Secret of ours is nothing of ours.
            None => match home.cluster.get(&Home::secrets(), Some(&home.namespace), &secret_name(id)).await {
                // One that has ended keeps its end.
                Ok(secret) if Record::read(&secret).is_some() && Mark::read(&secret).is_none() => {
                    stop::stop(home, id, now).await
                }
                Ok(_) => Ok(()),
                Err(failed) if failed.class == Class::NotFound => Ok(()),
                Err(failed) => Err(failed),
            },
        }
    }

    /// Takes the place of a new session, and begins to follow it.
    fn begin(&self, id: &SessionId, record: &Record) -> Result<Arc<Session>, NotBegun> {
        let mut all = self.all();
        let Room::After(forgotten) = retention::room(self.0.bounds.capacity, places(&all)) else {
            return Err(NotBegun::Full);
        };
        for id in forgotten {
            forget(&mut all, &id);
            let itself = self.clone();
            tokio::spawn(async move { itself.take_away(&id).await });
        }
        let session = Session::begin(self.keeping(id, record, 1), Known::default());
        all.insert(id.clone(), Place::Kept(Arc::clone(&session)));
        Ok(session)
    }

    /// A session that is there, where it can be read. One whose pod is gone while its Secret waits for the garbage collector
    /// is not.
    fn found(&self, id: &SessionId, seen: Seen) -> Option<Arc<Session>> {
        let record = Record::read(seen.secret.as_deref()?)?;
        let known = Known::of(seen);
        if known.is_going() {
            return None;
        }
        let age = Timestamp::now().duration_since(known.created_at().unwrap_or(record.created_at));
        let first = first_id(Duration::try_from(age).unwrap_or_default());
        Some(Session::begin(self.keeping(id, &record, first), known))
    }

    fn keeping(&self, id: &SessionId, record: &Record, first: u64) -> keeper::Keeping {
        keeper::Keeping {
            home: self.0.home.clone(),
            store: self.0.workshop.store.clone(),
            id: id.clone(),
            record: record.clone(),
            hub: Arc::new(hub::Hub::new(self.0.bounds.replay, first)),
            is_current: self.0.is_current.subscribe(),
        }
    }

    async fn make(&self, id: SessionId, order: Order, session: &Session) -> Outcome {
        let Inner { home, workshop, bounds, .. } = &*self.0;
        let objects = match order.objects(&id, workshop, &home.namespace, bounds.kept).await {
            Ok(objects) => objects,
            Err(sentence) => return Outcome::NotMade(sentence),
        };
        let outcome = start::make(home, &objects).await;
        // Who asked for its end before there was anything of it has found nothing to end (SES-09).
        match session.stops_at() {
            Some(at) if outcome == Outcome::Submitted => {
                insist("stopping a session", || stop::stop(home, &id, at)).await;
                Outcome::Stopped
            }
            _ => outcome,
        }
    }

    fn kept(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.all().get(id)?.session().cloned()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<SessionId, Place>> {
        // What is done while it is locked leaves it whole.
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn session(&self) -> Option<&Arc<Session>> {
        match self {
            Self::Kept(session) => Some(session),
            Self::Forgotten => None,
        }
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Sessions {
    /// By the policy that is built in, with bodies in memory.
    pub(crate) fn of_test(home: Home, capacity: usize) -> Self {
        use arc_swap::ArcSwap;
        use cofferdam_model::policy::Policy;

        use crate::bodies::{Archiver, BodyStore, Location};

        let workshop = Workshop {
            profile: "default".to_owned(),
            app_profile: "app".to_owned(),
            command: None,
            policy: Arc::new(ArcSwap::from_pointee(Policy::built_in())),
            archiver: Archiver::new(std::num::NonZero::new(1).unwrap()),
            store: Some(BodyStore::open(Location::Memory, 10_000).unwrap()),
            self_url: "http://api.test:8063/".to_owned(),
        };
        Self::new(home, Bounds { capacity, kept: retention::KEPT, replay: hub::Limits::default() }, workshop)
    }
}

/// The places that are taken.
fn places(all: &BTreeMap<SessionId, Place>) -> impl Iterator<Item = retention::Place<SessionId>> {
    all.iter().filter_map(|(id, place)| Some(retention::Place { id: id.clone(), ended: place.session()?.ended() }))
}

/// An id that nobody can guess: where callers are not asked who they are, it is all that keeps them apart (SES-05).
pub(crate) fn new_id() -> Result<SessionId, NoRandomness> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomness)?;
    Ok(SessionId::derive(&format!("{:032x}", u128::from_be_bytes(bytes))))
}

#[cfg(test)]
mod tests;
