//! The work on one session, from its first sight to its end: publish, watch, tell.
//!
//! Each session has a task of its own, which sleeps until something about it changes. What it holds in memory can be lost
//! at any moment: all of it is read back from the cluster.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_runtime::stop::Stop;
use tokio::sync::{AcquireError, Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::cluster::Cluster;
use crate::events::Events;
use crate::ground::Ground;
use crate::layer::Layer;
use crate::metrics::{Metrics, Queue, Queued, Tally};
use crate::probe::Prober;
use crate::reason::Reason;
use crate::session::Seen;
use crate::world::{Snapshot, World};

mod deletions;
mod ending;
mod pace;
mod probing;
mod publishing;
mod secret;
mod stages;
mod telling;
#[cfg(test)]
mod testing;

pub(crate) use deletions::Deletions;
use ending::Now;
use telling::News;

/// Sessions that are published at the same time; each has a few requests on its way.
const PUBLISHED_AT_ONCE: usize = 32;
/// Sessions that are told of at the same time, with one request each. Few, so that in a rush the API server answers for what
/// leads to sessions first: an address that works may wait to be told, but not to work.
const TOLD_AT_ONCE: usize = 2;

/// What all sessions share.
#[derive(Clone)]
pub(crate) struct Crew {
    /// What is known.
    pub world: Arc<World>,
    /// The API server.
    pub cluster: Cluster,
    /// What is counted.
    pub metrics: Metrics,
    /// What people are told.
    pub events: Events,
    /// The node's name.
    pub node: String,
    /// Who probes.
    pub prober: Prober,
    /// How many pods that slipped through may be deleted.
    pub deletions: Deletions,
    publishing: Arc<Semaphore>,
    telling: Arc<Semaphore>,
    tasks: TaskTracker,
    stop: Stop,
}

impl Crew {
    /// Of these. Nothing new is begun once `stop` drains.
    #[must_use]
    pub(crate) fn new(
        world: Arc<World>,
        cluster: Cluster,
        metrics: Metrics,
        events: Events,
        node: String,
        prober: Prober,
        stop: Stop,
    ) -> Self {
        let [publishing, telling] = [PUBLISHED_AT_ONCE, TOLD_AT_ONCE].map(|turns| Arc::new(Semaphore::new(turns)));
        let (deletions, tasks) = (Deletions::default(), TaskTracker::new());
        Self { world, cluster, metrics, events, node, prober, deletions, publishing, telling, tasks, stop }
    }

    /// Waits, once the agent was asked to stop, until what had begun is done: a write that is on its way may have been taken,
    /// and its answer is worth having.
    pub(crate) async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn place(&self, queue: Queue) -> Place {
        let turns = match queue {
            Queue::Publish => &self.publishing,
            Queue::Tell => &self.telling,
        };
        Place { turn: Box::pin(Arc::clone(turns).acquire_owned()), _queued: self.metrics.queued(queue) }
    }

    /// Works on the pod of that uid until it is gone. Work that panics begins anew: one session must not end the others.
    pub(crate) fn begin(&self, uid: String, wake: Arc<Notify>) {
        let crew = self.clone();
        self.tasks.spawn(async move {
            loop {
                let work = Work::new(crew.clone(), uid.clone(), Arc::clone(&wake));
                if tokio::spawn(work.run()).await.is_ok() {
                    return;
                }
                tracing::error!(uid, "the work on a session panicked; it begins anew");
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs(5)) => {}
                    () = crew.stop.draining() => return,
                }
            }
        });
    }
}

/// The work on one session.
struct Work {
    crew: Crew,
    uid: String,
    wake: Arc<Notify>,
    tally: Tally,
    publisher: publishing::Publisher,
    probes: probing::Probes,
    teller: telling::Teller,
    stages: stages::Stages,
    ending: ending::Ending,
}

impl Work {
    fn new(crew: Crew, uid: String, wake: Arc<Notify>) -> Self {
        let tally = crew.metrics.tally();
        Self {
            probes: probing::Probes::new(Arc::clone(&wake)),
            crew,
            uid,
            wake,
            tally,
            publisher: publishing::Publisher::default(),
            teller: telling::Teller::default(),
            stages: stages::Stages::default(),
            ending: ending::Ending::default(),
        }
    }

    async fn run(mut self) {
        let (mut to_look, mut to_tell) = (Some(self.crew.place(Queue::Publish)), None);
        let (mut next, mut news) = (None, None);
        loop {
            tokio::select! {
                biased;
                () = self.crew.stop.draining() => return,
                _turn = granted(&mut to_tell) => {
                    to_tell = None;
                    // What was begun is finished, whatever wakes us: the answer says what the pod's status is now.
                    if let Some(news) = news.take() {
                        let again = Box::pin(self.teller.write(&self.crew, news)).await;
                        next = [next, again].into_iter().flatten().min();
                    }
                }
                _turn = granted(&mut to_look) => {
                    to_look = None;
                    let Some(looked) = self.look(&mut to_tell).await else { return };
                    (next, news) = looked;
                    if news.is_none() {
                        to_tell = None;
                    } else if to_tell.is_none() {
                        to_tell = Some(self.crew.place(Queue::Tell));
                    }
                }
                () = self.wake.notified(), if to_look.is_none() => to_look = Some(self.crew.place(Queue::Publish)),
                () = until(next), if to_look.is_none() => to_look = Some(self.crew.place(Queue::Publish)),
            }
        }
    }

    /// Does what is to be done now; gives the moment at which to look again, whatever happens until then, and what is to be
    /// told. Nothing once the pod is gone.
    async fn look(&mut self, to_tell: &mut Option<Place>) -> Option<(Option<Instant>, Option<Box<News>>)> {
        let snapshot = self.crew.world.snapshot(&self.uid)?;
        // A pod that left and came back has other work.
        if !Arc::ptr_eq(&snapshot.wake, &self.wake) {
            return None;
        }
        // On the heap, and only now: most sessions rest, and there are many.
        let mut looking = Box::pin(self.once(&snapshot));
        loop {
            tokio::select! {
                biased;
                looked = &mut looking => return Some(looked),
                // It is the next one's: that may take long, and what there was to tell may be untrue by now.
                turn = granted(to_tell) => {
                    drop(turn);
                    *to_tell = None;
                }
            }
        }
    }

    /// What [`Work::look`] does with what is known now.
    async fn once(&mut self, snapshot: &Snapshot) -> (Option<Instant>, Option<Box<News>>) {
        let ground = self.crew.world.ground.load_full();
        self.stages.see(snapshot, &self.crew.metrics);
        if !has_looked_around(&ground, snapshot) {
            return (None, None);
        }
        self.probes.inherit(snapshot, &ground);
        // Before its pod goes: what leads to it would stay until the garbage collector comes.
        let published = self.publisher.publish(&self.crew, snapshot, &ground, &mut self.stages).await;
        let is_deleted = self.ending.delete_if_due(&self.crew, &snapshot.seen, &ground.policy, Now::read()).await;
        let ends = self.ending.next(&snapshot.seen, &ground.policy, Now::read());
        if is_deleted {
            self.probes.stop();
            return (ends, None);
        }
        if snapshot.is_node_lost {
            // The elected agent speaks for it, and two that speak would contradict each other. Until it has, what is known
            // is no worse: a node may be lost for a moment only.
            if is_spoken_for(&snapshot.seen) {
                self.probes.stop();
            }
            return ([published, ends].into_iter().flatten().min(), None);
        }
        // With what was just written: the route is probed at once.
        let after = if self.publisher.has_written() { self.crew.world.snapshot(&self.uid) } else { None };
        let snapshot = after.as_ref().unwrap_or(snapshot);
        let aims = probing::aims(snapshot, &ground, &self.publisher);
        self.probes.set(&self.crew.prober, ground.policy.routing().failures, aims);
        let found = self.probes.seen();
        let (report, overdue) = self.teller.look(snapshot, &ground, &self.publisher, found, &mut self.tally);
        self.stages.told(&report, &self.crew.metrics);
        self.teller.newly_programmed().for_each(|port| self.probes.hurry(port));
        let (news, later) = self.teller.news(&snapshot.seen, report, Instant::now());
        ([published, overdue, later, ends].into_iter().flatten().min(), news)
    }
}

/// Whether an agent that has just begun knows what there is. Before, it would take routes away, give them other proofs,
/// and tell of a session that works that it does not.
fn has_looked_around(ground: &Ground, snapshot: &Snapshot) -> bool {
    let needs_routes = matches!(ground.layer, Ok(Layer::Gateway { .. }));
    ground.is_known && (snapshot.are_routes_known || !needs_routes)
}

/// Whether the elected agent has said that the session's node is lost.
fn is_spoken_for(seen: &Seen) -> bool {
    seen.session.told.conditions.iter().any(|condition| condition.reason == Reason::NodeLost.as_str())
}

/// A place in a queue, and what comes of it: a turn, until it is dropped.
struct Place {
    turn: Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>,
    _queued: Queued,
}

/// Waits for the turn of a place; for ever where there is none. A place gives one turn.
async fn granted(place: &mut Option<Place>) -> Option<OwnedSemaphorePermit> {
    match place {
        // Nobody closes the queues.
        Some(place) => place.turn.as_mut().await.ok(),
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
