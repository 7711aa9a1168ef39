//! The work on one session, from its first sight to its end: publish, watch, tell.
//!
//! Each session has a task of its own, which sleeps until something about it changes. Then it looks, which asks nobody and
//! says what is to be done, and waits for its turn to do it; when that comes it looks once more. What it holds in memory can
//! be lost at any moment: all of it is read back from the cluster.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_kubernetes::{Cluster, until};
use cofferdam_runtime::stop::Stop;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::events::Events;
use crate::ground::Ground;
use crate::metrics::{Metrics, Queue, Tally};
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
mod turns;

pub(crate) use deletions::Deletions;
use ending::Now;
use turns::{Place, Turn, Turns};

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
    turns: Turns,
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
        let (deletions, turns, tasks) = (Deletions::default(), Turns::new(metrics.clone()), TaskTracker::new());
        Self { world, cluster, metrics, events, node, prober, deletions, turns, tasks, stop }
    }

    /// Waits, once the agent was asked to stop, until what had begun is done: a write that is on its way may have been taken,
    /// and its answer is worth having.
    pub(crate) async fn finished(&self) {
        self.tasks.close();
        self.tasks.wait().await;
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

/// What came of a look.
struct Outlook {
    seen: Arc<Seen>,
    /// What is to be done now, if anything is.
    todo: Option<Todo>,
    /// When to look again, whatever happens until then.
    next: Option<Instant>,
}

/// What is to be done. What leads to the session first, since it goes before its pod does, and is told of afterwards.
enum Todo {
    Publish(publishing::Task),
    Delete(ending::Because),
    Tell(telling::News),
}

impl Todo {
    fn queue(&self) -> Queue {
        match self {
            Self::Publish(_) | Self::Delete(_) => Queue::Publish,
            Self::Tell(_) => Queue::Tell,
        }
    }
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
        let mut place: Option<Place> = None;
        loop {
            let Some(outlook) = self.look() else { return };
            // What there is to do is seen again when its turn comes: it is large, and many may wait.
            let (queue, next) = (outlook.todo.as_ref().map(Todo::queue), outlook.next);
            drop(outlook);
            if place.as_ref().map(|place| place.queue) != queue {
                place = queue.map(|queue| self.crew.turns.place(queue));
            }
            tokio::select! {
                biased;
                () = self.crew.stop.draining() => return,
                // First, so that no turn is left idle; what has changed by then is seen before anything is done.
                turn = granted(&mut place) => {
                    place = None;
                    Box::pin(self.act(turn, queue)).await;
                }
                () = self.wake.notified() => {}
                () = until(next) => {}
            }
        }
    }

    /// What is to be done now, by what is known now. Nothing once the pod is gone.
    fn look(&mut self) -> Option<Outlook> {
        let snapshot = self.crew.world.snapshot(&self.uid)?;
        // A pod that left and came back has other work.
        if !Arc::ptr_eq(&snapshot.wake, &self.wake) {
            return None;
        }
        let ground = self.crew.world.ground.load_full();
        let (todo, next) = self.consider(&snapshot, &ground);
        Some(Outlook { seen: snapshot.seen, todo, next })
    }

    fn consider(&mut self, snapshot: &Snapshot, ground: &Ground) -> (Option<Todo>, Option<Instant>) {
        self.stages.see(snapshot, &self.crew.metrics);
        if !ground.is_known {
            return (None, None);
        }
        let (ended, ends) = self.ending.look(&self.crew, &snapshot.seen, &ground.policy, Now::read());
        let ended = ended.map(Todo::Delete);
        // An end does not hang on what is published.
        if !ground.is_settled(snapshot.are_routes_known) {
            return (ended, ends);
        }
        self.probes.inherit(snapshot, ground);
        let (task, published) = self.publisher.look(&self.crew, snapshot, ground, &mut self.stages);
        let todo = task.map(Todo::Publish).or(ended);
        // Where the elected agent speaks for it, two that speak would contradict each other.
        if self.ending.is_deleted() || (snapshot.is_node_lost && is_spoken_for(&snapshot.seen)) {
            self.probes.stop();
            return (todo, earliest([published, ends]));
        }
        let aims = probing::aims(snapshot, ground, &self.publisher);
        self.probes.set(&self.crew.prober, ground.policy.routing().failures, aims);
        let found = self.probes.seen();
        let (report, overdue) = self.teller.look(snapshot, ground, &self.publisher, found, &mut self.tally);
        self.stages.told(&report, &self.crew.metrics);
        self.teller.newly_programmed().for_each(|port| self.probes.hurry(port));
        let (news, later) = self.teller.news(&snapshot.seen, report, Instant::now());
        (todo.or(news.map(Todo::Tell)), earliest([published, ends, overdue, later]))
    }

    /// Does what there is to do, if it is still of this queue.
    async fn act(&mut self, turn: Turn, queue: Option<Queue>) {
        let Some(Outlook { seen, todo: Some(todo), .. }) = self.look() else { return };
        if Some(todo.queue()) != queue {
            return;
        }
        let Self { crew, publisher, teller, ending, .. } = self;
        match todo {
            Todo::Publish(task) => turn.take(publisher.carry_out(crew, &seen.session, task)).await,
            Todo::Delete(because) => turn.take(ending.delete(crew, &seen, because)).await,
            Todo::Tell(news) => turn.take(teller.write(crew, &seen, news)).await,
        }
    }
}

/// Whether the elected agent has said that the session's node is lost.
fn is_spoken_for(seen: &Seen) -> bool {
    seen.session.told.conditions.iter().any(|condition| condition.reason == Reason::NodeLost.as_str())
}

fn earliest<const MANY: usize>(moments: [Option<Instant>; MANY]) -> Option<Instant> {
    moments.into_iter().flatten().min()
}

/// Waits for the turn of a place; for ever where there is none.
async fn granted(place: &mut Option<Place>) -> Turn {
    match place {
        Some(place) => place.turn().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
