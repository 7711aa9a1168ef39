//! The task of one session: from what is known of it to what is told of it, and its terminal.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cofferdam_kubernetes::{Backoff, Failed};
use cofferdam_model::ports::INSPECTOR;
use cofferdam_model::session::SessionId;
use cofferdam_runtime::errors::with_causes;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::known::Known;
use crate::bodies::BodyStore;
use crate::cluster::Home;
use crate::routes::Live;
use crate::session::hub::Hub;
use crate::session::informer::Seen;
use crate::session::inspector::{self, Heard};
use crate::session::marks::Mark;
use crate::session::pod::{self, pod_name};
use crate::session::record::Record;
use crate::session::start::Outcome;
use crate::session::state::{Ended, Sighting, State, state};
use crate::session::stop::{self, GRACE_SECONDS};
use crate::session::story::Story;
use crate::session::terminal::{self, Program};
use crate::wire::{self, Event, Io, Phase, Status, TerminalInput};

/// What is typed before the program takes it: so many pieces of what clients send wait.
const TYPED_AHEAD: usize = 64;

/// Between attempts of what has to be done.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What a session is followed with.
pub(super) struct Keeping {
    pub(super) home: Home,
    pub(super) store: Option<BodyStore>,
    pub(super) id: SessionId,
    pub(super) record: Record,
    pub(super) hub: Arc<Hub>,
    /// Whether what is seen of it is up to date.
    pub(super) is_current: watch::Receiver<bool>,
}

/// A session, for those who ask. Its task ends when this is dropped.
pub(super) struct Session {
    id: SessionId,
    record: Record,
    hub: Arc<Hub>,
    input: mpsc::Sender<TerminalInput>,
    known: watch::Sender<Known>,
    told: Arc<Mutex<Told>>,
    task: AbortHandle,
}

/// What was told of a session last.
struct Told {
    status: Status,
    ended: Option<Timestamp>,
}

struct Keeper {
    home: Home,
    store: Option<BodyStore>,
    id: SessionId,
    record: Record,
    hub: Arc<Hub>,
    known: watch::Receiver<Known>,
    is_current: watch::Receiver<bool>,
    told: Arc<Mutex<Told>>,
    story: Story,
    /// None where there never was a program.
    program: Option<watch::Sender<Program>>,
}

/// What is next for a session.
enum Next {
    /// To look again, at the latest then.
    Look(Option<Instant>),
    /// It has ended.
    End(Ended),
}

impl Session {
    /// Tells what is known by now, and begins to follow it.
    pub(super) fn begin(keeping: Keeping, known: Known) -> Arc<Self> {
        let Keeping { home, store, id, record, hub, is_current } = keeping;
        let (known, its_known) = watch::channel(known);
        let (input, typed) = mpsc::channel(TYPED_AHEAD);
        let (program, its_program) = watch::channel(Program::Waiting);
        let told = Arc::new(Mutex::new(Told { status: Status::Starting, ended: None }));
        let mut keeper = Keeper {
            home,
            store,
            id: id.clone(),
            record: record.clone(),
            hub: Arc::clone(&hub),
            known: its_known,
            is_current,
            told: Arc::clone(&told),
            story: Story::new(Instant::now().into_std()),
            program: Some(program),
        };
        // At once, so that nobody who asks is told of a state that is long over.
        let first = keeper.turn();
        let task = tokio::spawn(keeper.keep(first, its_program, typed)).abort_handle();
        Arc::new(Self { id, record, hub, input, known, told, task })
    }

    /// Whether that was given to who made it.
    pub(super) fn is_opened_by(&self, sent: &str) -> bool {
        self.record.stream_token.is_some_and(|digest| digest.is_of(sent))
    }

    pub(super) fn see(&self, seen: Seen) {
        self.known.send_modify(|known| known.see(seen));
    }

    pub(super) fn has_begun(&self, outcome: Outcome) {
        self.known.send_modify(|known| known.has_begun(outcome));
    }

    pub(super) fn is_to_stop(&self, at: Timestamp) {
        self.known.send_modify(|known| known.is_to_stop(at));
    }

    pub(super) fn stops_at(&self) -> Option<Timestamp> {
        self.known.borrow().stops_at()
    }

    /// What there is of it.
    pub(super) fn seen(&self) -> Seen {
        self.known.borrow().seen().clone()
    }

    /// Whether there is anything of it.
    pub(super) fn is_somewhere(&self) -> bool {
        *self.known.borrow().seen() != Seen::default()
    }

    /// When it ended; none while it lives.
    pub(super) fn ended(&self) -> Option<Timestamp> {
        lock(&self.told).ended
    }

    pub(super) fn live(&self) -> Live {
        let app = self.record.apps.first();
        Live {
            hub: Arc::clone(&self.hub),
            app: app.map(|app| app.name.clone()).unwrap_or_default(),
            io: app.map_or(Io::Tty, |app| app.io),
            input: self.input.clone(),
        }
    }

    pub(super) fn shown(&self) -> wire::Session {
        let Told { status, ended } = &*lock(&self.told);
        self.record.session(&self.id, status.clone(), *ended)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Keeper {
    async fn keep(mut self, first: Next, program: watch::Receiver<Program>, typed: mpsc::Receiver<TerminalInput>) {
        let (home, id, hub) = (self.home.clone(), self.id.clone(), Arc::clone(&self.hub));
        let io = self.record.apps.first().map_or(Io::Tty, |app| app.io);
        let inspector = inspect(self.record.clone(), Arc::clone(&hub), program.clone());
        let terminal = async {
            terminal::run(&home, &id, io, program, typed, |stream, bytes| hub.output(stream, bytes)).await;
            hub.finish();
        };
        // The one has read the program's last words when it ends, and the others may go on cleaning up.
        tokio::join!(terminal, inspector, self.follow(first));
    }

    /// Follows what becomes known until the session has ended and nothing is left to do.
    async fn follow(&mut self, mut next: Next) {
        loop {
            match next {
                Next::Look(again) => tokio::select! {
                    changed = self.known.changed() => if changed.is_err() { return },
                    changed = self.is_current.changed() => if changed.is_err() { return },
                    () = wait(again) => {}
                },
                Next::End(ended) => return self.end(&ended).await,
            }
            next = self.turn();
        }
    }

    /// Tells what is new.
    fn turn(&mut self) -> Next {
        let is_current = *self.is_current.borrow_and_update();
        let known = self.known.borrow_and_update();
        let facts = known.facts(&self.record);
        let turn = self.story.turn(&facts, Instant::now().into_std());
        let program = match state(&facts) {
            _ if turn.ended.is_some() => Program::Ended,
            State::Starting(_) => Program::Waiting,
            State::Running | State::Leaving => {
                // By now it may be another pod's.
                Program::Running { address: facts.pod.there().and_then(pod::address).filter(|_| is_current) }
            }
            State::Ended(_) => Program::Ended,
        };
        // Of a program that never was there is no log.
        let is_none = turn.ended.is_some() && matches!(facts.pod, Sighting::Awaited | Sighting::Gone(None));
        let ended_at = turn.ended.as_ref().map(|ended| ended.at.or(known.noted_at()).unwrap_or_else(Timestamp::now));
        drop(known);
        {
            let mut told = lock(&self.told);
            told.status = self.story.status();
            told.ended = told.ended.or(ended_at);
        }
        for event in &turn.events {
            self.hub.tell(event);
        }
        if is_none {
            self.program = None;
        }
        if let Some(its) = &self.program {
            its.send_if_modified(|before| std::mem::replace(before, program) != program);
        }
        turn.ended.map_or(Next::Look(turn.again.map(Instant::from_std)), Next::End)
    }

    /// Does what the end of a session asks for: its body goes, and its pod where that has not ended itself. Why it ended is
    /// noted first where no pod will tell it.
    async fn end(&self, ended: &Ended) {
        if let Some(store) = &self.store
            && let Err(error) = store.remove(self.id.as_str()).await
        {
            tracing::warn!(session = %self.id, error = with_causes(&error), "a body cannot be deleted; the store is swept");
        }
        if !ended.leaves_pod {
            return;
        }
        let at = ended.at.unwrap_or_else(Timestamp::now);
        let mark = match &ended.status {
            Status::Stopped => Some(Mark::Stopped { at }),
            Status::Failed { message } => Some(Mark::Refused { at, message: message.clone() }),
            // Its program has ended well, and others in its pod go on without it.
            Status::Exited { .. } | Status::Starting | Status::Running { .. } => None,
        };
        insist("ending a session's pod", || async {
            match &mark {
                Some(mark) => stop::end(&self.home, &self.id, mark).await,
                None => self.home.cluster.delete_pod(&self.home.namespace, &pod_name(&self.id), GRACE_SECONDS).await,
            }
        })
        .await;
    }
}

/// Passes on what the program's inspector says, where somebody asked for it.
async fn inspect(record: Record, hub: Arc<Hub>, program: watch::Receiver<Program>) {
    let Some(app) = record.apps.first() else { return };
    let ports = pod::ports(&app.ports).unwrap_or_default();
    if !pod::inspects(record.inspect, &ports) {
        return;
    }
    inspector::run(program, INSPECTOR, |heard| match heard {
        Heard::Event(frame) => drop(hub.tell(&Event::Debug { app: app.name.clone(), frame })),
        Heard::NoAnswer => {
            let message =
                format!("Nothing on port {INSPECTOR} answers as an inspector; events of it come once it does");
            hub.tell(&Event::Progress { app: Some(app.name.clone()), phase: Phase::Boot, message, done: None });
        }
        Heard::NoAddress => {
            let line = "\r\n[inspect: the pod has no address; events come once it has]\r\n";
            hub.output(terminal::notices(app.io), line.as_bytes());
        }
    })
    .await;
}

/// Does something in the cluster, again and again until it is done.
pub(super) async fn insist<F: Future<Output = Result<(), Failed>>>(doing: &'static str, act: impl Fn() -> F) {
    let mut failures = Backoff::new(SHORTEST_PAUSE, LONGEST_PAUSE);
    while let Err(failed) = act().await {
        if failures.failures() == 0 {
            tracing::warn!(error = %failed, "{doing} failed; it is tried until it is done");
        }
        sleep(failures.failed()).await;
    }
}

async fn wait(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// What is told is whole after any panic.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
