//! The probes of one port: two loops that never end by themselves.
//!
//! ```text
//! port loop:     wait ─▶ turn ─▶ dial ─▶ Flips ─▶ tell what changed
//!                                          └─ the port is open now: probe its address at once
//! address loop:  wait ─▶ turn ─▶ HEAD / ─▶ judge ─▶ Flips ─▶ tell what changed
//! ```
//!
//! Both are one task, so that what is told of a port is in order.

use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_model::endpoints::Identity;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

use crate::probe::address::Probed;
use crate::probe::budget::Lane;
use crate::probe::flips::Flips;
use crate::probe::pace::Pace;
use crate::probe::port::{self, Dial, dial};
use crate::probe::watch::{Prober, Tell};
use crate::probe::{Closed, Failure, Kind, Known, Observation, Outcome, Target, address, head};

/// What may change while a port is probed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) failures: u32,
    /// Since when the pod's containers run: that nobody listens is a matter of course before.
    pub(super) started: Option<Instant>,
    pub(super) address: Option<Target>,
}

impl Asked {
    /// Since when it is a failure that nobody listens; `now` while it is none.
    fn since(&self, now: Instant) -> Instant {
        self.started.unwrap_or(now)
    }
}

/// A port that is probed.
pub(super) struct Port {
    number: u16,
    pod: SocketAddr,
    prober: Prober,
    tell: Tell,
    seen: Mutex<Observation>,
    /// Whether the first address was waited for before.
    was_unreachable: bool,
    /// The port loop need not wait any longer.
    is_due: Notify,
    /// The address loop need not.
    is_address_due: Notify,
}

impl Port {
    pub(super) fn new(number: u16, pod: SocketAddr, prober: Prober, tell: Tell, known: Known) -> Self {
        let (is_due, is_address_due) = (Notify::new(), Notify::new());
        let Known { seen, was_unreachable } = known;
        Self { number, pod, prober, tell, seen: Mutex::new(seen), was_unreachable, is_due, is_address_due }
    }

    /// Probes, until it is not polled any more.
    pub(super) async fn run(self: Arc<Self>, asked: watch::Receiver<Asked>) {
        tokio::join!(self.probe_port(asked.clone()), self.probe_address(asked));
    }

    /// The address is probed at once, unless it is reached.
    pub(super) fn hurry(&self) {
        self.is_address_due.notify_one();
    }

    /// So are port and address: the program begins.
    pub(super) fn started(&self) {
        self.is_due.notify_one();
        self.hurry();
    }

    pub(super) fn seen(&self) -> Observation {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what is known, and tells if it is something else then.
    fn saw(&self, change: impl FnOnce(&mut Observation)) {
        let now = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let before = seen.clone();
            change(&mut seen);
            if *seen == before {
                return;
            }
            seen.clone()
        };
        (self.tell)(self.number, now);
    }

    /// Waits until the next probe is due, or somebody is in a hurry. Gives the pace from then on.
    async fn wait(&self, pace: Pace, is_due: &Notify) -> Pace {
        tokio::select! {
            () = sleep(pace.wait(self.prober.budget().interval(), fastrand::f64())) => pace,
            () = is_due.notified() => pace.hurried(),
        }
    }

    async fn probe_port(&self, asked: watch::Receiver<Asked>) {
        let _enlisted = self.prober.budget().enlist(1);
        let known = self.seen().listening;
        let (mut pace, is_known) = (Pace::beginning(known.as_ref()), known.is_some());
        let mut flips = Flips::new(known).waited_for(is_known);
        let mut is_silent = false;
        loop {
            pace = self.wait(pace, &self.is_due).await;
            let probe = || dial(self.pod, port::WITHIN);
            let dialled = self.prober.make(Kind::Port, lane(pace, is_silent), 1, probe).await.unwrap_or(Dial::NotMade);
            self.prober.probed(Kind::Port, Outcome::from(dialled));
            is_silent = matches!(dialled, Dial::NotMade | Dial::Closed(Closed::TimedOut));
            let result = match dialled {
                Dial::Open => Ok(()),
                Dial::Closed(closed) => Err(closed),
                Dial::NotMade => {
                    pace = pace.after(false, false);
                    continue;
                }
            };
            let now = Instant::now();
            let (failures, since) = {
                let asked = asked.borrow();
                (asked.failures, asked.since(now))
            };
            let flipped = flips.saw(now, failures, Some(since), result);
            pace = pace.after(result.is_ok(), flipped);
            self.saw(|seen| (seen.listening, seen.so_far) = (flips.verdict().copied(), flips.so_far().copied()));
            if flipped && result.is_ok() {
                self.hurry();
            }
        }
    }

    /// Ends when nobody can ask for an address any more.
    async fn probe_address(&self, mut asked: watch::Receiver<Asked>) {
        let mut looked_at = Address::new(self.seen().address, self.was_unreachable);
        loop {
            let newest = asked.borrow_and_update().clone();
            if looked_at.aim(newest.address.clone()) {
                self.saw(|seen| seen.address = None);
            }
            let next = tokio::select! {
                biased;
                changed = asked.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    continue;
                }
                next = self.ask_address(&mut looked_at) => next,
            };
            let Some(verdict) = next else {
                looked_at.pace = looked_at.pace.after(false, false);
                continue;
            };
            if looked_at.saw(Instant::now(), &newest, verdict) {
                self.saw(|seen| seen.address = looked_at.flips.verdict().cloned());
            }
        }
    }

    /// Waits until the next probe is due, and makes it. For ever where there is no address.
    async fn ask_address(&self, looked_at: &mut Address) -> Option<Result<Identity, Failure>> {
        let Some(target) = &looked_at.target else { return std::future::pending().await };
        let questions = if target.proof.is_some() { 1 } else { 2 };
        let _enlisted = self.prober.budget().enlist(questions);
        looked_at.pace = self.wait(looked_at.pace, &self.is_address_due).await;
        if target.via.is_none() {
            return Some(Err(Failure::NoProbeAddress));
        }
        let lane = lane(looked_at.pace, looked_at.is_silent);
        // On the heap, and not before its turn, so that the many that wait take no place for a connection's state.
        let probe = || Box::pin(address::probe(target, self.pod, head::WITHIN));
        let probed = self.prober.make(Kind::Address, lane, questions, probe).await;
        let probed = probed.unwrap_or(Probed { verdict: None, outcome: Outcome::Other });
        self.prober.probed(Kind::Address, probed.outcome);
        looked_at.is_silent = probed.verdict.is_none() || probed.outcome == Outcome::TimedOut;
        probed.verdict
    }
}

fn lane(pace: Pace, is_silent: bool) -> Lane {
    match pace {
        _ if is_silent => Lane::Silent,
        _ if pace.can_wait() => Lane::Steady,
        _ => Lane::New,
    }
}

/// How far the probing of an address is.
struct Address {
    target: Option<Target>,
    pace: Pace,
    /// Whether the last probe got no answer.
    is_silent: bool,
    flips: Flips<Identity, Failure>,
}

impl Address {
    fn new(known: Option<Result<Identity, Failure>>, was_unreachable: bool) -> Self {
        let pace = Pace::beginning(known.as_ref());
        Self { target: None, pace, is_silent: false, flips: Flips::new(known).waited_for(was_unreachable) }
    }

    /// From now on it is this one. Says whether what was known is void.
    fn aim(&mut self, target: Option<Target>) -> bool {
        if target == self.target {
            return false;
        }
        // What is known without a target was known before: it is about the first one.
        let Some(before) = mem::replace(&mut self.target, target) else { return false };
        (self.pace, self.is_silent) = (Pace::NOW, false);
        let is_same = |now: &Target| (&now.host, &now.proof) == (&before.host, &before.proof);
        let void = !self.target.as_ref().is_some_and(is_same);
        if void {
            self.flips = Flips::new(None);
        }
        void
    }

    fn saw(&mut self, now: Instant, asked: &Asked, verdict: Result<Identity, Failure>) -> bool {
        let succeeded = verdict.is_ok();
        // What the gateway itself does wrong it does whether the program has begun or not.
        let since = verdict.as_ref().is_err_and(Failure::may_be_the_program).then(|| asked.since(now));
        let flipped = self.flips.saw(now, asked.failures, since, verdict);
        self.pace = self.pace.after(succeeded, flipped);
        flipped
    }
}
