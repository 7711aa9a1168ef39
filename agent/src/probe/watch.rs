//! The probes of one session, for as long as somebody wants to know.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::probe::budget::{Budget, Lane};
use crate::probe::loops::{Asked, Port};
use crate::probe::{Kind, Known, Observation, Outcome, Target};

/// Is told what is known of a port now, each time that it is something else.
pub(crate) type Tell = Arc<dyn Fn(u16, Observation) + Send + Sync>;

/// Counts probes.
pub(crate) trait Record: Send + Sync {
    /// A probe was made, with this outcome.
    fn probed(&self, kind: Kind, outcome: Outcome);
    /// A probe got its turn after so long; one of what gave no answer last time waits for its own kind, and is not told.
    fn waited(&self, waited: Duration);
}

/// Makes the probes of all sessions within one budget. Clones share it.
#[derive(Clone)]
pub(crate) struct Prober {
    budget: Arc<Budget>,
    record: Arc<dyn Record>,
    /// Of one session one at a time that gave no answer last time, so that its ports do not wait before those of others.
    silent: Arc<Semaphore>,
}

/// What to probe of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Aim {
    /// The pod's address, with the port.
    pub pod: SocketAddr,
    /// Whether the pod's containers run.
    pub has_started: bool,
    /// The port's address, from when its route is applied.
    pub address: Option<Target>,
    /// What was known before an agent began to probe it, so that nothing flaps when an agent is replaced. Looked at only
    /// when the port is new to [`Watch::update`].
    pub known: Known,
}

/// The probes of one session. They end when it is dropped; a last word may still be told meanwhile.
pub(crate) struct Watch {
    prober: Prober,
    tell: Tell,
    ports: BTreeMap<u16, Watched>,
}

struct Watched {
    pod: SocketAddr,
    asked: watch::Sender<Asked>,
    port: Arc<Port>,
    _task: AbortOnDropHandle<()>,
}

impl Prober {
    /// `limit` is the budget, in questions a second; see [`Budget`].
    #[must_use]
    pub(crate) fn new(limit: u32, record: Arc<dyn Record>) -> Self {
        Self { budget: Arc::new(Budget::new(limit)), record, silent: one() }
    }

    /// The budget of all probes.
    #[must_use]
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// For a session of which nothing is probed yet.
    #[must_use]
    pub(crate) fn watch(&self, tell: Tell) -> Watch {
        Watch { prober: Self { silent: one(), ..self.clone() }, tell, ports: BTreeMap::new() }
    }

    /// Makes a probe when it has its turn; none for one that was given up, see [`Turn::make`].
    ///
    /// [`Turn::make`]: crate::probe::budget::Turn::make
    pub(super) async fn make<F: Future>(
        &self,
        kind: Kind,
        lane: Lane,
        questions: u32,
        probe: impl FnOnce() -> F,
    ) -> Option<F::Output> {
        let _own = match lane {
            // Nobody closes it.
            Lane::Silent => self.silent.acquire().await.ok(),
            Lane::New | Lane::Steady => None,
        };
        let turn = self.budget.turn(kind, lane, questions).await;
        if lane != Lane::Silent {
            self.record.waited(turn.waited);
        }
        turn.make(probe()).await
    }

    pub(super) fn probed(&self, kind: Kind, outcome: Outcome) {
        self.record.probed(kind, outcome);
    }
}

impl Watch {
    /// From now on probes these ports, and flips a verdict after so many failures. What stays the same keeps its state. A
    /// port that is not named any more, or whose pod has another address, is forgotten. An address that is asked for
    /// elsewhere keeps its verdict and is probed at once; one with another host or proof begins anew.
    ///
    /// Has to be called inside a tokio runtime.
    pub(crate) fn update(&mut self, failures: u32, aims: &BTreeMap<u16, Aim>) {
        self.ports.retain(|number, watched| aims.get(number).is_some_and(|aim| aim.pod == watched.pod));
        for (number, aim) in aims {
            let asked = |started: Option<Instant>| {
                let started = aim.has_started.then(|| started.unwrap_or_else(Instant::now));
                Asked { failures, started, address: aim.address.clone() }
            };
            match self.ports.get(number) {
                Some(watched) => {
                    let had_started = watched.asked.borrow().started;
                    let asked = asked(had_started);
                    if asked.started != had_started {
                        watched.port.started();
                    }
                    watched.asked.send_if_modified(|before| {
                        let changes = *before != asked;
                        *before = asked;
                        changes
                    });
                }
                None => drop(self.ports.insert(*number, self.start(*number, aim, asked(None)))),
            }
        }
    }

    /// Probes an address at once that is not reached yet, since something happened that may have changed that.
    pub(crate) fn hurry(&self, port: u16) {
        if let Some(watched) = self.ports.get(&port) {
            watched.port.hurry();
        }
    }

    /// What is known of each port.
    #[must_use]
    pub(crate) fn seen(&self) -> BTreeMap<u16, Observation> {
        self.ports.iter().map(|(number, watched)| (*number, watched.port.seen())).collect()
    }

    fn start(&self, number: u16, aim: &Aim, asked: Asked) -> Watched {
        let (sender, receiver) = watch::channel(asked);
        let tell = Arc::clone(&self.tell);
        let port = Arc::new(Port::new(number, aim.pod, self.prober.clone(), tell, aim.known.clone()));
        let task = tokio::spawn(Arc::clone(&port).run(receiver));
        Watched { pod: aim.pod, asked: sender, port, _task: AbortOnDropHandle::new(task) }
    }
}

fn one() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1))
}

#[cfg(test)]
mod tests;
